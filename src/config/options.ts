import type { Thinking } from "../domain/chat.js";
import type { OcrReaderName, OcrTransportName } from "../domain/ocr.js";
import type { ProviderProfile } from "../domain/profile.js";
import type { Failover, SelectorName } from "../domain/scope.js";
import type { Secret } from "../domain/secret.js";
import type { LimitRule, Transient400 } from "../domain/source.js";
import type { BilledUsage } from "../domain/usage.js";
import type { AnswerCache } from "../ports/cache.js";
import type { Governor } from "../ports/governor.js";
import type { CaptureMode, Recorder } from "../ports/recorder.js";
import type { Runtime } from "../ports/runtime.js";
import type { Selector } from "../ports/selector.js";
import type { ChatTransport, EmbeddingTransport, OcrTransport } from "../ports/transport.js";

/** When the row of an attempt in flight is written: with the next flush, committed before the first byte leaves, or never. */
export type JournalMode = "async" | "before_send" | "off";
/** Whether a call waits until its telemetry row is committed. */
export type Durability = "async" | "sync";

/** Limits of one source, or of the whole scope. 0 = that gate is off (the default). */
export interface LimitOptions {
  /** Calls in flight at once. */
  maxConcurrency?: number;
  /** Requests per minute. */
  rpm?: number;
  /** Tokens per minute. */
  tpm?: number;
  /** `smooth` (default): paced, in any 60 s. `window`: counted per aligned minute, bursts allowed. */
  limitRule?: LimitRule;
  /** With `smooth`: no 60 s ever holds more than the limit. Default true. */
  strict?: boolean;
  /** Seconds of the request rate allowed at once when `strict` is off. Default 1. */
  burstS?: number;
  /** Seconds of the token rate allowed at once when `strict` is off. Default 3. */
  burstTokensS?: number;
}

/**
 * A whole profile, or some of its fields: these are laid over the profile named by `extends` (default: the one of the
 * host), objects deeply, lists as a whole.
 */
export type ProfileOptions = DeepPartial<ProviderProfile> & { readonly extends?: string };

type DeepPartial<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { readonly [K in keyof T]?: DeepPartial<T[K]> | undefined }
    : T;

/** One endpoint + credential + model. Endpoint, key and model have no default. */
export interface SourceOptions extends LimitOptions {
  /** Unique within the scope: letters, digits, `_`, `.`, `-`, at most 64. */
  name: string;
  /** Shown in telemetry. Default: the name without its trailing `_<number>`. */
  provider?: string;
  /** http(s), without user and password; `/chat/completions` is appended. */
  baseUrl: string;
  /** `"none"` = no Authorization header. */
  apiKey: string | Secret;
  model: string;
  /** Name of a provider profile, one of your own, or corrections of one. Default: by host, else `openai`. */
  profile?: string | ProfileOptions;
  /** `openai` for chat and embeddings; an OCR server's protocol, or `vlm`, for an OcrClient. Default `openai`. */
  transport?: "openai" | OcrTransportName;
  /** How a `vlm` source is asked and read. Default `auto`: by the model's name. */
  ocrReader?: OcrReaderName;
  /** What a `vlm` source is asked for the text of a page. Default: the reader's own words. */
  ocrPrompt?: string;
  /** The same for a layout; only readers that give one take it, and the answer must have the form they read. */
  ocrLayoutPrompt?: string;
  /** Longest attempt, in ms. Default 120 000. */
  timeoutMs?: number;
  /** Longest wait for the first token, in ms; ≤ timeoutMs. Default 60 000. */
  ttftTimeoutMs?: number;
  /** Longest silence between tokens, in ms; ≤ timeoutMs. Default 30 000. */
  interTokenTimeoutMs?: number;
  /** Tokens reserved per call; default: estimated from the prompt. Never usage, cost or telemetry. */
  estTokens?: number;
  /** `max`: the provider charges max_tokens at admission, so nothing is refunded. Default `actual`. */
  tpmCharge?: "actual" | "max";
  contextTokens?: number;
  /** Ask the provider to stream. Default true. */
  stream?: boolean;
  /** A stream without `[DONE]` counts as cut. Default false. */
  requireDone?: boolean;
  /** When a 400 is about the service, not the request. Default `off`. */
  transient400?: Transient400;
  /** For calls that don't say. Default: nothing is sent, and the model does what it does. */
  thinking?: Thinking;
  /** Further fields of every request body; the call's own win. */
  extraBody?: Readonly<Record<string, unknown>>;
  headers?: Readonly<Record<string, string>>;
  /** Share of the load among sources of one priority. Default 1. */
  weight?: number;
  /** Lower goes first. Default 0. */
  priority?: number;
  /** Leaves the source out without deleting it. Default false. */
  disabled?: boolean;
}

