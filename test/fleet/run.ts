import { setTimeout as sleep } from "node:timers/promises";
import { seededStream } from "../../src/testing/seeded-random.js";
import type { Crew } from "./crew.js";
import type { Arena } from "./fault.js";
import { faultsWith, isInjected, strike } from "./faults.js";
import { Finding } from "./finding.js";
import type { FleetFlags } from "./flags.js";
import { judgeRun } from "./judgement.js";
import { RedisWatch } from "./redis-watch.js";
import type { Score } from "./scoreboard.js";
import { LEASE_TTL_MS, SCOPE, type Stage } from "./stage.js";
import { type Standstill, watchStandstills } from "./standstills.js";

/** A process is at work this long after its start. */
const WARM_UP_MS = 1_500;
/** Faults end this long before the end: then everybody must be served again. */
const CALM_MS = 8_000;
const MOST_BETWEEN_FAULTS_MS = 1_500;
/** By then everybody has had an answer again. */
const RECOVERY_MS = 30_000;
const POLL_MS = 100;

/** What a run leaves for its judge. */
export interface Played {
  readonly seconds: number;
  readonly arena: Arena;
  readonly watch: RedisWatch;
  readonly injected: ReadonlyMap<string, number>;
  readonly served: Finding;
  readonly standstills: readonly Standstill[];
  /** Of Redis since its last start. */
  readonly scripts: { readonly count: number; readonly meanUs: number };
}

const log = (text: string): void => void process.stderr.write(`… ${text}\n`);

/** Faults, then calm, then the end of all processes; then everything is judged. */
export async function playRun(flags: FleetFlags, stage: Stage): Promise<Score> {
  const { crew, upstreams, redis, canaries, store } = stage;
  const names = upstreams.map(({ plan }) => plan.name);
  const watch = new RedisWatch({
    ...{ redis, crew, sources: names, prefix: `pgw:{${SCOPE}}:`, leaseTtlMs: LEASE_TTL_MS },
    onContents: (text) => canaries.look("redis", text),
  });
  const arena: Arena = {
    ...stage,
    postgres: store.postgres,
    leaseTtlMs: LEASE_TTL_MS,
    next: seededStream(flags.seed, 0),
    restarts: [],
    busy: new Set(),
    turns: new Map(),
  };
  const beganMs = Date.now();
  const standstills = watchStandstills();
  log(`${flags.workers} processes with ${flags.callers} callers each, seed ${flags.seed}, ${flags.forMs / 1_000} s`);
  const { injected, served } = await rage(flags, crew, watch, arena);
  const seconds = (Date.now() - beganMs) / 1_000;
  await watch.stop();
  await sleep(LEASE_TTL_MS + 1_000);
  await watch.lookAtRest();
  const scripts = await watch.scripts();
  standstills.stop();
  log("judging");
  return judgeRun(flags, stage, { seconds, arena, watch, injected, served, scripts, standstills: standstills.seen });
}

async function rage(
  flags: FleetFlags,
  crew: Crew,
  watch: RedisWatch,
  arena: Arena,
): Promise<Pick<Played, "injected" | "served">> {
  const endMs = Date.now() + flags.forMs;
  const calmMs = Math.min(CALM_MS, flags.forMs / 4);
  for (let slot = 0; slot < flags.workers; slot += 1) crew.start(slot);
  await sleep(WARM_UP_MS);
  watch.start();
  const faults = faultsWith(flags.telemetry);
  const strikeMs = flags.forMs - calmMs - WARM_UP_MS;
  const everyMs = Math.min(MOST_BETWEEN_FAULTS_MS, strikeMs / (faults.filter(isInjected).length + 2));
  const injected = await strike(arena, faults, everyMs, endMs - calmMs);
  log("faults are over");
  const served = new Finding("every process is served again within 30 s when faults are over");
  await judgeRecovery(crew, served, Math.max(calmMs, endMs - Date.now()));
  await crew.stop();
  return { injected, served };
}

/** The first half is theirs to come back in; a busy machine may take longer to start the last of them. */
async function judgeRecovery(crew: Crew, served: Finding, calmMs: number): Promise<void> {
  const lastMs = Date.now() + Math.max(calmMs, RECOVERY_MS);
  await sleep(calmMs / 2);
  const before = crew.answered();
  await sleep(calmMs / 2);
  const waiting = (): number[] =>
    [...crew.answered()].flatMap(([pid, answered]) => (answered > (before.get(pid) ?? 0) ? [] : [pid]));
  while (waiting().length > 0 && Date.now() < lastMs) await sleep(POLL_MS);
  const unserved = new Set(waiting());
  for (const pid of crew.answered().keys())
    served.check(!unserved.has(pid), () => `process ${pid} got no answer within ${RECOVERY_MS / 1_000} s`);
}
