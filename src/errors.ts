/**
 * The error taxonomy (spec 02 §1). Innermost module: imports nothing.
 *
 * One `catch` covers every "try later" case:
 * `catch (e) { if (e instanceof GatewayUnavailableError) requeue(e.retryAfterMs); }`
 */

/** Stable machine-readable reasons. New ones are only ever added. */
export type ErrorCode =
  | "auth"
  | "quota"
  | "model_not_found"
  | "endpoint_not_found"
  | "rate_limit"
  | "overloaded"
  | "upstream_error"
  | "no_channel"
  | "network"
  | "timeout"
  | "ttft_timeout"
  | "idle_timeout"
  | "truncated"
  | "empty"
  | "malformed"
  | "stale_socket"
  | "bad_request"
  | "context_length"
  | "request_too_large_for_tier"
  | "unsupported_param"
  | "unsupported_modality"
  | "content_filtered"
  | "refused"
  | "schema"
  | "bad_index"
  | "count_mismatch"
  | "bad_vector"
  | "dimension_mismatch"
  | "batch_too_large"
  | "source_not_configured"
  | "config"
  | UnavailableReason;

/** Why a call should be postponed and requeued; also the `code` of the scope-level errors. */
export type UnavailableReason =
  | "circuit_open"
  | "no_sources"
  | "all_sources_dead"
  | "quota_exhausted"
  | "retry_exhausted"
  | "stalled"
  | "deadline_exceeded"
  | "governance_backend_down";

/** Why one source was passed over. The same words in errors, the `route` column and `snapshot()`. */
export type SourceReason =
  | "breaker_open"
  | "half_open"
  | "cooling"
  | "dead"
  | "concurrency"
  | "rpm"
  | "tpm"
  | "global_concurrency"
  | "global_rpm"
  | "global_tpm"
  | "rate_limited"
  | "timeout"
  | "transient"
  | "incapable"
  | "failed_in_call";

export interface SourceReasonDetail {
  reason: SourceReason;
  waitMs: number;
  lastError?: { code: string; message: string };
}

/** What had arrived of an answer when its attempt failed; kept for diagnosis, never used for decisions. */
export interface PartialReply {
  content: string;
  thinking: string;
  toolCalls: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  /** As the provider reported it (type `Usage`), or null. */
  usage: unknown;
}

export interface PolyGatewayErrorOptions {
  code?: ErrorCode;
  operation?: string;
  sourceName?: string;
  statusCode?: number;
  /** Digest of a non-2xx body. */
  bodyText?: string;
  /** First human text found in the body. */
  upstreamMessage?: string;
  /**
   * Small facts read from the answer: `param`, `limit`, `affordableTokens`; `limitedBy`, the limit that a rate limit
   * names (`requests`, `tokens`, `concurrency`); `limits`, what headers said of the account's limits.
   */
  details?: Record<string, unknown>;
  partial?: PartialReply;
  cause?: unknown;
}

const brands = new Map<string, symbol>();

function brandOf(name: string): symbol {
  let brand = brands.get(name);
  if (brand === undefined) {
    brand = Symbol.for(`polygateway.error.${name}`);
    brands.set(name, brand);
  }
  return brand;
}

function isBranded(name: string, value: unknown): boolean {
  return typeof value === "object" && value !== null && (value as Record<symbol, unknown>)[brandOf(name)] === true;
}

/**
 * Gives a class a process-wide brand so that `instanceof` and `isInstance` also work
 * when two copies of the package are loaded. Subclasses made by users keep the normal rule.
 */
function brand(errorClass: { prototype: object; name: string }, name: string): void {
  Object.defineProperty(errorClass.prototype, brandOf(name), { value: true });
  Object.defineProperty(errorClass.prototype, "name", { value: name, configurable: true, writable: true });
  Object.defineProperty(errorClass, Symbol.hasInstance, {
    value(this: unknown, value: unknown): boolean {
      if (this !== errorClass) return Function.prototype[Symbol.hasInstance].call(this as object, value);
      return isBranded(name, value);
    },
  });
}

/** Root of everything this library throws itself. A caller's own abort reason is never one of these. */
export class PolyGatewayError extends Error {
  readonly code: ErrorCode;
  /** Set by the operation; equals the telemetry column. */
  declare operation?: string;
  declare readonly sourceName?: string;
  declare readonly statusCode?: number;
  readonly bodyText: string;
  declare readonly upstreamMessage?: string;
  declare readonly details?: Record<string, unknown>;
  declare partial?: PartialReply;

