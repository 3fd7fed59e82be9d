import type { SourceConfig, Transient400 } from "../../domain/source.js";
import type { UpstreamLimits } from "../../domain/upstream-limits.js";
import {
  type ErrorCode,
  type PartialReply,
  type PolyGatewayError,
  RequestRejectedError,
  SourceDeadError,
  TransientError,
} from "../../errors.js";
import { bodyDigest, composeMessage, type FailureLabel } from "../body-digest.js";
import { parseJson } from "../json-weight.js";
import type { Redact } from "../redact.js";
import { type HeaderLookup, parseRetryAfterMs } from "../retry-after.js";
import * as rules from "./classify-rules.js";
import { type Fault, readFault } from "./fault.js";
import { shownName } from "./judge.js";
import { limitedBy } from "./limited-by.js";
import { profileCode, resetMomentMs } from "./profile-errors.js";

/** One refusal, as seen on the wire. */
export interface Refusal {
  readonly statusCode: number;
  /** The error stood in a 200 body or in a stream frame: its own code counts as the status. */
  readonly embedded: boolean;
  /** Unabridged: classification never reads a digest. */
  readonly text: string;
  /** Present when the caller has read it already. */
  readonly fault?: Fault;
  readonly header: HeaderLookup;
  /** What the headers say of the account's limits. */
  readonly limits?: UpstreamLimits | undefined;
}

export interface Verdict {
  readonly code: ErrorCode;
  readonly rateLimited: boolean;
  /** Uncapped; null = nothing usable was said. */
  readonly retryAfterMs: number | null;
  /** The other side's own words, unabridged and unredacted; null = the body has none, see `plainMessage`. */
  readonly upstreamMessage: string | null;
  readonly details: Readonly<Record<string, unknown>>;
}

/** Longest `upstreamMessage` of an error, in UTF-16 units; the same for a text in its `details`. */
const MAX_MESSAGE_UNITS = 4_096;
const MAX_DETAIL_UNITS = 200;

