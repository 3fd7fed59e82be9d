import {
  type BackpressureConfig,
  BREAKER_DEFAULTS,
  type BreakerConfig,
  type Failover,
  type RetryConfig,
  type SelectorName,
} from "../domain/scope.js";
import { Secret } from "../domain/secret.js";
import { type LimitConfig, NO_LIMITS, type SourceConfig } from "../domain/source.js";
import type { CaptureMode } from "../ports/recorder.js";
import type { LogLevel } from "../ports/runtime.js";
import { choice, duration, type Field, type Fields, flag, integer, number, optional } from "./field.js";
import type { Durability, JournalMode } from "./options.js";

/**
 * Every setting, once (spec 07). Parsing, range checks, did-you-mean, docs/configuration.md and .env.example
 * are all made from these tables.
 */
const LIMIT_FIELDS: Fields<LimitConfig> = {
  maxConcurrency: integer("MAX_CONCURRENCY", NO_LIMITS.maxConcurrency, "Calls in flight at once; 0 = no limit"),
  rpm: integer("RPM", NO_LIMITS.rpm, "Requests per minute; 0 = no limit"),
  tpm: integer("TPM", NO_LIMITS.tpm, "Tokens per minute; 0 = no limit"),
  limitRule: choice(
    "LIMIT_RULE",
    ["smooth", "window"],
    NO_LIMITS.limitRule,
    "smooth: paced; window: counted per aligned minute",
  ),
  strict: flag(
    "STRICT",
    NO_LIMITS.strict,
    "With smooth: no 60 s ever holds more than the limit; off allows short bursts on top",
  ),
  burstS: number("BURST_S", NO_LIMITS.burstS, "Seconds of the request rate allowed at once; only when STRICT is off", {
    max: 60,
    unit: "seconds",
  }),
  burstTokensS: number(
    "BURST_TOKENS_S",
    NO_LIMITS.burstTokensS,
    "Seconds of the token rate allowed at once; only when STRICT is off",
    {
      max: 60,
      unit: "seconds",
    },
  ),
};

type SourceSettings = SourceConfig & { readonly disabled: boolean };

export const SOURCE_FIELDS: Fields<SourceSettings> = {
  name: { kind: "name", required: true, fallback: "", text: "Unique name of the source" },
  provider: { kind: "name", fallback: "", text: "Who serves it; default: the name without its trailing number" },
  baseUrl: {
    kind: "url",
    env: "BASE_URL",
    required: true,
    fallback: "",
    text: "Address of the API up to `/v1`; `/chat/completions` is appended",
  },
  apiKey: {
    kind: "secret",
    env: "API_KEY",
    required: true,
    secret: true,
    fallback: new Secret(""),
    text: "Credential; `none` = no Authorization header",
  },
  model: { kind: "text", env: "MODEL", required: true, fallback: "", text: "Model name as the provider knows it" },
  profile: { kind: "text", env: "PROFILE", fallback: "", defaultText: "by host", text: "Dialect of the provider" },
  transport: choice("TRANSPORT", ["openai"], "openai", "Wire protocol"),
  timeoutMs: duration("TIMEOUT_S", 120_000, "Longest attempt", { above: 0 }),
  ttftTimeoutMs: duration("TTFT_TIMEOUT_S", 60_000, "Longest wait for the first token; at most TIMEOUT_S", {
    above: 0,
    defaultText: "60, or TIMEOUT_S when lower",
  }),
  interTokenTimeoutMs: duration("INTER_TOKEN_TIMEOUT_S", 30_000, "Longest silence between tokens; at most TIMEOUT_S", {
    above: 0,
    defaultText: "30, or TIMEOUT_S when lower",
  }),
  ...LIMIT_FIELDS,
  estTokens: optional(
    integer("EST_TOKENS", 0, "Tokens reserved per call; at most TPM", { min: 1 }),
    "estimated from the prompt",
  ),
  tpmCharge: choice("TPM_CHARGE", ["actual", "max"], "actual", "max: the provider charges max_tokens at admission"),
  contextTokens: optional(
    integer("CONTEXT_TOKENS", 0, "Context length of the model; a call that overflows another model may come here", {
      min: 1,
    }),
    "unknown",
  ),
  stream: flag("STREAM", true, "Ask the provider to stream, so that a hang is noticed early"),
  requireDone: flag("REQUIRE_DONE", false, "A stream without `[DONE]` counts as cut even after a finish_reason"),
  transient400: {
    kind: "transient400",
    env: "TRANSIENT_400",
    fallback: "off",
    text: "When a 400 is the service's own hiccup: never, by built-in wording, or by your pattern",
  },
  extraBody: {
    kind: "object",
    env: "EXTRA_BODY",
    fallback: {},
    defaultText: "–",
    text: "Further fields of every request body; the call's own fields win",
  },
  headers: {
    kind: "headers",
    env: "HEADERS",
    fallback: {},
    secret: true,
    defaultText: "–",
    text: "Further HTTP headers",
  },
  weight: number("WEIGHT", 1, "Share of the load among sources of one priority", { min: 0.001, max: 1_000 }),
  priority: integer("PRIORITY", 0, "Lower goes first; the next is used only when no lower one has a free slot", {
    min: -1_000,
    max: 1_000,
  }),
  disabled: flag("DISABLED", false, "Leaves the source out without deleting it"),
};

