import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { GatewayClient } from "../src/index.js";
import { PostgresRecorder } from "../src/telemetry/postgres.js";
import { type SimulatedProvider, startSimulatedProvider } from "../src/testing/index.js";
import { createDatabase, type TestDatabase } from "./services/database.js";
import { sharedPostgres } from "./services/shared-postgres.js";
import { startTcpRelay, type TcpRelay } from "./services/tcp-relay.js";
import { caseRecords } from "./support/case-records.js";

/**
 * The records of test/data/cases.jsonl about a PostgreSQL store, through the public client: model calls go on, and every
 * row is there in the end.
 */

const server = await sharedPostgres();
let provider: SimulatedProvider;
let database: TestDatabase;
let relay: TcpRelay;
let pool: pg.Pool | undefined;
let client: GatewayClient;
let recorder: PostgresRecorder;

beforeEach(async () => {
  if (server === null) return;
  provider = await startSimulatedProvider();
  database = await createDatabase(server);
  relay = await startTcpRelay(Number(new URL(database.url()).port));
});

afterEach(async () => {
  await client?.close();
  await pool?.end();
  pool = undefined;
  await relay?.close();
  await provider?.stop();
  await database?.dispose();
});

/** The database by way of the relay. */
function wire(): string {
  const url = new URL(database.url());
  url.port = String(relay.port);
  return url.href;
}

function open(given: PostgresRecorder): void {
  recorder = given;
  const sources = [{ name: "sim_1", baseUrl: provider.baseUrl, apiKey: "none", model: "m" }];
  client = new GatewayClient({ scope: "LLM", sources, telemetry: recorder });
}

async function call(): Promise<void> {
  await client.chat({ messages: [{ role: "user", content: "hi" }] });
}

async function rowsReach(count: number): Promise<void> {
  while (recorder.stats().written < count) await sleep(20);
  expect(await database.sql("SELECT count(*) FROM llm_calls")).toEqual([{ count: String(count) }]);
  expect(recorder.stats()).toMatchObject({ written: count, queued: 0, dropped: 0 });
}

const SCENARIOS: Readonly<Record<string, () => Promise<void>>> = {
  async "pg-connect-timeout-leak"() {
    pool = new pg.Pool({ connectionString: wire(), max: 2, connectionTimeoutMillis: 100 });
    open(new PostgresRecorder({ pool }));
    relay.mode = "hold";
    await call();
    await recorder.flush();
    await recorder.flush();
    await recorder.flush();
    expect(recorder.stats()).toMatchObject({ written: 0, queued: 1, dropped: 0 });
    while (pool.totalCount > 0 || relay.open > 0) await sleep(20);
    relay.mode = "pass";
    await call();
    await rowsReach(2);
    expect(pool.waitingCount).toBe(0);
    expect(pool.totalCount).toBe(pool.idleCount);
  },

  async "pg-dead-in-pool"() {
    open(new PostgresRecorder({ dsn: wire(), statementTimeoutMs: 200 }));
    await call();
    await rowsReach(1);
    // Idle connections, of which nobody is told that they lead nowhere any more.
    relay.silence();
    await call();
    await rowsReach(2);
    // And one that is told only when it is used.
    relay.reset();
    await call();
    await rowsReach(3);
  },

  async "pg-idle-error"() {
    open(new PostgresRecorder(wire()));
    await call();
    await rowsReach(1);
    const ended = await database.sql(
      "SELECT pg_terminate_backend(pid) AS ended FROM pg_stat_activity WHERE application_name = 'polygateway'",
    );
    expect(ended).toEqual([{ ended: true }]);
    await call();
    await rowsReach(2);
  },
};

const records = caseRecords.filter(({ family }) => family === "telemetry-store");

describe.skipIf(server === null)("a PostgreSQL store", () => {
  test.each(records.map((record) => [record.id, record.title] as const))("%s: %s", async (id) => {
    const play = SCENARIOS[id];
    if (play === undefined) throw new Error(`no scenario plays ${id}`);
    await play();
  });
});