  constructor(message: string, options: PolyGatewayErrorOptions & { code: ErrorCode }) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = options.code;
    if (options.operation !== undefined) this.operation = options.operation;
    if (options.sourceName !== undefined) this.sourceName = options.sourceName;
    if (options.statusCode !== undefined) this.statusCode = options.statusCode;
    this.bodyText = options.bodyText ?? "";
    if (options.upstreamMessage !== undefined) this.upstreamMessage = options.upstreamMessage;
    if (options.details !== undefined) this.details = options.details;
    if (options.partial !== undefined) this.partial = options.partial;
  }

  static isInstance(value: unknown): value is PolyGatewayError {
    return isBranded("PolyGatewayError", value);
  }

  /** Plain data for logs: no stack, no secrets (transports redact before they compose a message). */
  toJSON(): Record<string, unknown> {
    const json: Record<string, unknown> = { name: this.name, message: this.message };
    for (const key of Object.keys(this)) json[key] = (this as Record<string, unknown>)[key];
    const { cause } = this;
    if (PolyGatewayError.isInstance(cause)) json.cause = cause.toJSON();
    else if (cause instanceof Error) json.cause = { name: cause.name, message: cause.message };
    return json;
  }
}

/** The service failed in a way that may pass: retried, or moved to another source. */
export class TransientError extends PolyGatewayError {
  /** What the other side asked for, uncapped; absent when it gave nothing usable. */
  declare readonly retryAfterMs?: number;
  declare readonly rateLimited?: boolean;

  constructor(
    message: string,
    options: PolyGatewayErrorOptions & { retryAfterMs?: number; rateLimited?: boolean } = {},
  ) {
    super(message, { ...options, code: options.code ?? "upstream_error" });
    if (options.retryAfterMs !== undefined) this.retryAfterMs = options.retryAfterMs;
    if (options.rateLimited !== undefined) this.rateLimited = options.rateLimited;
  }

  static override isInstance(value: unknown): value is TransientError {
    return isBranded("TransientError", value);
  }
}

/** Credential, quota, billing, model or endpoint is gone: the breaker is forced open, another source is tried at once. */
export class SourceDeadError extends PolyGatewayError {
  declare readonly retryAfterMs?: number;

  constructor(message: string, options: PolyGatewayErrorOptions & { retryAfterMs?: number } = {}) {
    super(message, { ...options, code: options.code ?? "auth" });
    if (options.retryAfterMs !== undefined) this.retryAfterMs = options.retryAfterMs;
  }

  static override isInstance(value: unknown): value is SourceDeadError {
    return isBranded("SourceDeadError", value);
  }
}

/** The request itself is bad: the same request fails everywhere, so it is thrown to the caller. */
export class RequestRejectedError extends PolyGatewayError {
  constructor(message: string, options: PolyGatewayErrorOptions = {}) {
    super(message, { ...options, code: options.code ?? "bad_request" });
  }

  static override isInstance(value: unknown): value is RequestRejectedError {
    return isBranded("RequestRejectedError", value);
  }
}

/** The service is healthy but its result can't be used. `rawText` = model output of a 2xx; never a refused body. */
export class ResultInvalidError extends PolyGatewayError {
  readonly rawText: string;
  readonly issues: readonly unknown[];

  constructor(
    message: string,
    options: PolyGatewayErrorOptions & { rawText?: string; issues?: readonly unknown[] } = {},
  ) {
    super(message, { ...options, code: options.code ?? "schema" });
    this.rawText = options.rawText ?? "";
    this.issues = options.issues ?? [];
  }

  static override isInstance(value: unknown): value is ResultInvalidError {
    return isBranded("ResultInvalidError", value);
  }
}

/**
 * An assembly defect: a source name that the governor doesn't know.
 * Not retriable and not a GatewayUnavailableError: a wrong configuration must reach a human, not be requeued for ever.
 */
export class SourceNotConfiguredError extends PolyGatewayError {
  constructor(message: string, options: PolyGatewayErrorOptions = {}) {
    super(message, { ...options, code: "source_not_configured" });
  }

