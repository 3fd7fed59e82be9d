import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { onConnection } from "../../test/services/database.js";
import { type PostgresServer, startPostgres } from "../../test/services/postgres.js";
import { childrenOf } from "../../test/services/processes.js";
import { sharedPostgres } from "../../test/services/shared-postgres.js";
import { sampleId, sampleOpen, sampleRecord } from "../testing/contracts/recorder.js";
import type { RecorderProblem } from "./late-recorder.js";
import { PostgresRecorder, type PostgresRecorderOptions } from "./postgres.js";

// Only to learn whether there is PostgreSQL at all: what is stopped and hung here is a server of this file's own.
const isThere = (await sharedPostgres()) !== null;
let server: PostgresServer;
let recorder: PostgresRecorder;
let told: RecorderProblem[];

beforeAll(async () => {
  if (!isThere) return;
  const started = await startPostgres();
  if (!started.ok) throw new Error(started.reason);
  server = started.server;
});

afterAll(() => server?.dispose());

function open(options: Partial<PostgresRecorderOptions> = {}): void {
  recorder = new PostgresRecorder({ dsn: server.url(), ...options } as PostgresRecorderOptions);
  told = [];
  recorder.onProblem((problem) => told.push(problem));
}

async function rowIds(): Promise<unknown[]> {
  const result = await onConnection(server.url(), (client) =>
    client.query("SELECT call_id FROM llm_calls ORDER BY call_id"),
  );
  return result.rows.map((row: { call_id: string }) => row.call_id);
}

const idsUpTo = (count: number) => Array.from({ length: count }, (_, number) => sampleId(number));

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await sleep(20);
}

/** Gives records as calls do, a few at a time. */
async function load(from: number, to: number): Promise<void> {
  for (let number = from; number < to; number++) {
    recorder.open(sampleOpen(number), false);
    recorder.record(sampleRecord(number), false);
    if (number % 20 === 0) await sleep(1);
  }
}

describe.skipIf(!isThere)("PostgreSQL in trouble", () => {
  beforeEach(async () => {
    await onConnection(server.url(), (client) => client.query("DROP TABLE IF EXISTS llm_calls, open_attempts"));
  });
  afterEach(() => recorder?.close());

  test("stopped under load and started again: nothing is lost within the bound of the queue", async () => {
    open();
    await load(0, 500);
    const stopped = server.stop();
    await load(500, 1_500);
    await stopped;
    await load(1_500, 2_500);
    expect(recorder.stats().dropped).toBe(0);
    await server.start();
    await load(2_500, 3_000);
    await until(() => recorder.stats().queued === 0);
    expect(await rowIds()).toEqual(idsUpTo(3_000));
    expect(recorder.stats()).toEqual({ written: 3_000, queued: 0, dropped: 0, problem: null });
    expect(new Set(told.map(({ code }) => code))).toEqual(new Set(["PG_TELEMETRY_QUEUE", "PG_TELEMETRY_BACK"]));
    expect(told.at(-1)?.message).toMatch(/rows are written again; none was lost$/);
  });

  test("away at the start: the rows wait for it", async () => {
    await server.stop();
    open();
    const committed = recorder.record(sampleRecord(0), true);
    await recorder.flush();
    expect(recorder.stats()).toMatchObject({ queued: 1, dropped: 0 });
    expect(told[0]?.code).toBe("PG_TELEMETRY_PROBE");
    await server.start();
    await committed;
    expect(await rowIds()).toEqual(idsUpTo(1));
  });

  test("away for longer than the queue lasts: the oldest are lost, and each loss is counted", async () => {
    open({ queueSize: 100 });
    await recorder.record(sampleRecord(0), true);
    await server.stop();
    for (let number = 1; number <= 1_000; number++) recorder.record(sampleRecord(number), false);
    await recorder.flush();
    expect(recorder.stats()).toMatchObject({ written: 1, queued: 100, dropped: 900 });
    await server.start();
    await recorder.flush();
    expect(recorder.stats()).toMatchObject({ written: 101, queued: 0, dropped: 900 });
    expect(await rowIds()).toEqual([sampleId(0), ...idsUpTo(1_001).slice(901)]);
  });

  test("not back before close(): what is left is counted as lost", async () => {
    open();
    await recorder.record(sampleRecord(0), true);
    await server.stop();
    for (let number = 1; number <= 10; number++) recorder.record(sampleRecord(number), false);
    const committed = recorder.record(sampleRecord(11), true);
    await Promise.all([recorder.close(), expect(committed).rejects.toThrow("telemetry row lost")]);
    expect(recorder.stats()).toMatchObject({ written: 1, queued: 0, dropped: 11 });
    await server.start();
  });

  test("one of its processes killed, so that all connections end: nothing is lost and nothing is there twice", async () => {
    open();
    await load(0, 300);
    await recorder.flush();
    const [{ pid } = { pid: 0 }] = await onConnection(server.url(), async (client) => {
      const text = "SELECT pid FROM pg_stat_activity WHERE application_name = 'polygateway' LIMIT 1";
      return (await client.query(text)).rows as { pid: number }[];
    });
    process.kill(pid, "SIGKILL");
    await load(300, 600);
    await until(() => recorder.stats().queued === 0);
    expect(await rowIds()).toEqual(idsUpTo(600));
  });

  test.skipIf(process.platform !== "linux")(
    "hung: its connection is given up, no call waits, and the rows land when it goes on",
    async () => {
      open({ statementTimeoutMs: 300 });
      await load(0, 200);
      await recorder.flush();
      // Every process of the server but its first one.
      const children = childrenOf(server.pid);
      for (const pid of children) process.kill(pid, "SIGSTOP");
      await load(200, 400);
      await until(() => told.some(({ message }) => message.includes("no answer within 1300 ms")));
      for (const pid of children) process.kill(pid, "SIGCONT");
      await until(() => recorder.stats().queued === 0);
      expect(await rowIds()).toEqual(idsUpTo(400));
      expect(recorder.stats()).toMatchObject({ written: 400, dropped: 0 });
    },
  );

  test("its table locked by another: the server ends the statement, and the rows land after the lock", async () => {
    open({ statementTimeoutMs: 300 });
    await recorder.record(sampleRecord(0), true);
    await onConnection(server.url(), async (client) => {
      await client.query("BEGIN; LOCK TABLE llm_calls");
      await load(1, 100);
      await until(() => told.some(({ message }) => message.includes("statement timeout")));
      expect(recorder.stats().dropped).toBe(0);
      await client.query("COMMIT");
    });
    await until(() => recorder.stats().queued === 0);
    expect(await rowIds()).toEqual(idsUpTo(100));
  });

  test("a pool that was given is used and never closed", async () => {
    const pool = new pg.Pool({ connectionString: server.url(), max: 1 });
    recorder = new PostgresRecorder({ pool });
    recorder.open(sampleOpen(0), false);
    await recorder.flush();
    await recorder.record(sampleRecord(0), true);
    await recorder.close();
    expect((await pool.query("SELECT call_id FROM llm_calls")).rows).toEqual([{ call_id: sampleId(0) }]);
    expect((await pool.query("SELECT call_id FROM open_attempts")).rows).toEqual([]);
    await pool.end();
  });
});

