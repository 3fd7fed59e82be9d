import { type RedisServer, startRedis } from "../services/redis.js";
import { startTcpRelay, type TcpRelay } from "../services/tcp-relay.js";
import { CanaryJudge, makeCanary } from "./canaries.js";
import { Crew } from "./crew.js";
import type { FleetFlags } from "./flags.js";
import type { WorkerPlan } from "./messages.js";
import { globalLimits, sourceOptions, sourcePlans, startUpstreams, type Upstream } from "./sources.js";
import { openStore, type TelemetryStore } from "./telemetry.js";

export const SCOPE = "FLEET";
export const LEASE_TTL_MS = 3_000;
/** As whom processes come to Redis; the judge comes as another, who is asked for no password. */
export const REDIS_USER = "fleet";
/** Holds less than a process does in the shortest time that PostgreSQL is away. */
const SMALL_QUEUE = 20;

/** Everything that a run is played with. */
export interface Stage {
  readonly redis: RedisServer;
  readonly redisRelay: TcpRelay;
  readonly redisPassword: string;
  readonly store: TelemetryStore;
  readonly upstreams: readonly Upstream[];
  readonly crew: Crew;
  readonly canaries: CanaryJudge;
}

/** The first process has a queue that an outage of its store overflows. */
export const hasSmallQueue = (slot: number, kind: TelemetryStore["kind"]): boolean => slot === 0 && kind === "postgres";

/** Starts everything, and ends it whatever happens meanwhile. */
export async function withStage<T>(flags: FleetFlags, play: (stage: Stage) => Promise<T>): Promise<T> {
  const ends: (() => unknown)[] = [];
  try {
    const redisPassword = makeCanary("redis");
    const redis = await startRedis({ config: { user: `${REDIS_USER} on >${redisPassword} ~* &* +@all` } });
    ends.push(() => redis.stop());
    const redisRelay = await startTcpRelay(redis.port);
    ends.push(() => redisRelay.close());
    const postgresPassword = makeCanary("postgres");
    const store = await openStore(flags.telemetry, postgresPassword);
    ends.push(() => store.dispose());
    const upstreams = await startUpstreams(sourcePlans(flags.rate), flags.seed, makeCanary);
    ends.push(() => Promise.all(upstreams.map(({ provider }) => provider.stop())));
    const keys = Object.fromEntries(upstreams.map(({ plan, apiKey }) => [`source ${plan.name}`, apiKey]));
    const canaries = new CanaryJudge({ ...keys, Redis: redisPassword, PostgreSQL: postgresPassword });
    const stage = { redis, redisRelay, redisPassword, store, upstreams, canaries };
    const crew = new Crew(
      (slot) => planOf(slot, flags, stage),
      (place, pid, text) => (place === "output" ? canaries.hear(pid, text) : canaries.look(place, text)),
    );
    ends.push(() => crew.endAll());
    return await play({ ...stage, crew });
  } finally {
    for (const end of ends.reverse()) await end();
  }
}

/** Every second process goes by the relays, so that answers on their way to it can be lost. */
function planOf(slot: number, flags: FleetFlags, stage: Omit<Stage, "crew">): WorkerPlan {
  const { redis, redisRelay, redisPassword, store, upstreams } = stage;
  const isRelayed = slot % 2 === 1;
  const port = isRelayed ? redisRelay.port : redis.port;
  return {
    scope: SCOPE,
    sources: upstreams.map(sourceOptions),
    global: globalLimits(flags.rate),
    redisUrl: `redis://${REDIS_USER}:${redisPassword}@${redis.host}:${port}`,
    telemetry: {
      kind: store.kind,
      place: isRelayed ? store.relayedPlace : store.place,
      ...(hasSmallQueue(slot, store.kind) ? { queueSize: SMALL_QUEUE } : {}),
    },
    callers: flags.callers,
    cycleMs: (flags.workers * flags.callers * 1_000) / (3 * flags.rate),
    leaseTtlMs: LEASE_TTL_MS,
  };
}