const TRANSIENT_STATUS = new Set([408, 409, 425, 498, 499]);
const OVERLOAD_STATUS = new Set([498, 503, 529]);
const DEAD_CODES = new Set<ErrorCode>(["auth", "quota", "model_not_found", "endpoint_not_found"]);
const TRANSIENT_CODES = new Set<ErrorCode>(["rate_limit", "overloaded", "upstream_error", "no_channel", "network"]);
/** A longer wait than this on a 429 is no rate limit (spec 02 "What is seen → class"). */
const LONGEST_RATE_LIMIT_MS = 600_000;
const LONGEST_QUOTA_WAIT_MS = 60_000;
/** Wording stands at the beginning; the bound keeps pages of markup cheap. */
const MAX_WORDING_UNITS = 16_384;
const LIMIT_AND_REQUESTED = /\blimit:? {0,3}([\d,]{1,15}).{0,80}?\brequested:? {0,3}([\d,]{1,15})/i;
const AFFORDABLE = /(?:can only|could|can) afford (?:up to )?([\d,]{1,15})/i;
const CONTEXT_LIMIT = /(?:length|window|size|maximum)[^0-9]{0,40}([\d,]{2,15}) ?(?:tokens)?/i;
/** Where a refused parameter is named, the clearest place first. */
const NAMED_PARAM = [
  /\bbody\.([a-z0-9_]{1,60})/i,
  /["'`]([a-z][a-z0-9_.]{0,60})["'`]/i,
  /: ?([a-z][a-z0-9_.]{0,60})\b/i,
  /\b([a-z]{1,30}(?:_[a-z0-9]{1,30}){1,4})\b/i,
  /\b(?:parameter|argument|field) ([a-z][a-z0-9_.]{0,60})\b/i,
  /^([a-z][a-z0-9_.]{0,60}) (?:is|are) not\b/i,
];

function isRedirect(status: number): boolean {
  return status >= 300 && status < 400;
}

function numberIn(pattern: RegExp, text: string): number | undefined {
  const digits = pattern.exec(text)?.[1]?.replaceAll(",", "");
  return digits === undefined || digits === "" ? undefined : Number(digits);
}

/** The request alone is larger than a minute's allowance: waiting never helps, another source may take it. */
function isTooLargeForTier(status: number, subject: string): boolean {
  const match = LIMIT_AND_REQUESTED.exec(subject);
  if (match !== null && (status === 413 || status === 429 || status === 0)) {
    return Number(match[2]!.replaceAll(",", "")) > Number(match[1]!.replaceAll(",", ""));
  }
  return status === 413 && rules.PER_MINUTE_WORDING.test(subject);
}

/** The status that an error object inside a 200 stands for; 0 = it doesn't say. */
function embeddedStatus(codes: readonly string[]): number {
  for (const code of codes) {
    const status = Number(code);
    if (Number.isInteger(status) && status >= 400 && status <= 599) return status;
  }
  return 0;
}

function serviceCode(status: number, subject: string): ErrorCode {
  if (rules.NO_CHANNEL_WORDING.test(subject)) return "no_channel";
  return OVERLOAD_STATUS.has(status) || rules.OVERLOAD_WORDING.test(subject) ? "overloaded" : "upstream_error";
}

function requestCode(status: number, subject: string): ErrorCode {
  if (rules.CONTEXT_WORDING.test(subject)) return "context_length";
  if (status === 413) return "bad_request";
  if (rules.MODALITY_WORDING.test(subject)) return "unsupported_modality";
  if (rules.MODEL_WORDING.test(subject)) return "model_not_found";
  if (rules.CONTENT_WORDING.test(subject)) return "content_filtered";
  return rules.PARAM_WORDING.test(subject) ? "unsupported_param" : "bad_request";
}

function forbiddenCode(subject: string): ErrorCode {
  if (rules.CONTEXT_WORDING.test(subject)) return "context_length";
  if (rules.CONTENT_WORDING.test(subject)) return "content_filtered";
  return rules.MODEL_WORDING.test(subject) ? "model_not_found" : "auth";
}

function missingCode(subject: string, fault: Fault | undefined): ErrorCode {
  if (rules.MODEL_WORDING.test(subject)) return "model_not_found";
  const isAddress = fault?.isApiError !== true || rules.ADDRESS_WORDING.test(subject);
  return isAddress ? "endpoint_not_found" : "model_not_found";
}

/** An embedded error without any status: its words alone decide. */
function wordedCode(subject: string, codes: readonly string[]): ErrorCode {
  if (rules.RATE_WORDING.test(subject)) return "rate_limit";
  const weak = rules.weakCodeFromWords(codes);
  if (weak === "upstream_error") return serviceCode(0, subject);
  const request = requestCode(0, subject);
  if (request !== "bad_request" && request !== "unsupported_param") return request;
  return weak === "bad_request" ? request : serviceCode(0, subject);
}

function statusCode(status: number, subject: string, fault: Fault | undefined): ErrorCode {
  if (isRedirect(status)) return "endpoint_not_found";
  if (status === 0) return wordedCode(subject, fault?.codes ?? []);
  if (status === 401) return "auth";
  if (status === 402) return "quota";
  if (status === 403) return forbiddenCode(subject);
  if (status === 404 || status === 405 || status === 410) return missingCode(subject, fault);
  if (status === 429) return "rate_limit";
  if (status >= 500 || TRANSIENT_STATUS.has(status)) return serviceCode(status, subject);
  return requestCode(status, subject);
}

/** Money and credentials by wording: never on a real 5xx, where the text is about the server. */
function accountCode(subject: string): ErrorCode | undefined {
  if (rules.QUOTA_WORDING.test(subject)) return "quota";
  return rules.AUTH_WORDING.test(subject) ? "auth" : undefined;
}

interface Seen {
  readonly status: number;
  readonly embedded: boolean;
  readonly subject: string;
  readonly text: string;
  readonly fault: Fault | undefined;
}

function isTransientPattern(status: number, text: string, transient400: Transient400): boolean {
  return status === 400 && transient400 instanceof RegExp && text.search(transient400) !== -1;
}

function decideCode({ status, embedded, subject, text, fault }: Seen, transient400: Transient400): ErrorCode {
  if (isTransientPattern(status, text, transient400)) return serviceCode(status, subject);
  const codes = fault?.codes ?? [];
  if (isTooLargeForTier(status, subject)) return "request_too_large_for_tier";
  const strong = rules.codeFromWords(codes);
  const account = status < 500 || embedded ? accountCode(subject) : undefined;
  if (strong !== undefined)
    return (strong === "rate_limit" || strong === "auth") && account === "quota" ? "quota" : strong;
  if (account !== undefined) return account;
  const code = statusCode(status, subject, fault);
  const relayed =
    status === 400 && transient400 === "relay" && code === "bad_request" && rules.RELAY_WORDING.test(text);
  return relayed ? serviceCode(status, subject) : code;
}

function paramIn(code: ErrorCode, fault: Fault | undefined, subject: string): string | undefined {
  if (fault?.param !== undefined) return fault.param;
  if (code !== "unsupported_param") return undefined;
  for (const place of NAMED_PARAM) {
    const name = place.exec(subject)?.[1];
    if (name !== undefined) return name;
  }
  return undefined;
}

function detailsOf(code: ErrorCode, fault: Fault | undefined, subject: string): Record<string, unknown> {
  const details: Record<string, unknown> = {};
  const param = paramIn(code, fault, subject);
  if (param !== undefined) details.param = param;
  let limit: number | undefined;
  if (code === "request_too_large_for_tier") limit = numberIn(LIMIT_AND_REQUESTED, subject);
  if (code === "context_length") limit = numberIn(CONTEXT_LIMIT, subject);
  if (limit !== undefined) details.limit = limit;
  const affordable = code === "quota" ? numberIn(AFFORDABLE, subject) : undefined;
  if (affordable !== undefined) details.affordableTokens = affordable;
  return details;
}

/** Text to look for wording in: the human message, or the body where there is none. */
function wordingSubject(fault: Fault | undefined, text: string): string {
  return (fault?.message || text).slice(0, MAX_WORDING_UNITS);
}

/** A page of markup has no human text but its title. */
function plainMessage(text: string): string {
  const start = text.slice(0, 2_048).trimStart();
  if (!start.startsWith("<")) return bodyDigest(start).slice(0, 300);
  return /<title[^>]{0,80}>([^<]{0,200})</i.exec(start)?.[1]?.trim() ?? "";
}

/** The class of a refusal by the table of spec 02, on the unabridged text. Pure; never throws. */
export function classify(refusal: Refusal, source: SourceConfig, wallNowMs: number): Verdict {
  const { text, embedded, header, limits } = refusal;
  const fault = refusal.fault ?? readFault(parseJson(text));
  const status = embedded ? embeddedStatus(fault?.codes ?? []) : refusal.statusCode;
  const subject = wordingSubject(fault, text);
  const { profile, transient400 } = source;
  const codes = fault?.codes ?? [];
  const ofProfile = isTransientPattern(status, text, transient400)
    ? undefined
    : profileCode(profile, { status, codes, subject, text, header });
  let code = ofProfile ?? decideCode({ status, embedded, subject, text, fault }, transient400);
  // What a profile calls an overload is one, whatever the status.
  const limited = code === "rate_limit" || (ofProfile === undefined && (status === 429 || status === 529));
  const retryAfterMs =
    parseRetryAfterMs({ header, body: text, wallNowMs, rateLimited: limited }) ??
    resetMomentMs(profile, subject, wallNowMs);
  if (limited && TRANSIENT_CODES.has(code) && retryAfterMs !== null) {
    const ceilingMs = rules.QUOTA_WORD.test(subject) ? LONGEST_QUOTA_WAIT_MS : LONGEST_RATE_LIMIT_MS;
    if (retryAfterMs > ceilingMs) code = "quota";
  }
  const rateLimited = TRANSIENT_CODES.has(code) && (limited || (status === 503 && retryAfterMs !== null));
  const details = detailsOf(code, fault, subject);
  if (limits !== undefined) details.limits = limits;
  const dimension = rateLimited ? limitedBy(profile, { status, codes, subject, limits }) : undefined;
  if (dimension !== undefined) details.limitedBy = dimension;
  const upstreamMessage = fault === undefined ? null : fault.message;
  return { code, rateLimited, retryAfterMs, upstreamMessage, details };
}

function labelOf(code: ErrorCode, statusCode: number, rateLimited: boolean): FailureLabel {
  if (code === "auth" || statusCode === 401 || statusCode === 402 || statusCode === 403) {
    if (DEAD_CODES.has(code) && code !== "model_not_found") return "credential rejected or unpaid";
  }
  if (code === "quota") return "quota exhausted";
  if (code === "endpoint_not_found") {
    return isRedirect(statusCode)
      ? "model or endpoint not found (check BASE_URL, redirects are not followed)"
      : "model or endpoint not found (check BASE_URL)";
  }
  if (DEAD_CODES.has(code)) return "model or endpoint not found";
  if (rateLimited) return "rate limited";
  return TRANSIENT_CODES.has(code) ? "transient failure" : "request rejected";
}

function redactDetails(details: Readonly<Record<string, unknown>>, redact: Redact): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(details).map(([key, value]) => [
      key,
      typeof value === "string" ? redact(value).slice(0, MAX_DETAIL_UNITS) : value,
    ]),
  );
}

