import type { NotedGrant, Told } from "./crew.js";
import { Finding } from "./finding.js";
import type { Witnessed } from "./limits-judge.js";

/** A permit as it was seen in Redis, by its clock. */
export interface Sighting {
  readonly source: string;
  firstMs: number;
  /** The last time it was seen alive. */
  lastMs: number;
}

export interface LeaseEvidence {
  readonly witnessed: readonly Witnessed[];
  readonly grants: ReadonlyMap<string, NotedGrant>;
  readonly given: readonly Told[];
  readonly doubts: readonly Told[];
  readonly sightings: ReadonlyMap<string, Sighting>;
  /** How many grants Redis had counted at a moment. */
  readonly counts: readonly { readonly atMs: number; readonly count: number }[];
  /** When Redis lost everything. */
  readonly restarts: readonly number[];
  readonly leaseTtlMs: number;
}

/** What a permit may last beyond its time to live (spec 02 §3). */
const GRACE_MS = 1_000;
/** A busy process learns so much later that its request has ended, and renews until then. */
const LEARNS_WITHIN_MS = 1_000;
/** A permit that is never used is given back after the longest attempt there is, or earlier. */
const LONGEST_ATTEMPT_MS = 20_000;
/** How long before its answer was given up a script may have run. */
const MAY_HAVE_RUN_MS = 500;
/** A restart is told before it happens. */
const RESTART_TAKES_MS = 1_000;

/** Replies that were lost, calls that ended: nothing is granted twice, and nothing granted stays. */
export class LeasesJudge {
  readonly booked = new Finding("no more grants counted in Redis than permits that were given: none is booked twice");
  readonly untold = new Finding("every permit in Redis is a process's, or gone within TTL + 1 s");
  readonly ended = new Finding("a permit ends with its request, within TTL + 2 s at most");

  constructor(private readonly evidence: LeaseEvidence) {
    this.#judgeBooked();
    this.#judgeSightings();
  }

  #judgeBooked(): void {
    const { restarts, counts } = this.evidence;
    const edges = [0, ...restarts, Number.POSITIVE_INFINITY];
    for (const [life, fromMs] of edges.slice(0, -1).entries()) {
      const toMs = edges[life + 1]!;
      const seen = counts.filter(({ atMs }) => atMs >= fromMs + (life === 0 ? 0 : RESTART_TAKES_MS) && atMs < toMs);
      if (seen.length === 0) continue;
      const counted = Math.max(...seen.map(({ count }) => count));
      const given = this.#givenIn(fromMs, toMs);
      this.booked.checks += given;
      if (counted > given) this.booked.broken(`Redis counted ${counted} grants, and ${given} permits were given`);
    }
  }

  /** Permits told to processes, those that only Redis shows, and those of which nobody can know. */
  #givenIn(fromMs: number, toMs: number): number {
    const { given, sightings } = this.evidence;
    // What Redis gave at its very end a busy process hears of a moment later.
    const isIn = (atMs: number): boolean => atMs >= fromMs && atMs < toMs + RESTART_TAKES_MS;
    const told = given.filter(({ atMs }) => isIn(atMs));
    const ids = new Set(told.map(({ id }) => id));
    const untold = [...sightings].filter(([id, { firstMs }]) => isIn(firstMs) && !ids.has(id)).map(([id]) => id);
    for (const id of untold) ids.add(id);
    return told.length + untold.length + this.#unknownIn(isIn, ids);
  }

  /**
   * An answer that was lost stands for a grant of its own where it was never asked for again, or only when the permit had
   * ended; asked for in time, it is the same grant.
   */
  #unknownIn(isIn: (atMs: number) => boolean, ids: ReadonlySet<string>): number {
    const { doubts, given, leaseTtlMs } = this.evidence;
    const inTimeMs = leaseTtlMs - MAY_HAVE_RUN_MS;
    const toldMs = new Map<string, number[]>();
    for (const { id, atMs } of given) toldMs.set(id, [...(toldMs.get(id) ?? []), atMs]);
    return doubts.filter(({ id, atMs }) => {
      const answers = toldMs.get(id) ?? [];
      if (!isIn(atMs) || (answers.length === 0 && ids.has(id))) return false;
      return !answers.some((answerMs) => answerMs >= atMs && answerMs <= atMs + inTimeMs);
    }).length;
  }

  #judgeSightings(): void {
    const { sightings, grants, doubts, leaseTtlMs, witnessed } = this.evidence;
    // Asking again promises the whole time again.
    const askedMs = new Map(doubts.map(({ id, atMs }) => [id, atMs]));
    const endsMs = new Map(
      witnessed.flatMap(({ entries }) => entries.map(({ requestId, endedAtMs }) => [requestId, endedAtMs] as const)),
    );
    for (const [id, { source, firstMs, lastMs }] of sightings) {
      const grant = grants.get(id);
      const lateAfter = (sinceMs: number): number => lastMs - (sinceMs + leaseTtlMs + GRACE_MS);
      const says = (lateMs: number) => () => `permit ${id} of ${source} lived ${Math.ceil(lateMs)} ms too long`;
      const untoldMs = grant === undefined ? lateAfter(Math.max(firstMs, askedMs.get(id) ?? 0)) : 0;
      this.untold.check(untoldMs <= 0, says(untoldMs));
      if (grant === undefined) continue;
      const lateMs = lateAfter(endsMs.get(id) ?? Math.max(firstMs, grant.atMs) + LONGEST_ATTEMPT_MS) - LEARNS_WITHIN_MS;
      this.ended.check(lateMs <= 0, says(lateMs));
    }
  }
}
