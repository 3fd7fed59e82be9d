import { createdAtMs, nanosToNumber, numberToNanos, type StoredRow } from "./columns.js";
import { countPrice } from "./priced.js";

export type ReportGrouping = "model" | "source" | "session" | "scope" | "day";
export const REPORT_GROUPINGS: readonly ReportGrouping[] = ["model", "source", "session", "scope", "day"];

export interface Percentiles {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

export interface ReportGroup {
  /** Value of the grouping column; null = rows that have none (ends without an attempt). */
  readonly key: string | null;
  /** Calls that ended (rows with `final`). */
  readonly calls: number;
  /** Answered calls, cache hits included. */
  readonly answered: number;
  /** Calls their caller stopped: neither answered nor failed. */
  readonly cancelled: number;
  /** Answered share of the calls that were not cancelled; null without any. */
  readonly successRate: number | null;
  /** Rows of sent requests. */
  readonly attempts: number;
  readonly attemptsPerCall: number | null;
  readonly cacheHits: number;
  readonly tokens: { prompt: number; cached: number; reasoning: number; completion: number };
  /** Sum of the known costs. */
  readonly cost: number;
  /** Attempts that were answered or used tokens, and whose price is known. */
  readonly attemptsWithPrice: number;
  /** Attempts that were answered or used tokens, but whose price is unknown. */
  readonly attemptsWithoutPrice: number;
  /** Over successful attempts; null when there is none. */
  readonly latencyMs: Percentiles | null;
  readonly ttftMs: Percentiles | null;
  /** Attempts that failed, and what they took; cancelled ones are not failures. */
  readonly retries: FailedAttempts & { readonly cost: number };
}

interface FailedAttempts {
  attempts: number;
  /** Of those, sent by processes that ended before the answer was recorded: nobody knows what they cost. */
  abandoned: number;
  tokens: number;
  attemptsWithPrice: number;
  attemptsWithoutPrice: number;
  timeMs: number;
}

export interface ReportError {
  /** The message with ids and long numbers removed, so that equal failures count together. */
  readonly error: string;
  readonly outcome: string;
  /** HTTP statuses it came with, ascending; empty when no answer had begun. */
  readonly statusCodes: readonly number[];
  readonly count: number;
  /** One message as it was recorded. */
  readonly sample: string;
}

export interface Report {
  readonly total: ReportGroup;
  /** Most calls first (days: in order); empty without a grouping. */
  readonly groups: readonly ReportGroup[];
  readonly errors: readonly ReportError[];
  readonly firstAtMs: number | null;
  readonly lastAtMs: number | null;
}

export interface ReportBuilder {
  add(row: StoredRow): void;
  finish(): Report;
}

interface Group {
  key: string | null;
  calls: number;
  answered: number;
  cancelled: number;
  attempts: number;
  cacheHits: number;
  tokens: { prompt: number; cached: number; reasoning: number; completion: number };
  costNanos: bigint;
  attemptsWithPrice: number;
  attemptsWithoutPrice: number;
  latencies: number[];
  ttfts: number[];
  retries: FailedAttempts & { costNanos: bigint };
}

type ErrorKind = ReportError & { count: number; statusCodes: number[] };

const TOP_ERRORS = 10;
const MAX_ERROR_KINDS = 5_000;

/** Adds up rows one by one; pure. */
export function createReport(by?: ReportGrouping): ReportBuilder {
  const total = emptyGroup(null);
  const groups = new Map<string | null, Group>();
  const errors = new Map<string, ErrorKind>();
  /** Calls with an attempt that was abandoned: their end says the same again. */
  const abandonedCalls = new Set<unknown>();
  const abandonedEnds: StoredRow[] = [];
  let firstAtMs: number | null = null;
  let lastAtMs: number | null = null;

  return {
    add(row) {
      const madeAtMs = createdAtMs(row);
      if (madeAtMs !== null) {
        firstAtMs = Math.min(firstAtMs ?? madeAtMs, madeAtMs);
        lastAtMs = Math.max(lastAtMs ?? madeAtMs, madeAtMs);
      }
      addTo(total, row);
      if (by !== undefined) addTo(groupFor(groups, keyOf(row, by, madeAtMs)), row);
      if (row.outcome !== "abandoned") addError(errors, row);
      else if (row.attempt === null) abandonedEnds.push(row);
      else {
        abandonedCalls.add(row.request_id);
        addError(errors, row);
      }
    },
    finish() {
      for (const row of abandonedEnds.splice(0)) if (!abandonedCalls.has(row.request_id)) addError(errors, row);
      return {
        total: finished(total),
        groups: [...groups.values()].sort(by === "day" ? byKey : byCalls).map(finished),
        errors: [...errors.values()].sort((left, right) => right.count - left.count).slice(0, TOP_ERRORS),
        firstAtMs,
        lastAtMs,
      };
    },
  };
}

function emptyGroup(key: string | null): Group {
  return {
    key,
    calls: 0,
    answered: 0,
    cancelled: 0,
    attempts: 0,
    cacheHits: 0,
    tokens: { prompt: 0, cached: 0, reasoning: 0, completion: 0 },
    costNanos: 0n,
    attemptsWithPrice: 0,
    attemptsWithoutPrice: 0,
    latencies: [],
    ttfts: [],
    retries: {
      attempts: 0,
      abandoned: 0,
      tokens: 0,
      attemptsWithPrice: 0,
      attemptsWithoutPrice: 0,
      costNanos: 0n,
      timeMs: 0,
    },
  };
}

function groupFor(groups: Map<string | null, Group>, key: string | null): Group {
  const group = groups.get(key) ?? emptyGroup(key);
  groups.set(key, group);
  return group;
}

function keyOf(row: StoredRow, by: ReportGrouping, madeAtMs: number | null): string | null {
  if (by === "day") return madeAtMs === null ? null : new Date(madeAtMs).toISOString().slice(0, 10);
  const value = { model: row.model, source: row.source_name, session: row.session_id, scope: row.scope }[by];
  return value === null ? null : String(value);
}

/** Rows of the original 22 columns know neither `outcome` nor `final` nor `attempt`: each is one attempt and one call. */
function outcomeOf(row: StoredRow): string {
  if (row.outcome !== null) return String(row.outcome);
  return row.error === null ? "success" : "transient";
}

function isAttempt(row: StoredRow): boolean {
  return row.attempt !== null || row.outcome === null;
}

function isFinal(row: StoredRow): boolean {
  return row.final === 1 || row.outcome === null;
}

function number(value: string | number | null): number {
  return typeof value === "number" ? value : 0;
}

function addTo(group: Group, row: StoredRow): void {
  const outcome = outcomeOf(row);
  const answered = outcome === "success" || outcome === "cache_hit";
  const costNanos = typeof row.cost === "number" ? numberToNanos(row.cost) : null;
  if (isFinal(row)) {
    group.calls += 1;
    if (answered) group.answered += 1;
    else if (outcome === "cancelled") group.cancelled += 1;
  }
  if (outcome === "cache_hit") group.cacheHits += 1;
  group.costNanos += costNanos ?? 0n;
  if (!isAttempt(row)) return;
  addAttempt(group, row, outcome, costNanos);
}

function addAttempt(group: Group, row: StoredRow, outcome: string, costNanos: bigint | null): void {
  const prompt = number(row.prompt_tokens);
  const completion = number(row.completion_tokens);
  group.attempts += 1;
  group.tokens.prompt += prompt;
  group.tokens.completion += completion;
  group.tokens.cached += number(row.cached_prompt_tokens);
  group.tokens.reasoning += number(row.reasoning_tokens);
  countPrice(group, row);
  if (outcome === "success") {
    if (typeof row.latency_ms === "number") group.latencies.push(row.latency_ms);
    if (typeof row.ttft_ms === "number") group.ttfts.push(row.ttft_ms);
    return;
  }
  if (outcome === "cancelled") return;
  countPrice(group.retries, row);
  group.retries.attempts += 1;
  if (outcome === "abandoned") group.retries.abandoned += 1;
  group.retries.tokens += prompt + completion;
  group.retries.costNanos += costNanos ?? 0n;
  group.retries.timeMs += number(row.latency_ms);
}

function addError(errors: Map<string, ErrorKind>, row: StoredRow): void {
  const outcome = outcomeOf(row);
  // A call that its own caller stopped is no failure.
  if (row.error === null || outcome === "cancelled") return;
  const error = withoutIds(String(row.error));
  const key = `${outcome}\0${error}`;
  const kind = errors.get(key) ?? { error, outcome, statusCodes: [], count: 0, sample: String(row.error) };
  if (kind.count === 0 && errors.size >= MAX_ERROR_KINDS) return;
  kind.count += 1;
  // 0 = the connection ended before a status.
  const status = number(row.status_code);
  if (status > 0 && !kind.statusCodes.includes(status)) {
    kind.statusCodes = [...kind.statusCodes, status].sort((left, right) => left - right);
  }
  errors.set(key, kind);
}

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi;
/** Request ids: long runs of letters and digits that contain a digit. */
const LONG_ID = /\b(?=[\w-]*\d)[\w-]{12,}\b/g;
const NUMBERS = /\d+(?:\.\d+)?/g;

/** A request id, a waiting time or a status must not make each failure a kind of its own. */
function withoutIds(error: string): string {
  return error.replace(UUID, "…").replace(LONG_ID, "…").replace(NUMBERS, "#");
}

function finished(group: Group): ReportGroup {
  const { costNanos, latencies, ttfts, retries, ...rest } = group;
  const { costNanos: retryCostNanos, ...failed } = retries;
  const tried = group.calls - group.cancelled;
  return {
    ...rest,
    successRate: tried === 0 ? null : group.answered / tried,
    attemptsPerCall: group.calls === 0 ? null : group.attempts / group.calls,
    cost: nanosToNumber(costNanos),
    latencyMs: percentiles(latencies),
    ttftMs: percentiles(ttfts),
    retries: { ...failed, cost: nanosToNumber(retryCostNanos), timeMs: Math.round(retries.timeMs) },
  };
}

/** Nearest-rank percentiles; null for no values. */
export function percentiles(values: readonly number[]): Percentiles | null {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  const rank = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] as number;
  return { p50: rank(0.5), p95: rank(0.95), p99: rank(0.99) };
}

function byCalls(left: Group, right: Group): number {
  return right.calls - left.calls || right.attempts - left.attempts || byKey(left, right);
}

function byKey(left: Group, right: Group): number {
  return String(left.key ?? "").localeCompare(String(right.key ?? ""));
}
