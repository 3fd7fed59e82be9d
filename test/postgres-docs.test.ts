import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PostgresRecorder } from "../src/telemetry/postgres.js";
import { migratePostgres, prunePostgres } from "../src/telemetry/postgres-care.js";
import { openTelemetryFile } from "../src/telemetry/reader.js";
import { reconcileStore } from "../src/telemetry/reconcile.js";
import { sampleOpen, sampleRecord } from "../src/testing/contracts/recorder.js";
import { createDatabase, type TestDatabase } from "./services/database.js";
import { sharedPostgres } from "./services/shared-postgres.js";

/** The rights on the page docs/guide/telemetry-rights.md: each role can do what it is for, and nothing else is needed. */

const page = readFileSync(new URL("../docs/guide/telemetry-rights.md", import.meta.url), "utf8");
const server = await sharedPostgres();
const ROLES = ["writer", "reader", "books", "pruner", "batch"] as const;
let database: TestDatabase;

/** Roles belong to the whole server: here their names carry that of the database. */
const nameOf = (role: (typeof ROLES)[number]) => `polygateway_${role}_${database.name}`;
const urlOf = (role: (typeof ROLES)[number]) => server!.url(database.name, nameOf(role));

beforeAll(async () => {
  if (server === null) return;
  database = await createDatabase(server);
  await migratePostgres(database.url());
  let sql = [...page.matchAll(/^```sql\n([\s\S]*?)^```$/gm)].map(([, text]) => text).join("\n");
  for (const role of ROLES) sql = sql.replaceAll(`polygateway_${role}`, nameOf(role));
  await database.sql(sql);
});

afterAll(async () => {
  if (server === null) return;
  for (const role of ROLES) await database.sql(`DROP OWNED BY ${nameOf(role)}; DROP ROLE ${nameOf(role)}`);
  await database.dispose();
});

async function rowsFor(dsn: string): Promise<number> {
  const file = openTelemetryFile(dsn);
  try {
    let count = 0;
    for await (const _row of file.rows()) count += 1;
    await file.openAttempts();
    return count;
  } finally {
    file.close();
  }
}

describe.skipIf(server === null)("the roles of the page", () => {
  it("can do what they are for, without a warning and without DDL", async () => {
    const before = database.ddl().length;
    const told: string[] = [];
    const recorder = new PostgresRecorder(urlOf("writer"));
    recorder.onProblem(({ message }) => told.push(message));
    await recorder.open(sampleOpen(1, { worker: "elsewhere:1:x" }), true);
    await recorder.open(sampleOpen(2), true);
    await recorder.record(sampleRecord(2), true);
    await recorder.close();
    expect(told).toEqual([]);
    expect(await rowsFor(urlOf("reader"))).toBe(1);
    const { repaired, balanced } = await reconcileStore({ store: urlOf("books"), now: Date.now() });
    expect({ repaired, balanced }).toEqual({ repaired: { abandoned: 1, answered: 0, ended: 1 }, balanced: true });
    expect(await prunePostgres(urlOf("pruner"), { beforeMs: Date.now() + 60_000 })).toEqual({ rows: 3, kept: 0 });
    expect(database.ddl().slice(before)).toEqual([]);
  });

  it("writer and books are one role where batches run", async () => {
    const told: string[] = [];
    const recorder = new PostgresRecorder(urlOf("batch"));
    recorder.onProblem(({ message }) => told.push(message));
    await recorder.open(sampleOpen(11, { worker: "elsewhere:1:x" }), true);
    await recorder.record(sampleRecord(12), true);
    await recorder.close();
    expect(told).toEqual([]);
    const { repaired, balanced } = await reconcileStore({ store: urlOf("batch"), now: Date.now() });
    expect({ abandoned: repaired.abandoned, balanced }).toEqual({ abandoned: 1, balanced: true });
  });

  it("codes of warnings on the page are those that the recorder has", () => {
    const told = new Set([...page.matchAll(/PG_TELEMETRY_[A-Z]+/g)].map(([code]) => code));
    const folder = new URL("../src/telemetry/", import.meta.url);
    const sources = ["postgres.ts", "postgres-writer.ts"].map((name) => readFileSync(new URL(name, folder), "utf8"));
    const used = new Set<string>(sources.join("\n").match(/PG_TELEMETRY_[A-Z]+/g));
    // What is alike for all recorders has the code's end alone.
    const troubles = readFileSync(new URL("troubles.ts", folder), "utf8");
    for (const [, end] of troubles.matchAll(/tell\("([A-Z]+)"/g)) used.add(`PG_TELEMETRY_${end}`);
    expect([...told].sort()).toEqual([...used].sort());
  });

  it("can't do what the others are for", async () => {
    await expect(rowsFor(urlOf("writer"))).rejects.toThrow("permission denied for table llm_calls");
    await expect(prunePostgres(urlOf("books"), { beforeMs: Date.now() })).rejects.toThrow("permission denied");
    await expect(prunePostgres(urlOf("reader"), { beforeMs: Date.now() })).rejects.toThrow("permission denied");
    await expect(migratePostgres(urlOf("writer"), "other")).rejects.toThrow("permission denied for schema public");
  });
});
