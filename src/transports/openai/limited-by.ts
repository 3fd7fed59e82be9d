import type { ProviderProfile } from "../../domain/profile.js";
import type { RateLimitDimension, UpstreamLimits } from "../../domain/upstream-limits.js";

/** Which limit a rate limit is about (reference-providers §2.3): by codes, else by words, else by what headers say is left. */

export type NamedDimension = Exclude<RateLimitDimension, "unknown">;

export interface RateLimitView {
  readonly status: number;
  /** In lower case. */
  readonly codes: readonly string[];
  readonly subject: string;
  readonly limits: UpstreamLimits | undefined;
}

/** Codes that mean the same wherever they come from: OpenAI's `type`, and DashScope's, which relays pass on. */
const DIMENSION_OF_CODE: Readonly<Record<string, NamedDimension>> = {
  requests: "requests",
  tokens: "tokens",
  limit_requests: "requests",
  "throttling.ratequota": "requests",
  "throttling.burstrate": "requests",
  "throttling.allocationquota": "tokens",
};

/** "per min", "/s", "per 10 seconds". */
const PER = "[ -]?(?:per|/)[ -]?(?:\\d{1,4}[ -]?)?(?:s\\b|sec|min|hour|day)";
const CONCURRENCY = /concurren|simultaneous|in[ _-]flight|parallel (?:requests|calls)|并发/i;
const TOKENS = new RegExp(
  `\\b[io]?tp[md]\\b|tokens?${PER}|tokens?[ _-](?:rate|usage|quota|count|limit)|(?:request|prompt|input|output)[ _-]tokens`,
  "i",
);
const REQUESTS = new RegExp(
  `\\b[rq]p[smd]\\b|(?:requests?|calls)${PER}|\\bqueries\\b|requests?[ _-](?:rate|quota|frequency|count|limit)|call rate|number of requests|tier_requests|high frequency|频率|请求次数|请求数`,
  "i",
);
/** Ark writes its codes as `EndpointTPMExceeded`, `ModelAccountRpmRateLimitExceeded`. */
const TOKENS_IN_CODE = /tpm|tokens?_?per_?min/;
const REQUESTS_IN_CODE = /rpm|requests?_?per_?min/;

/** Everything that is tried on a provider's text: each must be linear. */
export const LIMIT_WORDING: readonly RegExp[] = [CONCURRENCY, TOKENS, REQUESTS, TOKENS_IN_CODE, REQUESTS_IN_CODE];

/** undefined = nothing clear: then it may be any of them. */
export function limitedBy(profile: ProviderProfile, view: RateLimitView): NamedDimension | undefined {
  const byStatus = profile.limitCodes?.[String(view.status)];
  return fromCodes(profile, view.codes) ?? fromWords(view.subject) ?? fromHeaders(view.limits) ?? byStatus;
}

function fromCodes({ limitCodes = {} }: ProviderProfile, codes: readonly string[]): NamedDimension | undefined {
  for (const code of codes) {
    if (Object.hasOwn(limitCodes, code)) return limitCodes[code];
    if (Object.hasOwn(DIMENSION_OF_CODE, code)) return DIMENSION_OF_CODE[code];
    const dimension = CONCURRENCY.test(code)
      ? "concurrency"
      : theOne(REQUESTS_IN_CODE.test(code), TOKENS_IN_CODE.test(code));
    if (dimension !== undefined) return dimension;
  }
  return undefined;
}

/** "Too many concurrent requests" is about concurrency, whatever else it names. */
function fromWords(subject: string): NamedDimension | undefined {
  if (CONCURRENCY.test(subject)) return "concurrency";
  return theOne(REQUESTS.test(subject), TOKENS.test(subject));
}

function fromHeaders(limits: UpstreamLimits | undefined): NamedDimension | undefined {
  return theOne(limits?.remainingRequests === 0, limits?.remainingTokens === 0);
}

function theOne(requests: boolean, tokens: boolean): NamedDimension | undefined {
  if (requests === tokens) return undefined;
  return requests ? "requests" : "tokens";
}
