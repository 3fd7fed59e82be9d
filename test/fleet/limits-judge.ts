import type { LimitOptions } from "polygateway";
import { requestBurst, requestRate, tokenBurst } from "../../src/domain/gates/smooth.js";
import { NO_LIMITS } from "../../src/domain/source.js";
import {
  ABORT_OVERLAP_MS,
  type JudgedLimits,
  judgeLimits,
  type LimitVerdict,
  maxConcurrent,
  maxRequestsInWindow,
} from "../../src/testing/provider/judge.js";
import type { LedgerEntry } from "../../src/testing/provider/ledger.js";
import type { Life, NotedGrant } from "./crew.js";
import { Finding } from "./finding.js";
import { happenedSince, type Standstill } from "./standstills.js";

/** What a provider saw, and what its source was configured with. */
export interface Witnessed {
  readonly source: string;
  readonly limits: LimitOptions;
  readonly entries: readonly Readonly<LedgerEntry>[];
}

export interface LimitEvidence {
  readonly witnessed: readonly Witnessed[];
  readonly global: LimitOptions;
  readonly grants: ReadonlyMap<string, NotedGrant>;
  readonly lives: readonly Life[];
  /** When Redis lost everything. */
  readonly restarts: readonly number[];
  readonly leaseTtlMs: number;
  /** When the witness was held up. */
  readonly standstills: readonly Standstill[];
}

/** From here on what was permitted before is in nobody's books: of one process, or of all. */
interface Loss {
  readonly atMs: number;
  /** Permits told until then were lost with it. */
  readonly grantedUntilMs: number;
  readonly pid: number | null;
}

/** Of a freeze its renewals are known to a third of the TTL, and told a little late. */
const RENEWAL_LAG_MS = 250;
/** A restart is told before it happens: what the old Redis gave until its end reaches its process a little later. */
const RESTART_LAG_MS = 1_000;
/** Short windows, so that a pace that is wrong shows in a short run too; a send may be this late on a loaded machine. */
const PACE_WINDOW_MS = 10_000;
const PACE_LAG_MS = 1_000;

/** Limits and permits, held against the ledgers (spec 02 §3). */
export class LimitsJudge {
  readonly requests = new Finding("requests in any 60 s are within RPM");
  readonly tokens = new Finding("tokens in any 60 s are within TPM");
  readonly pace = new Finding("requests in any 10 s keep the pace of RPM");
  readonly slots = new Finding("concurrency, but for permits that a freeze or a restart has lost");
  readonly probes = new Finding("one probe at a time of a source, by its ledger");
  readonly late = new Finding("nothing is sent on a permit that a freeze has lost");
  /** The most that a limit of concurrency was exceeded by, lost permits counted. */
  overshoot = 0;
  /** Requests that outlived their permit. */
  lostPermits = 0;
  readonly #losses: readonly Loss[];

  constructor(private readonly evidence: LimitEvidence) {
    this.#losses = lossesOf(evidence);
    const all = evidence.witnessed.flatMap(({ entries }) => entries);
    this.lostPermits = all.filter((entry) => this.#asHeld(entry) !== entry).length;
    for (const { source, limits, entries } of evidence.witnessed) {
      this.#judgeOwner(source, limits, entries);
      this.#judgeProbes(source, entries);
    }
    this.#judgeOwner("all sources", evidence.global, all);
    this.#judgeLate(all);
  }

  #judgeOwner(owner: string, limits: LimitOptions, entries: readonly Readonly<LedgerEntry>[]): void {
    const { restarts, grants } = this.evidence;
    const options = {
      estimateOf: (entry: object) => grants.get((entry as LedgerEntry).requestId ?? "")?.tokens ?? 0,
    };
    const { maxConcurrency = 0, ...rates } = limits;
    // What an empty Redis gives anew is one burst; windows without a restart are judged without it.
    for (const stretch of stretchesOf(entries, restarts))
      this.#book(owner, stretch.length, judgeLimits(stretch, rates, options).verdicts);
    if (restarts.length > 0)
      this.#book(owner, entries.length, judgeLimits(entries, withBurst(rates), options).verdicts);
    this.#judgePace(owner, rates, entries);
    if (maxConcurrency === 0) return;
    const held = entries.map((entry) => this.#asSeen(this.#asHeld(entry)));
    this.#book(owner, held.length, judgeLimits(held, { maxConcurrency }).verdicts);
    this.overshoot = Math.max(this.overshoot, maxConcurrent(entries).peak - maxConcurrency);
  }

  #book(owner: string, checks: number, verdicts: readonly LimitVerdict[]): void {
    for (const { gate, ok, message } of verdicts) {
      const finding = { rpm: this.requests, tpm: this.tokens, concurrency: this.slots }[gate];
      finding.checks += checks;
      if (!ok) finding.broken(`${owner}: ${message}`);
    }
  }

