/**
 * Compares a provider's ledger with the limits a source was configured with (spec 02 §3). Pure: no clock, no IO.
 * The judge sees only what arrived, so it allows exactly what that section allows such a judge to overlook.
 */
import type { LimitConfig } from "../../domain/source.js";
import type { LedgerEntry } from "./ledger.js";

const MINUTE_MS = 60_000;
/** A client that aborts frees its permit at once; the provider learns of it a little later. */
export const ABORT_OVERLAP_MS = 250;
/** How much later than its grant a request may arrive; decides to which aligned minute it belongs. */
const ARRIVAL_LAG_MS = 500;
/** Completion tokens reserved when a request names no limit of its own (spec 02 §3). */
const DEFAULT_COMPLETION_ESTIMATE = 1_024;

export type JudgedEntry = Pick<
  LedgerEntry,
  "id" | "arrivedAtMs" | "endedAtMs" | "promptTokens" | "billedTokens" | "maxTokens" | "clientClosed"
>;

export interface WindowPeak {
  /** What the fullest window holds. */
  readonly peak: number;
  /** Where it starts; null for an empty ledger. */
  readonly startMs: number | null;
}

type Amount = (entry: JudgedEntry) => number;

function byArrival(ledger: readonly JudgedEntry[]): JudgedEntry[] {
  return [...ledger].sort((a, b) => a.arrivedAtMs - b.arrivedAtMs);
}

/** Walks all half-open windows that start at an arrival: one of them is always the fullest. */
function forEachWindow(
  sorted: readonly JudgedEntry[],
  windowMs: number,
  amount: Amount,
  visit: (startMs: number, sum: number) => void,
): void {
  let end = 0;
  let sum = 0;
  sorted.forEach((first, start) => {
    for (
      let next = sorted[end];
      next !== undefined && next.arrivedAtMs < first.arrivedAtMs + windowMs;
      next = sorted[end]
    ) {
      sum += amount(next);
      end += 1;
    }
    // Of several arrivals in the same moment only the first sees all of them.
    if (start === 0 || sorted[start - 1]?.arrivedAtMs !== first.arrivedAtMs) visit(first.arrivedAtMs, sum);
    sum -= amount(first);
  });
}

function peakOver(ledger: readonly JudgedEntry[], windowMs: number, amount: Amount): WindowPeak {
  let best: WindowPeak = { peak: 0, startMs: null };
  forEachWindow(byArrival(ledger), windowMs, amount, (startMs, sum) => {
    if (sum > best.peak || best.startMs === null) best = { peak: sum, startMs };
  });
  return best;
}

/** Most requests in any half-open window `[t, t + windowMs)`, wherever it starts. */
export function maxRequestsInWindow(ledger: readonly JudgedEntry[], windowMs = MINUTE_MS): WindowPeak {
  return peakOver(ledger, windowMs, () => 1);
}

/** Most billed tokens in any half-open window, each request with all its tokens at its arrival. */
export function maxTokensInWindow(ledger: readonly JudgedEntry[], windowMs = MINUTE_MS): WindowPeak {
  return peakOver(ledger, windowMs, (entry) => entry.billedTokens);
}

/**
 * Most requests in progress at once. Of a request that its client left, the last `ABORT_OVERLAP_MS` don't count;
 * one without an end lasts for ever.
 */
export function maxConcurrent(ledger: readonly JudgedEntry[], abortOverlapMs = ABORT_OVERLAP_MS): WindowPeak {
  const steps: { atMs: number; change: 1 | -1 }[] = [];
  for (const { arrivedAtMs, endedAtMs, clientClosed } of ledger) {
    const endMs = (endedAtMs ?? Number.POSITIVE_INFINITY) - (clientClosed ? abortOverlapMs : 0);
    if (endMs <= arrivedAtMs) continue;
    steps.push({ atMs: arrivedAtMs, change: 1 }, { atMs: endMs, change: -1 });
  }
  // At the same moment an end frees its slot before a beginning takes one.
  steps.sort((a, b) => a.atMs - b.atMs || a.change - b.change);
  let current = 0;
  let best: WindowPeak = { peak: 0, startMs: null };
  for (const { atMs, change } of steps) {
    current += change;
    if (current > best.peak) best = { peak: current, startMs: atMs };
  }
  return best;
}

