import { setTimeout as sleep } from "node:timers/promises";
import { seededStream } from "../../src/testing/seeded-random.js";
import { FlagError } from "../../src/testing/simulation/flag-values.js";
import { type RedisServer, startRedis } from "../services/redis.js";
import { BooksJudge } from "./books-judge.js";
import { Crew } from "./crew.js";
import { type Arena, FAULTS, strike } from "./faults.js";
import { Finding } from "./finding.js";
import { type FleetFlags, parseFlags, USAGE } from "./flags.js";
import { LimitsJudge } from "./limits-judge.js";
import { RedisWatch } from "./redis-watch.js";
import { type FiredFault, isGood, type Score, scoreboard } from "./scoreboard.js";
import { globalLimits, sourceOptions, sourcePlans, startUpstreams, type Upstream } from "./sources.js";
import { openStore, readBooks, type TelemetryStore } from "./telemetry.js";

/** `npm run fleet`: exit code 1 = something was broken or never tried, 2 = misused. */

const SCOPE = "FLEET";
const LEASE_TTL_MS = 3_000;
const EXIT_BROKEN = 1;
const EXIT_MISUSED = 2;
/** A process is at work this long after its start. */
const WARM_UP_MS = 1_500;
/** Faults end this long before the end: then everybody must be served again. */
const CALM_MS = 8_000;
const MOST_BETWEEN_FAULTS_MS = 1_500;

interface Stage {
  readonly redis: RedisServer;
  readonly store: TelemetryStore;
  readonly upstreams: readonly Upstream[];
  readonly crew: Crew;
}

const log = (text: string): void => void process.stderr.write(`… ${text}\n`);

async function withStage<T>(flags: FleetFlags, play: (stage: Stage) => Promise<T>): Promise<T> {
  const ends: (() => unknown)[] = [];
  try {
    const redis = await startRedis();
    ends.push(() => redis.stop());
    const store = await openStore(flags.telemetry);
    ends.push(() => store.dispose());
    const upstreams = await startUpstreams(sourcePlans(flags.rate), flags.seed);
    ends.push(() => Promise.all(upstreams.map(({ provider }) => provider.stop())));
    const crew = new Crew({
      scope: SCOPE,
      sources: upstreams.map(sourceOptions),
      global: globalLimits(flags.rate),
      redisUrl: redis.url,
      telemetry: store.plan,
      callers: flags.callers,
      cycleMs: (flags.workers * flags.callers * 1_000) / (3 * flags.rate),
      leaseTtlMs: LEASE_TTL_MS,
    });
    ends.push(() => crew.endAll());
    return await play({ redis, store, upstreams, crew });
  } finally {
    for (const end of ends.reverse()) await end();
  }
}

/** The run itself: faults, then calm, then the end of all processes. */
async function rage(flags: FleetFlags, stage: Stage, watch: RedisWatch, restarts: number[]): Promise<Rage> {
  const { crew } = stage;
  const endMs = Date.now() + flags.forMs;
  const calmMs = Math.min(CALM_MS, flags.forMs / 4);
  for (let started = 0; started < flags.workers; started += 1) crew.start();
  await sleep(WARM_UP_MS);
  watch.start();
  const arena: Arena = {
    ...stage,
    leaseTtlMs: LEASE_TTL_MS,
    next: seededStream(flags.seed, 0),
    restarts,
    busy: new Set(),
  };
  const kinds = FAULTS.filter(({ inject }) => inject !== undefined).length;
  const strikeMs = flags.forMs - calmMs - WARM_UP_MS;
  const everyMs = Math.min(MOST_BETWEEN_FAULTS_MS, strikeMs / (kinds + 2));
  const injected = await strike(arena, everyMs, endMs - calmMs);
  log("faults are over");
  const served = new Finding("every process is served again when faults are over");
  await judgeRecovery(crew, served, Math.max(calmMs, endMs - Date.now()));
  await crew.stop();
  return { injected, served };
}