export interface RetryOptions {
  maxAttempts?: number;
  backoffBaseMs?: number;
  backoffMaxMs?: number;
  maxRateLimited?: number;
}

export interface BreakerOptions {
  failThreshold?: number;
  failRate?: number;
  minSamples?: number;
  windowMs?: number;
  cooldownMs?: number;
  cooldownMaxMs?: number;
}

export interface BackpressureOptions {
  stallWindowMs?: number;
  quotaFull?: "wait" | "fail_fast";
  whenOpen?: "wait" | "fail";
  backendGraceMs?: number;
  pollIntervalMs?: number;
}

/** The adaptive rules, each by its name. All of them off: limits, breaker and retries as configured, nothing learned. */
export interface SchedulingOptions {
  /** Rate and concurrency of a source follow what it bears: less after a 429, slowly more after that. Default true. */
  pacer?: boolean;
  /** Calls with many tokens go where requests are scarce, calls with few where tokens are. Default true. */
  sizeMatching?: boolean;
  /** When a breaker opens, attempts there that have no token yet move to another source, once a call. Default true. */
  evacuate?: boolean;
  /** A second attempt elsewhere beside one whose first token is late. Default false. */
  hedge?: boolean;
  /** Calls of one session prefer the source that served it last. Default false. */
  affinity?: boolean;
  /** How much a source's price counts against its speed: 0 (default) = not at all, 1 = as much. Needs `pricing`. */
  priceWeight?: number;
  /** How long before its start a call may be given its permit, in ms; ≤ 10 000. Default 0. */
  prefetchMs?: number;
  /** Limits and remainders in the headers of answers hold too, where they are below the configured ones. Default true. */
  headers?: boolean;
  /** A score of how attempts ended opens the breaker too, sooner than counts alone. Default true. */
  evidence?: boolean;
  /** A first token that is overdue counts against its source at once, before any timeout. Default true. */
  overdue?: boolean;
  /** A source that came back gets its load again step by step. Default true. */
  ramp?: boolean;
  /** Processes that share a scope get even shares of it. Default true. */
  fairness?: boolean;
  /** Retries of all calls together may not exceed a share of what succeeds. Default true. */
  retryBudget?: boolean;
  /** A call that no source would answer before its deadline is refused at once. Default true. */
  deadlineRefusal?: boolean;
  /** Reservations follow what calls of the same kind really used. Default true. */
  learnTokens?: boolean;
}

export interface TelemetryOptions {
  /** How much text is kept. Default `full`. */
  capture?: CaptureMode;
  /** Default `async`. */
  journal?: JournalMode;
  /** Default `async`. */
  durability?: Durability;
}

/** What a price table must answer: the cost of one attempt, null = unknown. `provider` as the source is configured. */
export interface PricingSource {
  costNanos(model: string, usage: BilledUsage, provider?: string): bigint | null;
}

/** Proxies by the scheme of the upstream address; empty or absent = direct. */
export interface ProxyEnv {
  readonly httpProxy?: string;
  readonly httpsProxy?: string;
  /** Hosts that are reached directly, with commas; `*` = all. */
  readonly noProxy?: string;
}

