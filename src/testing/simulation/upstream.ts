import { BinaryHeap } from "../../domain/binary-heap.js";
import type { RateLimitDimension, UpstreamLimits } from "../../domain/upstream-limits.js";
import { Bucket } from "./bucket.js";
import { createDraws, type Draws } from "./draws.js";
import { activeFault, cutMomentMs } from "./faults.js";
import type { UpstreamSpec } from "./scenario.js";

/** Of the first source; the others count on. */
export const UPSTREAM_STREAM = 2_000_000;
/** Spec 10 §9. */
const TTFT_SIGMA = 0.35;
const TPOT_SIGMA = 0.25;
const SERVER_ERROR_SHARE = 0.002;
/** How long a refusal takes; open in the spec. */
const REFUSAL_MS = 50;
const DEAD_KEY_MS = 100;
const SERVER_ERROR_MS = 500;

/** What the other side answers when it doesn't take a request. */
export interface UpstreamRefusal {
  readonly statusCode: number;
  readonly code: string;
  readonly message: string;
  readonly retryAfterS: number | null;
}

/** One request in the provider's hands. Times are from its start. */
export interface Exchange {
  readonly startMs: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** null = never. */
  readonly firstTokenMs: number | null;
  /** When the answer is complete, refused or cut; Infinity = never. */
  readonly durationMs: number;
  readonly refusal: UpstreamRefusal | null;
  /** The connection breaks at the end. */
  readonly cut: boolean;
  readonly limits: UpstreamLimits | undefined;
  /** It holds a slot. */
  inProgress: boolean;
}

/** Share of its limits that a source grants at a moment. */
export function shareOf({ ramp }: UpstreamSpec, atMs: number): number {
  if (ramp === undefined || atMs >= ramp.overMs) return 1;
  return ramp.fromShare + ((1 - ramp.fromShare) * Math.max(0, atMs)) / ramp.overMs;
}

/**
 * One provider's account: buckets for requests and tokens, hard concurrency, latency by tokens, faults. Input is charged
 * when a request is taken, output when it is complete. Passive: it is told the time, and sets no timer.
 */
export class SimulatedSource {
  readonly spec: UpstreamSpec;
  inProgress = 0;
  /** Most requests it ever held at once. */
  peakInProgress = 0;
  readonly #draws: Draws;
  readonly #requests: Bucket | null;
  readonly #tokens: Bucket | null;
  readonly #ends = new BinaryHeap<Exchange>((a, b) => endOf(a) < endOf(b));

  constructor(spec: UpstreamSpec, seed: number, stream: number) {
    this.spec = spec;
    this.#draws = createDraws(seed, stream);
    const share = (atMs: number): number => shareOf(spec, atMs);
    this.#requests = spec.rpm > 0 ? new Bucket(spec.rpm, spec.bucketS, share) : null;
    this.#tokens = spec.tpm > 0 ? new Bucket(spec.tpm, spec.bucketS, share) : null;
  }

  begin(nowMs: number, inputTokens: number, outputTokens: number): Exchange {
    this.#catchUp(nowMs);
    const refusal = this.#refusalAt(nowMs, inputTokens);
    const limits = this.#limits();
    if (refusal !== null) {
      const durationMs =
        refusal.statusCode === 500 ? this.#draws.lognormal(SERVER_ERROR_MS, TTFT_SIGMA) : refusal.afterMs;
      return exchangeOf(nowMs, inputTokens, 0, { durationMs, refusal, limits });
    }
    this.inProgress += 1;
    this.peakInProgress = Math.max(this.peakInProgress, this.inProgress);
    return this.#answer(nowMs, inputTokens, outputTokens, limits);
  }

  /** The client hung up, or a shared server says that it is done. What was already written is charged. */
  leave(exchange: Exchange, nowMs: number, writtenTokens: number): void {
    if (!exchange.inProgress) return;
    this.#catchUp(nowMs);
    if (!exchange.inProgress) return;
    this.#release(exchange, writtenTokens);
  }