interface Rage {
  readonly injected: ReadonlyMap<string, number>;
  readonly served: Finding;
}

/** The first half is theirs to come back in. */
async function judgeRecovery(crew: Crew, served: Finding, calmMs: number): Promise<void> {
  await sleep(calmMs / 2);
  const before = crew.answered();
  await sleep(calmMs / 2);
  for (const [pid, answered] of crew.answered())
    served.check(answered > (before.get(pid) ?? 0), () => `process ${pid} got no answer in the last ${calmMs / 2} ms`);
}

function firedFaults({ injected }: Rage, upstreams: readonly Upstream[]): FiredFault[] {
  return FAULTS.map((fault) => ({
    fault,
    injected: injected.get(fault.id) ?? 0,
    met:
      fault.seenAs === undefined
        ? null
        : upstreams.reduce((sum, { provider }) => sum + (provider.stats().outcomes[fault.seenAs!] ?? 0), 0),
  }));
}

async function play(flags: FleetFlags, stage: Stage): Promise<Score> {
  const { crew, upstreams, redis, store } = stage;
  const restarts: number[] = [];
  const names = upstreams.map(({ plan }) => plan.name);
  const watch = new RedisWatch(redis, crew, names, `pgw:{${SCOPE}}:`);
  const beganMs = Date.now();
  log(`${flags.workers} processes with ${flags.callers} callers each, seed ${flags.seed}, ${flags.forMs / 1_000} s`);
  const raged = await rage(flags, stage, watch, restarts);
  const seconds = (Date.now() - beganMs) / 1_000;
  await watch.stop();
  await sleep(LEASE_TTL_MS + 1_000);
  await watch.lookAtRest();
  const scripts = await watch.scripts();
  log("judging");
  const witnessed = upstreams.map(({ plan, provider }) => ({
    source: plan.name,
    limits: plan.limits,
    entries: provider.ledger(),
  }));
  const { grants, lives } = crew;
  const { global } = crew.plan;
  const limits = new LimitsJudge({ witnessed, global, grants, lives, restarts, leaseTtlMs: LEASE_TTL_MS });
  const { report, rows } = await readBooks(store.plan.place);
  const books = new BooksJudge(witnessed, grants, rows);
  const admissions = witnessed.reduce((sum, { entries }) => sum + entries.length, 0);
  const since = Math.max(0, ...restarts);
  const admitted = witnessed.flatMap(({ entries }) => entries).filter(({ arrivedAtMs }) => arrivedAtMs > since).length;
  return {
    seed: flags.seed,
    seconds,
    processes: lives.length,
    admissions,
    tally: crew.total(),
    overshoot: Math.max(0, limits.overshoot),
    lostPermits: limits.lostPermits,
    scripts: { perAdmission: scripts.count / admitted, meanUs: scripts.meanUs },
    findings: [
      ...[limits.requests, limits.tokens, limits.pace, limits.slots, limits.late, limits.probes],
      ...[watch.probes, watch.dead, watch.keys, watch.counters, watch.rest],
      ...[books.permitted, books.once, books.rows, books.seen, books.ends, books.tokens],
      balanceOf(report),
      healthOf(crew),
      raged.served,
    ],
    faults: firedFaults(raged, upstreams),
  };
}

function balanceOf({ calls, openAttempts, differences }: Awaited<ReturnType<typeof readBooks>>["report"]): Finding {
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

async function main(args: readonly string[]): Promise<number> {
  try {
    const flags = parseFlags(args);
    if (flags.help) {
      process.stdout.write(USAGE);
      return 0;
    }
    const score = await withStage(flags, (stage) => play(flags, stage));
    process.stdout.write(`${scoreboard(score)}\n`);
    return isGood(score) ? 0 : EXIT_BROKEN;
  } catch (error) {
    if (!(error instanceof FlagError)) throw error;
    process.stderr.write(`fleet: ${error.message}\nRun npm run fleet -- --help to see what it takes.\n`);
    return EXIT_MISUSED;
  }
}

process.exitCode = await main(process.argv.slice(2));
