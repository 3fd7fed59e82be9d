import { setTimeout as sleep } from "node:timers/promises";
import { draw, type Fault, inTurn, loseReplies } from "./fault.js";
import { REDIS_USER } from "./stage.js";

/** What a window may hold more after a restart is known for one in it. */
const RESTART_EVERY_MS = 65_000;
/** Shorter than what is left of a permit that was just about to be renewed. */
const PAUSE_MS = [300, 800] as const;

export const RESTARTED: Fault = {
  id: "F31",
  what: "Redis killed, back empty",
  atMostEveryMs: RESTART_EVERY_MS,
  inject: (arena) =>
    inTurn(arena, "redis", async () => {
      arena.restarts.push(Date.now());
      await arena.redis.restart();
    }),
};

export const PAUSED: Fault = {
  id: "F32",
  what: "Redis frozen for a moment",
  inject: (arena) =>
    inTurn(arena, "redis", async () => {
      arena.redis.pause();
      await sleep(draw(arena.next, ...PAUSE_MS));
      arena.redis.resume();
    }),
};

export const REPLIES_LOST: Fault = {
  id: "F33",
  what: "answers of Redis lost after the script has run",
  met: ({ redisRepliesLost }) => redisRepliesLost,
  inject: async ({ redisRelay, next }) => loseReplies(redisRelay, next),
};

export const CUT: Fault = {
  id: "F34",
  what: "all connections to Redis cut",
  inject: (arena) =>
    inTurn(arena, "redis", async () => {
      await arena.redis.command("CLIENT", "KILL", "TYPE", "normal");
      await arena.redis.command("CLIENT", "KILL", "TYPE", "pubsub");
    }),
};

export const FLUSHED: Fault = {
  id: "F35",
  what: "the scripts of Redis flushed",
  inject: (arena) => inTurn(arena, "redis", () => arena.redis.command("SCRIPT", "FLUSH")),
};

export const REFUSED: Fault = {
  id: "F39",
  what: "Redis refuses the password for a moment",
  inject: (arena) =>
    inTurn(arena, "redis", async () => {
      const { redis, redisPassword, next } = arena;
      const set = (password: string) => redis.command("ACL", "SETUSER", REDIS_USER, "resetpass", `>${password}`);
      await set("another");
      await redis.command("CLIENT", "KILL", "USER", REDIS_USER);
      await sleep(draw(next, ...PAUSE_MS));
      await set(redisPassword);
    }),
};
