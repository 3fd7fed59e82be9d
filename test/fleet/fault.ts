import { setTimeout as sleep } from "node:timers/promises";
import type { LedgerEntry } from "../../src/testing/provider/server.js";
import type { RandomStream } from "../../src/testing/seeded-random.js";
import type { RedisServer } from "../services/redis.js";
import type { TcpRelay } from "../services/tcp-relay.js";
import type { Crew } from "./crew.js";
import type { Upstream } from "./sources.js";
import type { PostgresStore } from "./telemetry.js";

/** Where faults happen, and what the judge must know of them. */
export interface Arena {
  readonly redis: RedisServer;
  /** The wire of every second process to Redis. */
  readonly redisRelay: TcpRelay;
  readonly redisPassword: string;
  /** null where rows go to a file. */
  readonly postgres: PostgresStore | null;
  readonly crew: Crew;
  readonly upstreams: readonly Upstream[];
  readonly leaseTtlMs: number;
  readonly next: RandomStream;
  /** When Redis lost everything (epoch ms). */
  readonly restarts: number[];
  /** Sources that something is being done to. */
  readonly busy: Set<string>;
  /** The last fault of each server. */
  readonly turns: Map<string, Promise<unknown>>;
}

/** What was counted of a run, for faults that are known by what met them. */
export interface Met {
  /** Requests of all ledgers that are so. */
  requests(match: (entry: Readonly<LedgerEntry>) => boolean): number;
  readonly redisRepliesLost: number;
  readonly postgresRepliesLost: number;
  /** Rows whose id has a time that no clock of the machine ever had. */
  readonly rowsOfAnotherTime: number;
  readonly rowsToldLost: number;
}

/** A kind of fault, by its id in the catalogue of faults. */
export interface Fault {
  readonly id: string;
  readonly what: string;
  /** It counts as fired when this is above 0; absent: when it was injected. */
  readonly met?: (met: Met) => number;
  /** Goes on from the start, or is never injected more often than this. */
  readonly always?: true;
  readonly atMostEveryMs?: number;
  readonly needs?: "postgres";
  /** Ends when the fault is over. false: there was nothing to strike. */
  inject?(arena: Arena): Promise<boolean>;
}

export const draw = (next: RandomStream, from: number, to: number): number =>
  from + Math.floor((next() / 2 ** 32) * (to - from));

export function any<T>(next: RandomStream, from: readonly T[]): T | undefined {
  return from[draw(next, 0, from.length)];
}

const MOST_LOSSES = 12;

/** Some times one after the other: who connects again loses the next answer too. Goes on until there was an answer to lose. */
export async function loseReplies(relay: TcpRelay, next: RandomStream): Promise<true> {
  const before = relay.repliesLost;
  const atLeast = draw(next, 1, 4);
  for (let times = 0; times < atLeast || (relay.repliesLost === before && times < MOST_LOSSES); times += 1) {
    relay.loseReplies();
    await sleep(draw(next, 60, 200));
  }
  return true;
}

/** Two faults of one server at once would undo each other: they wait for each other. */
export async function inTurn(
  { turns }: Arena,
  server: "redis" | "postgres",
  work: () => Promise<unknown>,
): Promise<true> {
  const mine = (turns.get(server) ?? Promise.resolve()).then(work);
  turns.set(
    server,
    mine.catch(() => {}),
  );
  await mine;
  return true;
}