export type JudgedGate = "rpm" | "tpm" | "concurrency";

/** One gate held against the ledger. */
export interface LimitVerdict {
  readonly gate: JudgedGate;
  readonly ok: boolean;
  /** As configured. */
  readonly limit: number;
  /** The most that spec 02 §3 lets this judge see where the observed value stands. */
  readonly allowed: number;
  readonly observed: number;
  /** Where the worst window starts, or the fullest moment is; null for an empty ledger. */
  readonly atMs: number | null;
  /** One sentence for people. */
  readonly message: string;
}

export interface LimitJudgement {
  readonly ok: boolean;
  /** One a gate that is on. */
  readonly verdicts: readonly LimitVerdict[];
  readonly violations: readonly LimitVerdict[];
}

export interface JudgeOptions {
  /** What the client reserved for a request. Default: prompt + its token limit (at most, and without one, 1,024). */
  readonly estimateOf?: Amount;
}

/** The limits to judge by; absent numbers are off, the rest has the defaults of a source. */
export type JudgedLimits = Partial<LimitConfig>;

function defaultEstimate({ promptTokens, maxTokens }: JudgedEntry): number {
  return promptTokens + Math.min(maxTokens ?? DEFAULT_COMPLETION_ESTIMATE, DEFAULT_COMPLETION_ESTIMATE);
}

/** What may pass in one window beyond the limit when short bursts are allowed (`strict: false`). */
function burstAllowance(limits: JudgedLimits, gate: "rpm" | "tpm"): number {
  if (limits.strict !== false) return 0;
  if (gate === "rpm") return Math.max(4, ((limits.burstS ?? 1) * (limits.rpm ?? 0)) / 60);
  return ((limits.burstTokensS ?? 3) * (limits.tpm ?? 0)) / 60;
}

/** A prefix-summed list of moments: how much lies before a moment. */
function cumulative(points: { atMs: number; amount: number }[]): (beforeMs: number) => number {
  points.sort((a, b) => a.atMs - b.atMs);
  const sums = [0];
  for (const { amount } of points) sums.push((sums[sums.length - 1] as number) + amount);
  return (beforeMs) => {
    let low = 0;
    let high = points.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((points[middle] as { atMs: number }).atMs < beforeMs) low = middle + 1;
      else high = middle;
    }
    return sums[low] as number;
  };
}

/** How much of an amount belongs to requests in progress at a moment: arrived before it, not ended before it. */
function inProgressAt(ledger: readonly JudgedEntry[], amount: Amount): (atMs: number) => number {
  const arrived = cumulative(ledger.map((entry) => ({ atMs: entry.arrivedAtMs, amount: amount(entry) })));
  const ended = cumulative(
    ledger.map((entry) => ({ atMs: entry.endedAtMs ?? Number.POSITIVE_INFINITY, amount: amount(entry) })),
  );
  return (atMs) => arrived(atMs) - ended(atMs);
}

/**
 * Tokens beyond the limit that a window may show: one request's estimate; what requests in progress at its start had
 * reserved before it and gave back in it; and what requests used above their estimate, which no admission can foresee.
 */
function tokenAllowance(
  ledger: readonly JudgedEntry[],
  windowMs: number,
  estimateOf: Amount,
): (startMs: number) => number {
  const returned = inProgressAt(ledger, (entry) => Math.max(0, estimateOf(entry) - entry.billedTokens));
  const overfilled = cumulative(
    ledger.map((entry) => ({ atMs: entry.arrivedAtMs, amount: Math.max(0, entry.billedTokens - estimateOf(entry)) })),
  );
  const oneEstimate = ledger.reduce((largest, entry) => Math.max(largest, estimateOf(entry)), 0);
  return (startMs) => oneEstimate + returned(startMs) + overfilled(startMs + windowMs) - overfilled(startMs);
}

interface Worst {
  observed: number;
  allowed: number;
  atMs: number | null;
}

function emptyWindow(allowedAt: (startMs: number) => number): Worst {
  return { observed: 0, allowed: allowedAt(0), atMs: null };
}

