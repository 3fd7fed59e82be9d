import type { ErrorCode } from "../../errors.js";

/**
 * Words of the providers → our codes (reference-providers §2.3). Codes are trusted at any status,
 * wording only where the caller says so.
 */

const CODES_OF: Readonly<Partial<Record<ErrorCode, string>>> = {
  quota:
    "insufficient_quota exceeded_current_quota_error insufficient_user_quota pre_consume_token_quota_failed billing_error " +
    "billing_hard_limit_reached billing_not_active arrearage accountoverdueerror insufficient_balance insufficient_funds " +
    "enforced_spend_limit_reached usage_limit_reached insufficient_credits payment_required",
  auth:
    "invalid_api_key incorrect_api_key_error invalid_authentication_error authentication_error authenticationerror " +
    "permission_denied permission_denied_error permission_error access_denied accessdenied unauthorized unauthenticated " +
    "account_deactivated invalid_token api_key_invalid",
  model_not_found:
    "model_not_found deploymentnotfound deployment_not_found modelnotopen resource_not_found_error model_not_available " +
    "invalidendpointormodel.notfound invalidendpoint.closedendpoint model.accessdenied not_found_error unknown_model",
  rate_limit:
    "rate_limit_exceeded rate_limit_error rate_limit_reached_error rate_limited resource_exhausted too_many_requests " +
    "toomanyrequests limit_requests throttling throttling.ratequota throttling.burstrate throttlingexception 429",
  overloaded:
    "overloaded_error server_is_overloaded engine_overloaded_error server_overloaded serveroverloaded overloaded " +
    "capacity_exceeded service_tier_capacity_exceeded unavailable unavailable_error service_unavailable " +
    "service_unavailable_error slow_down engine_overloaded model_overloaded",
  context_length: "context_length_exceeded exceed_context_size_error context_window_exceeded",
  content_filtered:
    "content_filter content_policy_violation data_inspection_failed datainspectionfailed inputtextriskdetection " +
    "outputtextriskdetection sensitive_words_detected content_moderation moderation_blocked",
  unsupported_param: "unsupported_parameter unknown_parameter unrecognized_parameter extra_forbidden",
  request_too_large_for_tier: "request_too_large_for_tier",
};

/** Codes that only repeat the status class; they decide when no status does, as in a 200 body. */
const WEAK_CODES_OF: Readonly<Partial<Record<ErrorCode, string>>> = {
  bad_request:
    "invalid_request_error invalid_request bad_request badrequesterror invalid_argument invalidparameter 400 422",
  upstream_error:
    "server_error api_error internal_error internal_server_error internalerror upstream_error timeout_error",
};

function index(table: Readonly<Partial<Record<ErrorCode, string>>>): ReadonlyMap<string, ErrorCode> {
  const entries = Object.entries(table) as [ErrorCode, string][];
  return new Map(entries.flatMap(([code, words]) => words.split(" ").map((word) => [word, code] as const)));
}

const STRONG_CODES = index(CODES_OF);
const WEAK_CODES = index(WEAK_CODES_OF);

export function codeFromWords(words: readonly string[]): ErrorCode | undefined {
  for (const word of words) {
    const code = STRONG_CODES.get(word) ?? (word.includes("sensitivecontentdetected") ? "content_filtered" : undefined);
    if (code !== undefined) return code;
  }
  return undefined;
}

export function weakCodeFromWords(words: readonly string[]): ErrorCode | undefined {
  for (const word of words) {
    const code = WEAK_CODES.get(word);
    if (code !== undefined) return code;
  }
  return undefined;
}

/** The account has no money or no allowance left. */
export const QUOTA_WORDING =
  /insufficient[ _-]?(?:account )?(?:balance|funds|credits?|quota)|balance.{0,40}(?:insufficient|too low|not enough|exhausted)|(?:out of|no more|not enough|needs? (?:more )?|low on|more) credits?\b|credit (?:balance|limit)|\bcredits?\b.{0,30}(?:exhausted|depleted|used up|too low|required)|quota.{0,80}billing|billing.{0,80}quota|\barrear|overdue|unpaid|recharge|spend(?:ing)? limit|usage limit reached|free allocated quota|余额不足|欠费|额度不足|额度已用/i;

/** The credential is not, or no longer, accepted. */
export const AUTH_WORDING =
  /(?:invalid|incorrect|expired|missing|wrong) api[ _-]?key|api[ _-]?key (?:is |has )?(?:not valid|invalid|expired|disabled|missing|revoked)|no api[ _-]?key|\bsuspended\b|\bdeactivated\b|organization has been (?:disabled|restricted)|permission denied|invalid token|token (?:is |has )?(?:invalid|expired)|已过期|无效的令牌/i;

export const QUOTA_WORD = /quota|usage limit|allowance|额度|配额/i;

export const CONTEXT_WORDING =
  /context[ _-]?(?:length|window|size|limit)|maximum context|too many (?:input |prompt )?tokens|(?:prompt|input) is too long|input token count|exceed_context|max(?:imum)? (?:input|prompt|sequence|model)[ _-]?(?:length|tokens|len)\b|reduce the length|range of input length|上下文长度|上下文窗口|输入过长/i;

export const MODALITY_WORDING =
  /(?:does not|doesn't|do not|cannot|can't|not) (?:support|accept|process|handle).{0,40}(?:image|vision|audio|video|multimodal|pdf)|(?:image|vision|audio|video)s?(?:_url)?(?: inputs?| content)?(?: is| are)? (?:not supported|unsupported)|no endpoints found that support|text[- ]only model|unknown variant .?image_url/i;

export const CONTENT_WORDING =
  /content[ _-]?(?:filter|policy|management policy|moderation)|moderation|flagged|safety (?:system|filter|policy)|inappropriate content|sensitive (?:content|words?|information)|data[ _]?inspection|敏感|违规/i;

export const MODEL_WORDING =
  /\bmodel\b.{0,120}?(?:does ?n[o']t exist|do not exist|not exist|not found|was not found|is not available|no longer available|has been deprecated)|(?:unknown|no such|unrecognized) model|deployment.{0,60}(?:does not exist|not found)|模型.{0,60}不存在/i;

/** The address is wrong, whatever the body looks like. */
export const ADDRESS_WORDING =
  /invalid url|unknown (?:request )?url|no (?:matching )?route|route not found|cannot (?:post|get) \/|page not found|method not allowed|not allowed to (?:post|get)/i;

export const PARAM_WORDING =
  /(?:unsupported|unknown|unrecognized|unexpected|extra|invalid)(?: keyword| request)? (?:parameter|argument|field|key|inputs?)|(?:parameter|argument|field|option)s?.{0,80}?(?:not|isn't|aren't) (?:supported|permitted|allowed|recognized)|(?:is|are) not (?:supported|permitted|allowed) (?:with|for|by) this model|extra inputs are not permitted|unexpected keyword/i;

export const OVERLOAD_WORDING =
  /overload|capacity|too busy|\bbusy\b|temporar|unavailable|try again later|server is loading|负载|繁忙/i;

export const RATE_WORDING = /rate[ -]?limit|too many requests|requests? limit|limit reached|请求过于频繁|限流/i;

export const NO_CHANNEL_WORDING = /no available channel|no channel available|无可用渠道/i;

/** `transient400: "relay"`: words about the service, not about the request. */
export const RELAY_WORDING = /overload|temporar|unavailable|upstream|no available channel|负载|无可用渠道/i;

/** A cap per minute: waiting doesn't help when one request is larger than it. */
export const PER_MINUTE_WORDING = /\btpm\b|per[ -]?minute|one minute|每分钟/i;