describe("a server that ends a connection in the same breath as it accepts it", () => {
  /** One packet: welcome, ready, and the end. */
  const FAREWELL = Buffer.concat([
    message("R", Buffer.alloc(4)),
    message("Z", Buffer.from("I")),
    message("E", Buffer.from("SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0")),
  ]);

  function message(kind: string, body: Buffer): Buffer {
    const length = Buffer.alloc(4);
    length.writeInt32BE(body.length + 4);
    return Buffer.concat([Buffer.from(kind), length, body]);
  }

  test("ends no process: the rows are kept and tried again", async () => {
    const listener = createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => socket.end(FAREWELL));
    });
    listener.listen(0, "127.0.0.1");
    await once(listener, "listening");
    const { port } = listener.address() as AddressInfo;
    recorder = new PostgresRecorder({ dsn: `postgres://me@127.0.0.1:${port}/db` });
    told = [];
    recorder.onProblem((problem) => told.push(problem));
    recorder.record(sampleRecord(0), false);
    await until(() => told.length > 0);
    expect(told[0]?.code).toBe("PG_TELEMETRY_PROBE");
    expect(recorder.stats()).toMatchObject({ queued: 1, dropped: 0 });
    await recorder.close();
    listener.close();
  });
});

describe("a pool that cannot be built", () => {
  test("is tried once a minute at most, whatever is flushed, after one warning", async () => {
    const folder = mkdtempSync(join(tmpdir(), "pgw-pool-"));
    const certificate = join(folder, "root.pem");
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const dsn = `postgres://me:sesame-5512@127.0.0.1:1/db?sslmode=verify-full&sslrootcert=${certificate}`;
      recorder = new PostgresRecorder({ dsn, queueSize: 50 });
      told = [];
      recorder.onProblem((problem) => told.push(problem));
      const codes = () => told.map(({ code }) => code).filter((code) => code !== "PG_TELEMETRY_QUEUE");
      for (let number = 0; number < 40; number++) recorder.record(sampleRecord(number), false);
      await recorder.flush();
      expect(codes()).toEqual(["PG_TELEMETRY_POOL"]);
      await vi.advanceTimersByTimeAsync(61_000);
      expect(codes()).toEqual(["PG_TELEMETRY_POOL"]);
      // Now one can be built, although nobody answers at its address.
      writeFileSync(certificate, "");
      for (let number = 0; number < 120; number++) recorder.record(sampleRecord(number), false);
      await recorder.flush();
      await vi.advanceTimersByTimeAsync(58_000);
      expect(codes()).toEqual(["PG_TELEMETRY_POOL"]);
      expect(recorder.stats()).toMatchObject({ written: 0, queued: 50, dropped: 110 });
      await vi.advanceTimersByTimeAsync(2_000);
      await until(() => codes().includes("PG_TELEMETRY_PROBE"));
      expect(JSON.stringify(told)).not.toContain("sesame");
    } finally {
      vi.useRealTimers();
      rmSync(folder, { recursive: true, force: true });
    }
    await recorder.close();
    expect(recorder.stats()).toMatchObject({ queued: 0, dropped: 160 });
  });
});