export const RETRY_FIELDS: Fields<RetryConfig> = {
  maxAttempts: integer("MAX_ATTEMPTS", 4, "Failed sends before a call ends; 1 = a single send", { min: 1, max: 1_000 }),
  backoffBaseMs: duration("BACKOFF_BASE_S", 500, "First wait after a failure; doubles each time, halved at random"),
  backoffMaxMs: duration("BACKOFF_MAX_S", 20_000, "Longest such wait; at least BACKOFF_BASE_S"),
  maxRateLimited: integer("MAX_RATE_LIMITED", 20, "429s one call accepts before it ends; 0 = any number", {
    max: 1_000_000,
  }),
};

export const BREAKER_FIELDS: Fields<BreakerConfig> = {
  failThreshold: integer("FAIL_THRESHOLD", BREAKER_DEFAULTS.failThreshold, "Failures in a row that open the breaker", {
    min: 1,
    max: 1_000_000,
  }),
  failRate: number("FAIL_RATE", BREAKER_DEFAULTS.failRate, "Share of failures over the window that opens it", {
    above: 0,
    max: 1,
  }),
  minSamples: integer("MIN_SAMPLES", BREAKER_DEFAULTS.minSamples, "Attempts in the window before the share counts", {
    min: 1,
    max: 1_000_000,
  }),
  windowMs: duration("WINDOW_S", BREAKER_DEFAULTS.windowMs, "Length of that window", { min: 1_000, max: 3_600_000 }),
  cooldownMs: duration(
    "COOLDOWN_S",
    BREAKER_DEFAULTS.cooldownMs,
    "First open time; × 1.7 a trip, ± 10 %; 0 = probe at once",
  ),
  cooldownMaxMs: duration("COOLDOWN_MAX_S", BREAKER_DEFAULTS.cooldownMaxMs, "Longest open time"),
};

export const BACKPRESSURE_FIELDS: Fields<BackpressureConfig> = {
  stallWindowMs: duration(
    "STALL_WINDOW_S",
    300_000,
    "Unproductive waiting a call accepts while nothing in the scope makes progress; at least every TTFT_TIMEOUT_S",
    { above: 0 },
  ),
  quotaFull: choice("QUOTA_FULL", ["wait", "fail_fast"], "wait", "What a call does when every limit is used up"),
  whenOpen: choice("WHEN_OPEN", ["wait", "fail"], "fail", "What a call does when every breaker is open", {
    defaultText: "fail (batch: wait)",
  }),
  backendGraceMs: duration("BACKEND_GRACE_S", 0, "How long a call puts up with a governance backend that is down", {
    defaultText: "0 (batch: 60)",
  }),
  pollIntervalMs: duration("POLL_INTERVAL_S", 50, "Smallest retry hint of a used-up quota; nothing polls"),
};

export const GLOBAL_FIELDS: Fields<LimitConfig> = LIMIT_FIELDS;

export interface ScopeSettings {
  readonly selector: SelectorName;
  readonly failover: Failover;
  readonly deadlineMs: number | undefined;
}

export const SCOPE_FIELDS: Fields<ScopeSettings> = {
  selector: choice(
    "SELECTOR",
    ["health_aware", "least_inflight", "round_robin"],
    "health_aware",
    "Order among sources of one priority; health_aware acts as least_inflight by used fraction today",
  ),
  failover: choice("FAILOVER", ["on", "off"], "on", "off: the first source admitted is the call's only one"),
  deadlineMs: optional(
    duration("DEADLINE_S", 0, "Longest call from its start, queue and retries included", { above: 0 }),
    "none",
  ),
};

export const TELEMETRY_BACKENDS = ["sqlite", "jsonl", "postgres", "otel"] as const;
export type TelemetryBackend = (typeof TELEMETRY_BACKENDS)[number];