  static override isInstance(value: unknown): value is SourceNotConfiguredError {
    return isBranded("SourceNotConfiguredError", value);
  }
}

export interface ConfigProblem {
  /** The key as the user wrote it: an environment name, a YAML path or a constructor path. */
  key: string;
  /** The given value, secrets masked; absent when the key is missing. */
  value?: string;
  /** What is wrong. */
  problem: string;
  /** What is accepted, or what to do. */
  remedy: string;
}

function describeProblem({ key, value, problem, remedy }: ConfigProblem): string {
  return `${key}${value === undefined ? "" : ` = ${value}`}: ${problem}. ${remedy}`;
}

/** Every problem of a configuration at once, by key name. */
export class ConfigError extends PolyGatewayError {
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[], options: PolyGatewayErrorOptions = {}) {
    const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
    super([`Configuration has ${count}:`, ...problems.map((p) => `  - ${describeProblem(p)}`)].join("\n"), {
      ...options,
      code: "config",
    });
    this.problems = problems;
  }

  static override isInstance(value: unknown): value is ConfigError {
    return isBranded("ConfigError", value);
  }
}

export interface UnavailableOptions extends PolyGatewayErrorOptions {
  scope: string;
  reason: UnavailableReason;
  retryAfterMs: number;
  perSourceReasons?: Record<string, SourceReasonDetail>;
}

/** "Postpone and requeue": nothing is wrong with the request. */
export class GatewayUnavailableError extends PolyGatewayError {
  readonly scope: string;
  readonly reason: UnavailableReason;
  /** When a new try makes sense; 0 = no hint. */
  readonly retryAfterMs: number;
  readonly perSourceReasons: Record<string, SourceReasonDetail>;

  constructor(message: string, options: UnavailableOptions) {
    super(message, { ...options, bodyText: "", code: options.reason });
    this.scope = options.scope;
    this.reason = options.reason;
    this.retryAfterMs = options.retryAfterMs;
    this.perSourceReasons = options.perSourceReasons ?? {};
  }

  static override isInstance(value: unknown): value is GatewayUnavailableError {
    return isBranded("GatewayUnavailableError", value);
  }
}

/** All sources are open and this call sent nothing. */
export class CircuitOpenError extends GatewayUnavailableError {
  constructor(message: string, options: Omit<UnavailableOptions, "reason">) {
    super(message, { ...options, reason: "circuit_open" });
  }

  static override isInstance(value: unknown): value is CircuitOpenError {
    return isBranded("CircuitOpenError", value);
  }
}

/** No source could answer within the budgets; the last failure is the `cause`. */
export class AllSourcesExhausted extends GatewayUnavailableError {
  static override isInstance(value: unknown): value is AllSourcesExhausted {
    return isBranded("AllSourcesExhausted", value);
  }
}

/**
 * A constant, not a setting: zero would turn an outage of the governance backend into a storm of requeues.
 */
const BACKEND_RETRY_AFTER_MS = 5_000;

/** The governance backend can't decide: nothing is let through. */
export class GovernanceBackendError extends GatewayUnavailableError {
  /** No waiting mends it: an address, a password or rights have to be changed. Such a call waits out no grace. */
  readonly isLasting: boolean;

  constructor(
    message: string,
    options: { scope: string; sourceName?: string; operation?: string; cause?: unknown; isLasting?: boolean },
  ) {
    const { isLasting = false, ...rest } = options;
    super(message, { ...rest, reason: "governance_backend_down", retryAfterMs: BACKEND_RETRY_AFTER_MS });
    this.isLasting = isLasting;
  }

  static override isInstance(value: unknown): value is GovernanceBackendError {
    return isBranded("GovernanceBackendError", value);
  }
}

brand(PolyGatewayError, "PolyGatewayError");
brand(TransientError, "TransientError");
brand(SourceDeadError, "SourceDeadError");
brand(RequestRejectedError, "RequestRejectedError");
brand(ResultInvalidError, "ResultInvalidError");
brand(SourceNotConfiguredError, "SourceNotConfiguredError");
brand(ConfigError, "ConfigError");
brand(GatewayUnavailableError, "GatewayUnavailableError");
brand(CircuitOpenError, "CircuitOpenError");
brand(AllSourcesExhausted, "AllSourcesExhausted");
brand(GovernanceBackendError, "GovernanceBackendError");
