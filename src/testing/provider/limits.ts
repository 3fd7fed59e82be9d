/** Limits a provider enforces itself, with 429. 0 or absent = off. */
export interface ProviderLimits {
  /** Requests per minute. */
  readonly rpm?: number;
  /** Tokens per minute, prompt and answer. */
  readonly tpm?: number;
  /** Requests in progress. */
  readonly maxConcurrency?: number;
  /** `bucket` (default) refills steadily · `window` counts per aligned minute of the provider's wall clock. */
  readonly rule?: "bucket" | "window";
  /** Seconds of the rate a full bucket holds, never less than one request. Default 60. */
  readonly bucketSeconds?: number;
  /** Send Retry-After and x-ratelimit-*. Default true. */
  readonly announce?: boolean;
}

export type LimitedBy = "requests" | "tokens" | "concurrency";

/** State of one dimension as the x-ratelimit-* headers tell it. */
export interface Allowance {
  readonly limit: number;
  readonly remaining: number;
  readonly resetMs: number;
}

export interface LimitDecision {
  /** null = admitted and booked; otherwise nothing was booked. */
  readonly refusedBy: LimitedBy | null;
  readonly retryAfterMs: number;
  readonly requests: Allowance | null;
  readonly tokens: Allowance | null;
}

export interface LimiterMoment {
  /** Monotonic. */
  readonly nowMs: number;
  readonly wallNowMs: number;
  /** Requests in progress, this one not counted. */
  readonly inProgress: number;
}

export interface Limiter {
  admit(tokens: number, moment: LimiterMoment): LimitDecision;
}

interface Meter {
  /** 0 = fits now. */
  waitMs(amount: number, moment: LimiterMoment): number;
  book(amount: number): void;
  allowance(): Allowance;
}

const MINUTE_MS = 60_000;
/** A slot in progress has no known end; this is what a refused client is told. */
const CONCURRENCY_RETRY_MS = 1_000;

function bucketMeter(limit: number, bucketSeconds: number): Meter {
  const perMs = limit / MINUTE_MS;
  const capacity = Math.max(1, perMs * bucketSeconds * 1000);
  let level = capacity;
  let filledAtMs: number | null = null;
  return {
    waitMs(amount, { nowMs }) {
      level = Math.min(capacity, level + (nowMs - (filledAtMs ?? nowMs)) * perMs);
      filledAtMs = nowMs;
      // More than the bucket ever holds passes when it is full: otherwise it would wait for ever.
      const needed = Math.min(amount, capacity);
      return level + 1e-9 >= needed ? 0 : (needed - level) / perMs;
    },
    book(amount) {
      level -= amount;
    },
    allowance: () => ({ limit, remaining: Math.max(0, Math.floor(level)), resetMs: (capacity - level) / perMs }),
  };
}

function windowMeter(limit: number): Meter {
  let windowStartMs = Number.NEGATIVE_INFINITY;
  let used = 0;
  let leftMs = 0;
  return {
    waitMs(amount, { wallNowMs }) {
      const start = Math.floor(wallNowMs / MINUTE_MS) * MINUTE_MS;
      if (start !== windowStartMs) used = 0;
      windowStartMs = start;
      leftMs = start + MINUTE_MS - wallNowMs;
      return used === 0 || used + amount <= limit ? 0 : leftMs;
    },
    book(amount) {
      used += amount;
    },
    allowance: () => ({ limit, remaining: Math.max(0, limit - used), resetMs: leftMs }),
  };
}

function meterFor(limit: number | undefined, { rule, bucketSeconds }: ProviderLimits): Meter | null {
  if (!limit) return null;
  return rule === "window" ? windowMeter(limit) : bucketMeter(limit, bucketSeconds ?? 60);
}

/** Pure apart from its own counters: time comes with each question. */
export function createLimiter(limits: ProviderLimits): Limiter {
  const requests = meterFor(limits.rpm, limits);
  const tokens = meterFor(limits.tpm, limits);
  const maxConcurrency = limits.maxConcurrency || Number.POSITIVE_INFINITY;

  function decide(refusedBy: LimitedBy | null, retryAfterMs: number): LimitDecision {
    return {
      refusedBy,
      retryAfterMs,
      requests: requests?.allowance() ?? null,
      tokens: tokens?.allowance() ?? null,
    };
  }

  return {
    admit(tokenCount, moment) {
      const requestWaitMs = requests?.waitMs(1, moment) ?? 0;
      const tokenWaitMs = tokens?.waitMs(tokenCount, moment) ?? 0;
      if (moment.inProgress >= maxConcurrency) return decide("concurrency", CONCURRENCY_RETRY_MS);
      if (requestWaitMs > 0) return decide("requests", requestWaitMs);
      if (tokenWaitMs > 0) return decide("tokens", tokenWaitMs);
      requests?.book(1);
      tokens?.book(tokenCount);
      return decide(null, 0);
    },
  };
}

/** "250ms", "1.5s", "6m0s": how providers write the time to a reset. */
export function formatReset(resetMs: number): string {
  const ms = Math.max(0, Math.ceil(resetMs));
  if (ms < 1000) return `${ms}ms`;
  if (ms < MINUTE_MS) return `${ms / 1000}s`;
  return `${Math.floor(ms / MINUTE_MS)}m${Math.ceil((ms % MINUTE_MS) / 1000)}s`;
}

function addAllowance(headers: Record<string, string>, name: string, allowance: Allowance | null): void {
  if (allowance === null) return;
  headers[`x-ratelimit-limit-${name}`] = String(allowance.limit);
  headers[`x-ratelimit-remaining-${name}`] = String(allowance.remaining);
  headers[`x-ratelimit-reset-${name}`] = formatReset(allowance.resetMs);
}

export function retryAfterHeaders(retryAfterMs: number): Record<string, string> {
  const ms = Math.ceil(retryAfterMs);
  return { "retry-after": String(Math.ceil(ms / 1000)), "retry-after-ms": String(ms) };
}

/** The headers that tell a client how much is left and, on a refusal, when to come back. */
export function rateLimitHeaders(decision: LimitDecision): Record<string, string> {
  const headers = decision.refusedBy === null ? {} : retryAfterHeaders(decision.retryAfterMs);
  addAllowance(headers, "requests", decision.requests);
  addAllowance(headers, "tokens", decision.tokens);
  return headers;
}