/** What holds for the whole process, whatever the scope. */
export interface ProcessSettings {
  readonly limiterBackend: "memory" | "redis";
  readonly breakerBackend: "memory" | "redis";
  readonly cacheBackend: "none" | "memory" | "redis";
  readonly leaseTtlMs: number;
  readonly leaseRenewal: boolean;
  /** undefined = not said (library: none; CLI: sqlite); empty = none. */
  readonly telemetryBackends: readonly TelemetryBackend[] | undefined;
  readonly sqlitePath: string;
  readonly jsonlPath: string;
  readonly capture: CaptureMode;
  readonly durability: Durability;
  /** undefined = not said (library: async; batch: before_send). */
  readonly journal: JournalMode | undefined;
  readonly pricingPath: string | undefined;
  readonly logLevel: LogLevel;
}

const PATH: Pick<Field<string>, "kind"> = { kind: "text" };

export const PROCESS_FIELDS: Fields<ProcessSettings> = {
  limiterBackend: choice("PGW_LIMITER_BACKEND", ["memory", "redis"], "memory", "Where limits are counted", {
    available: ["memory"],
  }),
  breakerBackend: choice(
    "PGW_BREAKER_BACKEND",
    ["memory", "redis"],
    "memory",
    "Where breakers live; the same as PGW_LIMITER_BACKEND",
    { available: ["memory"] },
  ),
  cacheBackend: choice("PGW_CACHE_BACKEND", ["none", "memory", "redis"], "none", "Where answers are cached", {
    available: ["none"],
  }),
  leaseTtlMs: duration("PGW_LEASE_TTL_S", 30_000, "When the permits of a dead worker come back", {
    min: 3_000,
    max: 86_400_000,
  }),
  leaseRenewal: flag("PGW_LEASE_RENEWAL", true, "off: PGW_LEASE_TTL_S must cover the longest TIMEOUT_S"),
  telemetryBackends: {
    kind: "list",
    env: "PGW_TELEMETRY_BACKEND",
    fallback: undefined,
    choices: TELEMETRY_BACKENDS,
    available: ["sqlite", "jsonl"],
    defaultText: "none (command line: sqlite)",
    text: "Where telemetry goes: a list with commas, or none",
  },
  sqlitePath: {
    ...PATH,
    env: "PGW_TELEMETRY_SQLITE_PATH",
    fallback: "./polygateway.db",
    text: "Database file of the sqlite backend",
  },
  jsonlPath: {
    ...PATH,
    env: "PGW_TELEMETRY_JSONL_PATH",
    fallback: "./polygateway.jsonl",
    text: "File of the jsonl backend",
  },
  capture: choice(
    "PGW_TELEMETRY_CAPTURE",
    ["full", "digest", "none"],
    "full",
    "How texts are kept: as they are, as hash and length, or not at all",
  ),
  durability: choice(
    "PGW_TELEMETRY_DURABILITY",
    ["async", "sync"],
    "async",
    "sync: a call waits until its row is committed",
  ),
  journal: optional(
    choice<JournalMode>(
      "PGW_JOURNAL",
      ["async", "before_send", "off"],
      "async",
      "When an open attempt is written down",
    ),
    "async (batch: before_send)",
  ),
  pricingPath: optional({ ...PATH, env: "PGW_PRICING_PATH", fallback: "", text: "JSON price table" }, "no prices"),
  logLevel: choice("PGW_LOG_LEVEL", ["debug", "info", "warn", "error"], "warn", "Least severe message that is logged"),
};

/** Groups between the scope's name and the field, with the option object they fill. */
export const GROUPS = {
  RETRY: { option: "retry", fields: RETRY_FIELDS as Readonly<Record<string, Field>> },
  BREAKER: { option: "breaker", fields: BREAKER_FIELDS as Readonly<Record<string, Field>> },
  BACKPRESSURE: { option: "backpressure", fields: BACKPRESSURE_FIELDS as Readonly<Record<string, Field>> },
  GLOBAL: { option: "global", fields: GLOBAL_FIELDS as Readonly<Record<string, Field>> },
} as const;

/** Flat names of the system this design comes from: `{SCOPE}_{name}`. `path` = the option it fills. */
export const FLAT_NAMES: Readonly<Record<string, { readonly path: string; readonly text: string }>> = {
  TIMEOUT: { path: "sources[].timeoutMs", text: "TIMEOUT_S of every source" },
  TTFT_TIMEOUT: { path: "sources[].ttftTimeoutMs", text: "TTFT_TIMEOUT_S of every source" },
  INTER_TOKEN_TIMEOUT: { path: "sources[].interTokenTimeoutMs", text: "INTER_TOKEN_TIMEOUT_S of every source" },
  MAX_RETRIES: { path: "retry.maxAttempts", text: "RETRY__MAX_ATTEMPTS minus 1" },
  CIRCUIT_BREAKER_THRESHOLD: { path: "breaker.failThreshold", text: "BREAKER__FAIL_THRESHOLD" },
  CIRCUIT_BREAKER_COOLDOWN: { path: "breaker.cooldownMs", text: "BREAKER__COOLDOWN_S" },
};
