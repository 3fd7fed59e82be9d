import { setTimeout as sleep } from "node:timers/promises";
import { onConnection } from "../services/database.js";
import { signalTo } from "../services/processes.js";
import { type Arena, any, draw, type Fault, inTurn, loseReplies } from "./fault.js";
import { POSTGRES_ROLE, type PostgresStore } from "./telemetry.js";

function troubled(arena: Arena, work: (store: PostgresStore) => Promise<unknown>): Promise<boolean> {
  const { postgres } = arena;
  return postgres === null ? Promise.resolve(false) : inTurn(arena, "postgres", () => work(postgres));
}

const sessionsOf = "SELECT pid FROM pg_stat_activity WHERE usename = $1";

const STOPPED: Fault = {
  id: "F70",
  what: "PostgreSQL stopped, and started again",
  needs: "postgres",
  inject: (arena) =>
    troubled(arena, async ({ server }) => {
      await server.stop();
      await sleep(draw(arena.next, 1_000, 3_000));
      await server.start();
    }),
};

const FROZEN: Fault = {
  id: "F71",
  what: "PostgreSQL frozen, longer than a statement may take",
  needs: "postgres",
  inject: (arena) =>
    troubled(arena, async ({ server }) => {
      server.pause();
      await sleep(draw(arena.next, 2_300, 3_500));
      server.resume();
    }),
};

const KILLED: Fault = {
  id: "F70k",
  what: "a process of PostgreSQL killed, and all sessions with it",
  needs: "postgres",
  inject: (arena) =>
    troubled(arena, async ({ server }) => {
      const found = await onConnection(server.url(), (client) => client.query(sessionsOf, [POSTGRES_ROLE]));
      const session = any(arena.next, found.rows as { pid: number }[]);
      if (session !== undefined) signalTo(session.pid, "SIGKILL");
      // It is recovering.
      await sleep(1_000);
    }),
};

const REPLIES_LOST: Fault = {
  id: "F70r",
  what: "answers of PostgreSQL lost after the commit",
  needs: "postgres",
  met: ({ postgresRepliesLost }) => postgresRepliesLost,
  inject: (arena) => troubled(arena, ({ relay }) => loseReplies(relay, arena.next)),
};

const REFUSED: Fault = {
  id: "F72",
  what: "PostgreSQL refuses the password for a moment",
  needs: "postgres",
  inject: (arena) =>
    troubled(arena, ({ server, password }) =>
      onConnection(server.url(), async (client) => {
        const set = (word: string) => client.query(`ALTER ROLE ${POSTGRES_ROLE} PASSWORD '${word}'`);
        await set("another");
        await client.query(sessionsOf.replace("pid", "pg_terminate_backend(pid)"), [POSTGRES_ROLE]);
        await sleep(draw(arena.next, 500, 1_500));
        await set(password);
      }),
    ),
};

const TOO_LONG: Fault = {
  id: "F70q",
  what: "a queue too small for the time that PostgreSQL was away",
  needs: "postgres",
  always: true,
  met: ({ rowsToldLost }) => rowsToldLost,
};

/** Only Linux tells which processes are a server's. */
const FREEZES = process.platform === "linux" ? [FROZEN] : [];

export const POSTGRES_FAULTS: readonly Fault[] = [STOPPED, ...FREEZES, REPLIES_LOST, KILLED, REFUSED, TOO_LONG];