function worseOf(known: Worst, next: Worst): Worst {
  const isWorse = known.atMs === null || next.observed - next.allowed > known.observed - known.allowed;
  return isWorse ? next : known;
}

/** The window closest to, or furthest beyond, what it may hold. */
function worstWindow(ledger: readonly JudgedEntry[], amount: Amount, allowedAt: (startMs: number) => number): Worst {
  let worst = emptyWindow(allowedAt);
  forEachWindow(byArrival(ledger), MINUTE_MS, amount, (atMs, observed) => {
    worst = worseOf(worst, { observed, allowed: allowedAt(atMs), atMs });
  });
  return worst;
}

/** Rule `window`: what surely was granted within one aligned minute. */
function worstAlignedMinute(
  ledger: readonly JudgedEntry[],
  amount: Amount,
  allowedAt: (startMs: number) => number,
): Worst {
  const minutes = new Map<number, number>();
  for (const entry of ledger) {
    const startMs = Math.floor(entry.arrivedAtMs / MINUTE_MS) * MINUTE_MS;
    if (entry.arrivedAtMs - startMs < ARRIVAL_LAG_MS) continue;
    minutes.set(startMs, (minutes.get(startMs) ?? 0) + amount(entry));
  }
  let worst = emptyWindow(allowedAt);
  for (const [atMs, observed] of minutes) worst = worseOf(worst, { observed, allowed: allowedAt(atMs), atMs });
  return worst;
}

function describe(gate: JudgedGate, { observed, allowed, atMs }: Worst, ok: boolean, where: string): string {
  const what = { rpm: "requests", tpm: "tokens", concurrency: "requests in progress" }[gate];
  const when = atMs === null ? "" : ` from ${new Date(atMs).toISOString()}`;
  const verb = ok ? "within" : "above";
  return `${gate}: ${observed} ${what} ${where}${when}, ${verb} the ${Math.floor(allowed)} allowed`;
}

function verdict(gate: JudgedGate, limit: number, worst: Worst, where: string): LimitVerdict {
  const { observed, allowed, atMs } = worst;
  const ok = observed <= allowed + 1e-6;
  return { gate, ok, limit, allowed, observed, atMs, message: describe(gate, worst, ok, where) };
}

function judgeRate(
  gate: "rpm" | "tpm",
  ledger: readonly JudgedEntry[],
  limits: JudgedLimits,
  estimateOf: Amount,
): LimitVerdict | null {
  const limit = limits[gate] ?? 0;
  if (limit === 0) return null;
  const amount: Amount = gate === "rpm" ? () => 1 : (entry) => entry.billedTokens;
  const extra = gate === "rpm" ? () => 0 : tokenAllowance(ledger, MINUTE_MS, estimateOf);
  if (limits.limitRule === "window") {
    const worst = worstAlignedMinute(ledger, amount, (startMs) => limit + extra(startMs));
    return verdict(gate, limit, worst, "in the aligned minute");
  }
  const burst = burstAllowance(limits, gate);
  const worst = worstWindow(ledger, amount, (startMs) => limit + burst + extra(startMs));
  return verdict(gate, limit, worst, "in the 60 s");
}

function judgeConcurrency(ledger: readonly JudgedEntry[], limit: number): LimitVerdict | null {
  if (limit === 0) return null;
  const { peak, startMs } = maxConcurrent(ledger);
  return verdict("concurrency", limit, { observed: peak, allowed: limit, atMs: startMs }, "at once");
}

/**
 * Holds a ledger against the limits of one source; for limits of a scope, give the joined ledgers of all its sources.
 * Everything that arrived counts, whatever it was answered. Never throws.
 */
export function judgeLimits(
  ledger: readonly JudgedEntry[],
  limits: JudgedLimits,
  options: JudgeOptions = {},
): LimitJudgement {
  const estimateOf = options.estimateOf ?? defaultEstimate;
  const verdicts = [
    judgeConcurrency(ledger, limits.maxConcurrency ?? 0),
    judgeRate("rpm", ledger, limits, estimateOf),
    judgeRate("tpm", ledger, limits, estimateOf),
  ].filter((one) => one !== null);
  const violations = verdicts.filter(({ ok }) => !ok);
  return { ok: violations.length === 0, verdicts, violations };
}