  #answer(startMs: number, inputTokens: number, outputTokens: number, limits: UpstreamLimits | undefined): Exchange {
    const { spec } = this;
    const fault = activeFault(spec.faults, startMs);
    const hangs = fault?.kind === "half_dead" && this.#draws.chance(fault.hangShare);
    const slow = spec.slowStart !== undefined && this.#draws.chance(spec.slowStart.share) ? spec.slowStart.factor : 1;
    const ttftMs = this.#draws.lognormal(spec.ttftMs, TTFT_SIGMA) * slow;
    const tpotMs = this.#draws.lognormal(spec.tpotMs, TPOT_SIGMA);
    const wholeMs = ttftMs + outputTokens * tpotMs;
    const cutMs = cutMomentMs(spec.faults, startMs, startMs + wholeMs);
    const durationMs = cutMs === null ? wholeMs : cutMs - startMs;
    const firstTokenMs = ttftMs <= durationMs ? ttftMs : null;
    const exchange = exchangeOf(startMs, inputTokens, outputTokens, {
      durationMs: hangs ? Infinity : durationMs,
      firstTokenMs: hangs ? null : firstTokenMs,
      cut: cutMs !== null,
      limits,
    });
    exchange.inProgress = true;
    // A shared server ends its exchanges itself, when their work is done.
    if (!hangs && spec.knee === undefined) this.#ends.push(exchange);
    return exchange;
  }

  #refusalAt(nowMs: number, inputTokens: number): (UpstreamRefusal & { readonly afterMs: number }) | null {
    const fault = activeFault(this.spec.faults, nowMs);
    if (fault?.kind === "dead_key") return { ...DEAD_KEY, afterMs: DEAD_KEY_MS };
    if (fault?.kind === "quota") return { ...NO_QUOTA, afterMs: DEAD_KEY_MS };
    if (fault?.kind === "outage" || fault?.kind === "flapping") return { ...DOWN, afterMs: DEAD_KEY_MS };
    const limited = this.#limitedBy(nowMs, inputTokens);
    if (limited !== null) {
      if (this.spec.chargesRejected) this.#requests?.chargeRefused(1);
      return { ...this.#tooMany(limited.dimension, limited.waitMs), afterMs: REFUSAL_MS };
    }
    this.#requests?.charge(1);
    if (this.#draws.chance(SERVER_ERROR_SHARE)) return { ...BROKEN, afterMs: SERVER_ERROR_MS };
    this.#tokens?.charge(inputTokens);
    return null;
  }

  #limitedBy(nowMs: number, inputTokens: number): { dimension: RateLimitDimension; waitMs: number } | null {
    const { spec } = this;
    const slots = Math.max(1, Math.floor(spec.concurrency * shareOf(spec, nowMs)));
    if (spec.concurrency > 0 && this.inProgress >= slots) return { dimension: "concurrency", waitMs: 1_000 };
    const requestsMs = this.#requests?.waitMs(1) ?? 0;
    if (requestsMs > 0) return { dimension: "requests", waitMs: requestsMs };
    const tokensMs = this.#tokens?.waitMs(inputTokens) ?? 0;
    return tokensMs > 0 ? { dimension: "tokens", waitMs: tokensMs } : null;
  }

  /** A source that says when to come back also says what was exceeded; the others are as taciturn as many relays. */
  #tooMany(dimension: RateLimitDimension, waitMs: number): UpstreamRefusal {
    const { retryAfter } = this.spec;
    const message = retryAfter ? TOO_MANY[dimension] : "Too many requests, please slow down.";
    return {
      statusCode: 429,
      code: "rate_limit_exceeded",
      message,
      retryAfterS: retryAfter ? Math.max(1, Math.ceil(waitMs / 1_000)) : null,
    };
  }

  #limits(): UpstreamLimits | undefined {
    if (!this.spec.headers) return undefined;
    return {
      ...(this.#requests === null
        ? {}
        : { limitRequests: this.#requests.limitPerMinute(), remainingRequests: this.#requests.remaining() }),
      ...(this.#tokens === null
        ? {}
        : { limitTokens: this.#tokens.limitPerMinute(), remainingTokens: this.#tokens.remaining() }),
    };
  }

  /** Ends what is over by now, each at its own moment, so that buckets fill and empty in the right order. */
  #catchUp(nowMs: number): void {
    for (let next = this.#ends.peek(); next !== undefined && endOf(next) <= nowMs; next = this.#ends.peek()) {
      this.#ends.pop();
      if (!next.inProgress) continue;
      this.#refill(endOf(next));
      this.#release(next, next.cut ? 0 : next.outputTokens);
    }
    this.#refill(nowMs);
  }

  #refill(nowMs: number): void {
    this.#requests?.refill(nowMs);
    this.#tokens?.refill(nowMs);
  }

  #release(exchange: Exchange, writtenTokens: number): void {
    exchange.inProgress = false;
    this.inProgress -= 1;
    this.#tokens?.charge(writtenTokens);
  }
}

const DEAD_KEY: UpstreamRefusal = {
  statusCode: 401,
  code: "invalid_api_key",
  message: "Incorrect API key provided.",
  retryAfterS: null,
};
const NO_QUOTA: UpstreamRefusal = {
  statusCode: 429,
  code: "insufficient_quota",
  message: "You exceeded your current quota, please check your plan and billing details.",
  retryAfterS: null,
};
const DOWN: UpstreamRefusal = {
  statusCode: 503,
  code: "service_unavailable",
  message: "Service Unavailable",
  retryAfterS: null,
};
const BROKEN: UpstreamRefusal = {
  statusCode: 500,
  code: "server_error",
  message: "The server had an error while processing your request.",
  retryAfterS: null,
};
const TOO_MANY: Readonly<Record<RateLimitDimension, string>> = {
  requests: "Rate limit reached on requests per min (RPM).",
  tokens: "Rate limit reached on tokens per min (TPM).",
  concurrency: "Too many concurrent requests.",
  unknown: "Too many requests.",
};

function endOf(exchange: Exchange): number {
  return exchange.startMs + exchange.durationMs;
}

function exchangeOf(
  startMs: number,
  inputTokens: number,
  outputTokens: number,
  rest: Pick<Exchange, "durationMs" | "limits"> & Partial<Pick<Exchange, "firstTokenMs" | "refusal" | "cut">>,
): Exchange {
  return {
    startMs,
    inputTokens,
    outputTokens,
    firstTokenMs: rest.firstTokenMs ?? null,
    durationMs: rest.durationMs,
    refusal: rest.refusal ?? null,
    cut: rest.cut ?? false,
    limits: rest.limits,
    inProgress: false,
  };
}
