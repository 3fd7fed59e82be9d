import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Recorder } from "../src/index.js";
import { JsonlRecorder } from "../src/telemetry/jsonl.js";
import { PostgresRecorder } from "../src/telemetry/postgres.js";
import { openTelemetryFile } from "../src/telemetry/reader.js";
import { SqliteRecorder, sqliteAvailable } from "../src/telemetry/sqlite.js";
import { sampleId, sampleOpen, sampleRecord } from "../src/testing/contracts/recorder.js";
import { createDatabase, type TestDatabase } from "./services/database.js";
import { sharedPostgres } from "./services/shared-postgres.js";

/** What plain JavaScript may give a recorder: refused with a word, or lost alone; the rows beside it are kept. */

const server = await sharedPostgres();
let folder = "";
let database: TestDatabase | null = null;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "pgw-bad-"));
  database = server === null ? null : await createDatabase(server);
});
afterEach(async () => {
  rmSync(folder, { recursive: true, force: true });
  await database?.dispose();
});

const RECORDERS: Record<string, { isHere: boolean; make: () => readonly [Recorder, place: string] }> = {
  JsonlRecorder: {
    isHere: true,
    make: () => [new JsonlRecorder(join(folder, "c.jsonl")), join(folder, "c.jsonl")],
  },
  SqliteRecorder: {
    isHere: sqliteAvailable().ok,
    make: () => [new SqliteRecorder(join(folder, "c.db")), join(folder, "c.db")],
  },
  PostgresRecorder: {
    isHere: server !== null,
    make: () => {
      const dsn = database?.url() ?? "";
      return [new PostgresRecorder(dsn), dsn];
    },
  },
};

async function idsIn(place: string): Promise<string[]> {
  const file = openTelemetryFile(place);
  const ids: string[] = [];
  for await (const row of file.rows()) ids.push(String(row.call_id));
  file.close();
  return ids.sort();
}

const nothing = Object.create(null);

describe.each(Object.keys(RECORDERS))("%s", (title) => {
  const { isHere, make } = RECORDERS[title] as (typeof RECORDERS)[string];

  it.skipIf(!isHere)("refuses what is no record with a word about it, and keeps the others", async () => {
    const [recorder, place] = make();
    recorder.record(sampleRecord(1), false);
    for (const bad of [null, undefined, 5, "x", [], {}, { callId: 5 }, { callId: "" }, Symbol("x")]) {
      expect(() => recorder.record(bad as never, false)).toThrow(/^record\(\) takes an object with a callId/);
      expect(() => recorder.open(bad as never, false)).toThrow(/^open\(\) takes an object with a callId/);
    }
    recorder.record(sampleRecord(2), false);
    await recorder.close();
    expect(await idsIn(place)).toEqual([sampleId(1), sampleId(2)].sort());
    expect(recorder.stats()).toMatchObject({ written: 2, queued: 0, dropped: 0 });
  });

  it.skipIf(!isHere)("loses a record that no store can keep alone", async () => {
    const [recorder, place] = make();
    const bad: Record<string, unknown>[] = [
      { messages: {} },
      { messages: [] },
      { response: () => 1 },
      { scope: Symbol("x") },
      { error: nothing },
      { model: 5 },
      { promptTokens: Symbol("x") },
      { costNanos: Symbol("x") },
      { latencyMs: nothing },
    ];
    for (const [index, fields] of bad.entries()) {
      recorder.record(sampleRecord(2 * index), false);
      recorder.record(sampleRecord(2 * index + 1, fields as never), false);
    }
    recorder.open({ ...sampleOpen(99), startedAtMs: Symbol("x") } as never, false);
    await recorder.close();
    const kept = new Set(await idsIn(place));
    for (const index of bad.keys()) expect(kept.has(sampleId(2 * index))).toBe(true);
    const { written, queued, dropped } = recorder.stats();
    // A time or a price that is none may be kept as unknown.
    expect(written + dropped).toBe(2 * bad.length + 1);
    expect(dropped).toBeGreaterThanOrEqual(7);
    expect(queued).toBe(0);
  });
});