/** Which answers are given again, and from where (spec 04). */
export interface CacheOptions {
  /** Default `none`: nothing is kept. `redis` needs `redis.url`. */
  backend?: "none" | "memory" | "redis";
  /** A place of your own, or one that several clients share; in place of `backend`, `ttlMs` and `maxBytes`. */
  store?: AnswerCache;
  /** How long an answer is good for, in ms. Default one day. */
  ttlMs?: number;
  /** Bytes of answers kept in memory. Default 64 MiB. */
  maxBytes?: number;
  /** Answers are shared only within one namespace. Default "". */
  namespace?: string;
  /** Secret part of every key. Default "". */
  salt?: string;
  /** Identical calls in flight share one chain of attempts, even where nothing is kept. Default false. */
  coalesce?: boolean;
}

/** How Redis is reached, for what is kept there. For Sentinel, a cluster or a client of your own: `new RedisCache(…)`. */
export interface RedisOptions {
  /** `redis://[user:password@]host[:port][/database]`, or `rediss://` for TLS. */
  url?: string | Secret;
  /** Longest wait for an answer, in ms. Default 250. */
  timeoutMs?: number;
}

/** What every client can be given. Only `scope` and `sources` have no default. */
export interface ScopeOptions {
  scope: string;
  sources: readonly SourceOptions[];
  retry?: RetryOptions;
  breaker?: BreakerOptions;
  backpressure?: BackpressureOptions;
  /** Limits over all sources together. */
  global?: LimitOptions;
  /** Adaptive rules, each of which can be switched off. */
  scheduling?: SchedulingOptions;
  /** A built-in order or your own. Default `health_aware`. */
  selector?: SelectorName | Selector;
  failover?: Failover;
  /** Longest call from its start, queue and retries included, in ms. Default: none. */
  deadlineMs?: number;
  /** Share one to share its limits; must be of the same scope. Default: a new one, kept where `limiterBackend` says. */
  governor?: Governor;
  /** Where limits and breakers live: in this process, or for a whole fleet in Redis (`redis.url`). Default `memory`. */
  limiterBackend?: "memory" | "redis";
  /** Where telemetry goes. Default `"none"`. */
  telemetry?: Recorder | readonly Recorder[] | "none";
  telemetryOptions?: TelemetryOptions;
  redis?: RedisOptions;
  pricing?: PricingSource;
  /** Clock, sleep, randomness and ids, for tests and simulations. */
  runtime?: Runtime;
  /** Life of a permit without renewal, in ms; ≥ 3 000. Default 30 000. */
  leaseTtlMs?: number;
  /** Default true. */
  leaseRenewal?: boolean;
  /** Folder in which `polygateway status` finds what this client does, as a small file once a second. Default: none. */
  statusPath?: string;
  /** Default: `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` of the process environment. */
  proxyEnv?: ProxyEnv;
}

/** Everything a `GatewayClient` can be given. */
export interface GatewayOptions extends ScopeOptions {
  /** Keeps answers, to give them again for the same request: `new MemoryCache()`, a RedisCache, or one of your own. Default: none. */
  cache?: CacheOptions | AnswerCache;
  /** Sends attempts in place of the built-in transport. */
  transport?: ChatTransport;
}

/** Everything an `OcrClient` can be given. Its sources say `transport`: monkey-ocr, mineru, paddle, mistral or vlm. */
export interface OcrOptions extends ScopeOptions {
  /** Largest picture or document that is sent, in bytes. Default 32 MiB. */
  maxImageBytes?: number;
  /** Sends attempts in place of the built-in transports. */
  transport?: OcrTransport;
}

/** Everything an `EmbeddingClient` can be given. `batchSize` has no default either: it decides what a source refuses. */
export interface EmbeddingOptions extends ScopeOptions {
  /** Texts per request; a whole number from 1 to 100 000. */
  batchSize: number;
  /** Width every vector must have. Default: whatever comes, but the same within a call. */
  expectedDim?: number;
  /** Scale every vector to length 1. Default false. */
  normalize?: boolean;
  /** Batches of one call in flight at once. Default 1. */
  concurrency?: number;
  /** Sends attempts in place of the built-in transport. */
  transport?: EmbeddingTransport;
}
