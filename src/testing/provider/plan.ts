import { type Draw, lognormal } from "./random.js";

/** How long answers take. All 0 = at once. */
export interface LatencyOptions {
  /** Median time to the first token, ms. Default 0. */
  readonly ttftMedianMs?: number;
  /** Spread of the lognormal distribution; 0 = always the median. Default 0. */
  readonly ttftSigma?: number;
  /** Time per further token, ms. Default 0. */
  readonly tokenMs?: number;
}

/** How long answers are. Absent = the answer's own length. */
export interface OutputOptions {
  /** Median number of tokens, ≥ 1. */
  readonly medianTokens: number;
  /** Spread of the lognormal distribution; 0 = always the median. Default 0. */
  readonly sigma?: number;
  /** Upper bound. Default 4096. */
  readonly maxTokens?: number;
}

/** Faults by probability, drawn once a request; their rates together are at most 1. */
export interface FaultOptions {
  /** 500, 502 or 503. */
  readonly errorRate?: number;
  /** 429 although no limit is reached. */
  readonly rateLimitRate?: number;
  /** The answer ends before its end: a stream before its finish reason, a body before its last byte. */
  readonly cutRate?: number;
  /** The request is accepted and never answered, or the answer stops in the middle and the socket stays open. */
  readonly hangRate?: number;
  /** Where a hang happens. Default `either`. */
  readonly hangAt?: "start" | "middle" | "either";
  /** RST before the answer or in its middle. */
  readonly resetRate?: number;
  /** Retry-After of the drawn 429s, ms; 0 = none is sent. Default 1000. */
  readonly rateLimitRetryAfterMs?: number;
  /** After a start and after an outage nothing is answered before the server has been up this long, ms. Default 0. */
  readonly slowStartMs?: number;
  /** Every key is refused with 401. Default false. */
  readonly deadKey?: boolean;
}

export type DrawnFault = "none" | "error" | "rate_limit" | "cut" | "hang" | "reset";

/** What one request will meet: everything random about it, drawn before anything happens. */
export interface Plan {
  readonly fault: DrawnFault;
  /** Status of `error`. */
  readonly status: number;
  /** Share of the answer sent before a cut, hang or reset; null = nothing is sent, not even headers. */
  readonly brokenAt: number | null;
  /** A cut stream ends its HTTP body properly: only the missing terminator tells. */
  readonly cleanCut: boolean;
  readonly ttftMs: number;
  readonly tokenMs: number;
  /** null = the answer's own length. */
  readonly outputTokens: number | null;
}

const ERROR_STATUSES = [500, 502, 503];
const DEFAULT_MAX_TOKENS = 4096;

function drawFault(u: number, faults: FaultOptions): DrawnFault {
  const rates: [DrawnFault, number | undefined][] = [
    ["error", faults.errorRate],
    ["rate_limit", faults.rateLimitRate],
    ["cut", faults.cutRate],
    ["hang", faults.hangRate],
    ["reset", faults.resetRate],
  ];
  let edge = 0;
  for (const [fault, rate] of rates) {
    edge += rate ?? 0;
    if (u < edge) return fault;
  }
  return "none";
}

function drawBreak(fault: DrawnFault, hangAt: FaultOptions["hangAt"], draw: Draw): number | null {
  const early = draw() < 0.5;
  const share = draw();
  if (fault === "cut") return share;
  if (fault === "hang" && hangAt !== undefined && hangAt !== "either") return hangAt === "start" ? null : share;
  return early ? null : share;
}

function drawOutputTokens(output: OutputOptions | undefined, draw: Draw): number | null {
  if (output === undefined) return null;
  const drawn = Math.round(lognormal(draw, output.medianTokens, output.sigma ?? 0));
  return Math.min(output.maxTokens ?? DEFAULT_MAX_TOKENS, Math.max(1, drawn));
}

/** Draws a request's fate. The same draws give the same plan, whatever happens to other requests. */
export function drawPlan(
  draw: Draw,
  options: { faults: FaultOptions; latency: LatencyOptions; output: OutputOptions | undefined },
): Plan {
  const { faults, latency, output } = options;
  const fault = drawFault(draw(), faults);
  return {
    fault,
    status: ERROR_STATUSES[Math.floor(draw() * ERROR_STATUSES.length)] as number,
    brokenAt: drawBreak(fault, faults.hangAt, draw),
    cleanCut: draw() < 0.5,
    ttftMs: lognormal(draw, latency.ttftMedianMs ?? 0, latency.ttftSigma ?? 0),
    tokenMs: latency.tokenMs ?? 0,
    outputTokens: drawOutputTokens(output, draw),
  };
}