  #judgePace(owner: string, limits: LimitOptions, entries: readonly Readonly<LedgerEntry>[]): void {
    const rate = requestRate({ ...NO_LIMITS, ...limits });
    if (rate === null) return;
    const burst = 1 + rate.toleranceMs / rate.intervalMs;
    const restarted = this.evidence.restarts.length > 0 ? burst : 0;
    const allowed = Math.ceil(burst + restarted + (PACE_WINDOW_MS + PACE_LAG_MS) / rate.intervalMs);
    const { peak, startMs } = maxRequestsInWindow(entries, PACE_WINDOW_MS);
    this.pace.checks += entries.length;
    if (peak > allowed) this.pace.broken(`${owner}: ${peak} requests in the 10 s from ${startMs}, ${allowed} allowed`);
  }

  /** The part of a request in which it held a permit. */
  #asHeld<T extends Readonly<LedgerEntry>>(entry: T): T {
    const grant = this.evidence.grants.get(entry.requestId ?? "");
    const endMs = entry.endedAtMs ?? Number.POSITIVE_INFINITY;
    const lost = this.#losses.filter(({ atMs, pid, grantedUntilMs }) => {
      const isHis = pid === null || pid === grant?.pid;
      return isHis && atMs < endMs && (grant?.atMs ?? entry.arrivedAtMs) <= grantedUntilMs;
    });
    if (lost.length === 0) return entry;
    const endedAtMs = Math.max(entry.arrivedAtMs, Math.min(...lost.map(({ atMs }) => atMs)));
    return { ...entry, endedAtMs, clientClosed: false };
  }

  /** That a client has left is seen late by a witness that is held up. */
  #asSeen<T extends Readonly<LedgerEntry>>(entry: T): T {
    if (!entry.clientClosed || entry.endedAtMs === null) return entry;
    const endedAtMs = happenedSince(this.evidence.standstills, entry.endedAtMs);
    return { ...entry, endedAtMs: Math.max(entry.arrivedAtMs, endedAtMs) };
  }

  #judgeProbes(source: string, entries: readonly Readonly<LedgerEntry>[]): void {
    const probes = entries.filter(({ requestId }) => this.evidence.grants.get(requestId ?? "")?.probe === true);
    const held = probes.map((entry) => this.#asHeld(entry)).sort((a, b) => a.arrivedAtMs - b.arrivedAtMs);
    let untilMs = 0;
    for (const { arrivedAtMs, endedAtMs, clientClosed, requestId } of held) {
      this.probes.check(arrivedAtMs >= untilMs, () => `${source}: probe ${requestId} began before the last had ended`);
      const endMs = (endedAtMs ?? Number.POSITIVE_INFINITY) - (clientClosed ? ABORT_OVERLAP_MS : 0);
      untilMs = Math.max(untilMs, endMs);
    }
  }

  #judgeLate(entries: readonly Readonly<LedgerEntry>[]): void {
    const { grants, lives, leaseTtlMs, standstills } = this.evidence;
    const freezes = new Map(lives.map(({ pid, frozen }) => [pid, frozen]));
    for (const { requestId, arrivedAtMs } of entries) {
      const grant = grants.get(requestId ?? "");
      if (grant === undefined) continue;
      for (const { fromMs, toMs } of freezes.get(grant.pid) ?? []) {
        if (grant.atMs > fromMs || arrivedAtMs < fromMs + leaseTtlMs) continue;
        const isLate = happenedSince(standstills, arrivedAtMs) >= toMs && toMs - grant.atMs > leaseTtlMs;
        const since = (ms: number): string => `${(ms - grant.atMs).toFixed(0)} ms`;
        this.late.check(
          !isLate,
          () =>
            `${grant.source}: ${requestId} of process ${grant.pid} was sent ${since(arrivedAtMs)} after its grant, ` +
            `frozen from ${since(fromMs)} to ${since(toMs)}`,
        );
      }
      this.late.checks += 1;
    }
  }
}

function lossesOf({ lives, restarts, leaseTtlMs }: LimitEvidence): Loss[] {
  const lostAfterMs = (leaseTtlMs * 2) / 3 - RENEWAL_LAG_MS;
  const frozen = lives.flatMap(({ pid, frozen: freezes }) =>
    freezes
      .filter(({ fromMs, toMs }) => toMs - fromMs > lostAfterMs)
      .map(({ fromMs }) => ({ atMs: fromMs + lostAfterMs, grantedUntilMs: fromMs + lostAfterMs, pid })),
  );
  return [...frozen, ...restarts.map((atMs) => ({ atMs, grantedUntilMs: atMs + RESTART_LAG_MS, pid: null }))];
}

function stretchesOf<T extends { readonly arrivedAtMs: number }>(
  entries: readonly T[],
  restarts: readonly number[],
): T[][] {
  const edges = [Number.NEGATIVE_INFINITY, ...restarts, Number.POSITIVE_INFINITY];
  return edges
    .slice(1)
    .map((toMs, index) => entries.filter(({ arrivedAtMs }) => arrivedAtMs >= edges[index]! && arrivedAtMs < toMs));
}

function withBurst(limits: LimitOptions): JudgedLimits {
  const whole = { ...NO_LIMITS, ...limits };
  const { rpm = 0, tpm = 0 } = limits;
  return {
    ...limits,
    ...(rpm > 0 ? { rpm: rpm + requestBurst(whole) } : {}),
    ...(tpm > 0 ? { tpm: tpm + tokenBurst(whole) } : {}),
  };
}