/** The typed error of a verdict: redacted first, then cut, so that half a key can't survive at an edge. */
export function errorOf(
  verdict: Verdict,
  refusal: Refusal,
  source: SourceConfig,
  redact: Redact,
  partial?: PartialReply,
  operation?: string,
): PolyGatewayError {
  const { code, rateLimited, retryAfterMs } = verdict;
  const text = redact(refusal.text);
  const digest = bodyDigest(text);
  const label = labelOf(code, refusal.statusCode, rateLimited);
  const own = verdict.upstreamMessage;
  const upstreamMessage = own === null ? plainMessage(text) : redact(own).slice(0, MAX_MESSAGE_UNITS);
  const options = {
    code,
    sourceName: source.name,
    statusCode: refusal.statusCode,
    bodyText: digest,
    ...(upstreamMessage === "" ? {} : { upstreamMessage }),
    ...(Object.keys(verdict.details).length === 0 ? {} : { details: redactDetails(verdict.details, redact) }),
    ...(partial === undefined ? {} : { partial }),
  };
  const message = composeMessage(shownName({ sourceName: source.name, operation }), label, refusal.statusCode, digest);
  const retry = retryAfterMs === null ? {} : { retryAfterMs };
  if (DEAD_CODES.has(code)) return new SourceDeadError(message, { ...options, ...(code === "quota" ? retry : {}) });
  if (TRANSIENT_CODES.has(code)) return new TransientError(message, { ...options, ...retry, rateLimited });
  return new RequestRejectedError(message, options);
}
