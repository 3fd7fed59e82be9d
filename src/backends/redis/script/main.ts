import { describeScope, describeSource } from "../../../domain/description.js";
import type { StoreClock } from "../../../domain/gates/gate.js";
import { reclaimExpired } from "../../../domain/settlement.js";
import type { GovernorEvent, TickBatch } from "../../../domain/tick.js";
import { runTick } from "../../../domain/tick-rules.js";
import type { FleetSetup } from "./common-limits.js";
import { LEASES_KEY } from "./keys.js";
import { repair } from "./repair.js";
import { type LoadedScope, loadProgress, loadScope } from "./scope-store.js";
import { receivedBatch, type SentBatch } from "./sent-batch.js";

/**
 * The script of the governor on Redis. ARGV: what to do, the common beginning of the keys, the configuration, the batch,
 * and a moment instead of the server's clock (tests alone).
 */
const [verb, prefix, configuration, input, moment] = ARGV as [string, string, string, string, string];

/** Everything a scope remembers is younger than this. */
const KEYS_OUTLIVE_MS = 86_400_000;

/** Under any other beginning the clock is the server's, whatever a caller says. */
const TEST_PREFIX = "pgw-test:";

function storeClock(): StoreClock {
  const given = prefix.startsWith(TEST_PREFIX) ? tonumber(moment) : undefined;
  if (given !== undefined) return { nowMs: given, wallMs: given };
  const [seconds, microseconds] = redis.call("TIME") as [string, string];
  const nowMs = tonumber(seconds)! * 1_000 + tonumber(microseconds)! / 1_000;
  return { nowMs, wallMs: nowMs };
}

/**
 * Tells the others; the process that ticked hears of it in the answer. A permit that came back while nobody is known to wait
 * is news for nobody: who comes later asks by itself.
 */
function publish(events: readonly GovernorEvent[], worker: string, fairness: boolean): void {
  for (const event of events) {
    const isForNobody = event.type === "capacity" && event.source !== "*" && event.worker === undefined && fairness;
    if (isForNobody || event.worker === worker) continue;
    const channel = event.worker === undefined ? "ev" : `wake:${event.worker}`;
    redis.call("PUBLISH", prefix + channel, cjson.encode({ from: worker, event }));
  }
}

/**
 * At maxmemory the first write of a script is refused when it may need memory, later ones are not. What ends or goes on
 * must be booked all the same, so it begins with a write that needs none (spec 02 §5); a tick of wants alone is refused.
 */
function insistOn({ settles, verdicts, renew }: TickBatch): void {
  if (settles.length + verdicts.length + renew.length > 0) redis.call("ZREM", prefix + LEASES_KEY, "");
}

function leaseIdsOf({ settles, verdicts, renew, wants }: TickBatch): string[] {
  const leaseIds: string[] = [];
  for (const { leaseId } of settles) leaseIds.push(leaseId);
  for (const { leaseId } of verdicts) leaseIds.push(leaseId);
  for (const leaseId of renew) leaseIds.push(leaseId);
  for (const { leaseId } of wants) leaseIds.push(leaseId);
  return leaseIds;
}

/** A scope that begins with leases: its state was lost without them, or they were kept by a clock that went back. */
function begin(setup: FleetSetup, server: StoreClock): LoadedScope {
  const loaded = loadScope(prefix, setup, server);
  if (!loaded.clock.isNew || redis.call("EXISTS", prefix + LEASES_KEY) === 0) return loaded;
  repair(prefix, setup, server, KEYS_OUTLIVE_MS);
  return loadScope(prefix, setup, server);
}

function tick(setup: FleetSetup, server: StoreClock): string {
  const batch = receivedBatch(cjson.decode(input) as SentBatch);
  const { state, leases, clock, save } = begin(setup, server);
  leases.prefetch(leaseIdsOf(batch));
  const { reply, events } = runTick(state, batch, clock);
  // Whatever can fail comes before the first write.
  const told = cjson.encode({ reply, events });
  insistOn(batch);
  save(KEYS_OUTLIVE_MS);
  publish(events, batch.worker, setup.scheduling.fairness);
  return told;
}

function snapshot(setup: FleetSetup, server: StoreClock): string {
  const { state, clock } = loadScope(prefix, setup, server);
  reclaimExpired(state, clock);
  const sources: unknown[] = [];
  for (const source of state.sourceList) sources.push(describeSource(state, source, clock));
  return cjson.encode({ ...describeScope(state), sources });
}

/** Asked for alone, without a configuration. */
function progressAge(server: StoreClock): string {
  const { lastProgressMs, nowMs } = loadProgress(prefix, server);
  return lastProgressMs === Number.NEGATIVE_INFINITY ? "" : `${nowMs - lastProgressMs}`;
}

function repaired(setup: FleetSetup, server: StoreClock): string {
  return `${repair(prefix, setup, server, KEYS_OUTLIVE_MS)}`;
}

const verbs: Record<string, (setup: FleetSetup, server: StoreClock) => string> = { tick, snapshot, repair: repaired };

function answerNow(): string {
  const server = storeClock();
  return verb === "progress" ? progressAge(server) : verbs[verb]!(cjson.decode(configuration) as FleetSetup, server);
}

export const answer = answerNow();
