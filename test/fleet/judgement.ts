import { uuidTimeMs } from "../../src/telemetry/columns.js";
import { BooksJudge, type JudgedRow } from "./books-judge.js";
import { PLACES } from "./canaries.js";
import type { Crew } from "./crew.js";
import type { Met } from "./fault.js";
import { faultsWith } from "./faults.js";
import { Finding } from "./finding.js";
import type { FleetFlags } from "./flags.js";
import { LeasesJudge } from "./leases-judge.js";
import { LimitsJudge, type Witnessed } from "./limits-judge.js";
import { RowLosses } from "./row-losses.js";
import type { Played } from "./run.js";
import type { FiredFault, Score } from "./scoreboard.js";
import { hasSmallQueue, LEASE_TTL_MS, type Stage } from "./stage.js";
import { type Books, readBooks } from "./telemetry.js";

const HOUR_MS = 3_600_000;

/** Joins ledgers, telemetry and what was seen in Redis. */
export async function judgeRun(flags: FleetFlags, stage: Stage, played: Played): Promise<Score> {
  const { crew, upstreams, store, canaries } = stage;
  const { arena, watch, served, seconds, scripts, standstills } = played;
  const { restarts } = arena;
  const witnessed: Witnessed[] = upstreams.map(({ plan, provider }) => ({
    source: plan.name,
    limits: plan.limits,
    entries: provider.ledger(),
  }));
  const { grants, given, doubts, lives } = crew;
  const { global } = crew.planOf(0);
  const common = { witnessed, grants, restarts, leaseTtlMs: LEASE_TTL_MS };
  const limits = new LimitsJudge({ ...common, global, lives, standstills });
  const leases = new LeasesJudge({ ...common, given, doubts, sightings: watch.sightings, counts: watch.counts });
  const { report, rows, stored } = await readBooks(store.place, (text) => canaries.look("telemetry", text));
  const smallQueues = new Set(lives.flatMap(({ pid, slot }) => (hasSmallQueue(slot, store.kind) ? [pid] : [])));
  const losses = new RowLosses({ lives, unwritten: crew.unwritten, stored, smallQueues });
  const books = new BooksJudge(witnessed, grants, rows, losses);
  const admitted = entriesOf(witnessed).filter(({ arrivedAtMs }) => arrivedAtMs > Math.max(0, ...restarts)).length;
  return {
    seed: flags.seed,
    seconds,
    processes: lives.length,
    admissions: entriesOf(witnessed).length,
    tally: crew.total(),
    overshoot: Math.max(0, limits.overshoot),
    lostPermits: limits.lostPermits,
    toldLost: losses.toldLost,
    diedInHand: losses.diedInHand,
    longestStandstillMs: Math.max(0, ...standstills.map(({ fromMs, toMs }) => toMs - fromMs)),
    scripts: { perAdmission: scripts.count / admitted, meanUs: scripts.meanUs },
    findings: [
      ...[limits.requests, limits.tokens, limits.pace, limits.slots, limits.late, limits.probes],
      ...[watch.probes, watch.dead, leases.ended, leases.untold, leases.booked],
      ...[watch.keys, watch.counters, watch.rest],
      ...[books.permitted, books.once, books.rows, books.seen, books.ends, books.tokens],
      ...[losses.told, losses.written],
      balanceOf(report),
      healthOf(crew),
      ...PLACES.map((place) => canaries.findings[place]),
      served,
    ],
    faults: firedFaults(flags, stage, played, { witnessed, rows, toldLost: losses.toldLost }),
  };
}

const entriesOf = (witnessed: readonly Witnessed[]) => witnessed.flatMap(({ entries }) => entries);

interface Counted {
  readonly witnessed: readonly Witnessed[];
  readonly rows: readonly JudgedRow[];
  readonly toldLost: number;
}

function firedFaults(flags: FleetFlags, stage: Stage, played: Played, counted: Counted): FiredFault[] {
  const entries = entriesOf(counted.witnessed);
  const soonMs = Date.now() + HOUR_MS;
  const met: Met = {
    requests: (match) => entries.filter(match).length,
    redisRepliesLost: stage.redisRelay.repliesLost,
    postgresRepliesLost: stage.store.postgres?.relay.repliesLost ?? 0,
    rowsOfAnotherTime: counted.rows.filter(({ call_id }) => (uuidTimeMs(String(call_id)) ?? 0) > soonMs).length,
    rowsToldLost: counted.toldLost,
  };
  return faultsWith(flags.telemetry).map((fault) => ({
    fault,
    injected: played.injected.get(fault.id) ?? 0,
    met: fault.met?.(met) ?? null,
  }));
}

function balanceOf({ calls, openAttempts, differences }: Books["report"]): Finding {
  const finding = new Finding("reconcile: calls = ended + open, and none is open");
  finding.checks = calls;
  for (const { text } of differences) finding.broken(text);
  if (openAttempts > 0) finding.broken(`${openAttempts} attempts are still open`);
  return finding;
}

function healthOf(crew: Crew): Finding {
  const finding = new Finding("errors of the taxonomy alone, and processes end when asked");
  const { answered, failed } = crew.total();
  finding.checks = answered + Object.values(failed).reduce((sum, count) => sum + count, 0);
  for (const trouble of crew.troubles) finding.broken(trouble);
  return finding;
}
