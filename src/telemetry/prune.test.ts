import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sampleOpen, sampleRecord } from "../testing/contracts/recorder.js";
import { pruneTelemetry } from "./prune.js";
import { openTelemetryFile } from "./reader.js";
import { SqliteRecorder } from "./sqlite.js";
import { openDatabase } from "./sqlite-driver.js";
import { TelemetryFileError } from "./store.js";

const NOW = Date.UTC(2026, 10, 30, 12);
const DAY_MS = 86_400_000;
let folder = "";
let path = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pgw-prune-"));
  path = join(folder, "calls.db");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Rows 1…n, each made at the moment given. */
async function write(moments: readonly (string | number)[]): Promise<void> {
  const recorder = new SqliteRecorder(path);
  recorder.open(sampleOpen(999), false);
  await recorder.flush();
  for (const index of moments.keys()) recorder.record(sampleRecord(index + 1), false);
  await recorder.close();
  const database = openDatabase(path, { readOnly: false });
  const set = database.prepare("UPDATE llm_calls SET created_at = ? WHERE call_id = ?");
  for (const [index, moment] of moments.entries()) set.run(moment, sampleRecord(index + 1).callId);
  database.close();
}

async function idsLeft(): Promise<string[]> {
  const file = openTelemetryFile(path);
  const ids: string[] = [];
  for await (const row of file.rows()) ids.push(String(row.call_id));
  file.close();
  return ids;
}

const idOf = (number: number): string => sampleRecord(number).callId;

describe("prune", () => {
  const sqlite = () => ({ kind: "sqlite", path }) as const;

  test("deletes what was made before the moment, however its time is written, and nothing else", async () => {
    await write([
      "2026-10-30T12:00:00.000Z",
      "2026-11-29 11:59:59",
      "2026-11-29 12:00:01",
      "2026-11-29T12:00:00.000Z",
      NOW - 2 * DAY_MS,
      (NOW - 2 * DAY_MS) / 1_000,
      NOW,
    ]);
    const beforeMs = NOW - DAY_MS;
    expect(pruneTelemetry(sqlite(), { beforeMs, dryRun: true })).toEqual({ rows: 4, kept: 3 });
    expect(await idsLeft()).toHaveLength(7);
    expect(pruneTelemetry(sqlite(), { beforeMs })).toEqual({ rows: 4, kept: 3 });
    expect(await idsLeft()).toEqual([3, 4, 7].map(idOf));
    expect(pruneTelemetry(sqlite(), { beforeMs })).toEqual({ rows: 0, kept: 3 });
  });

  test("leaves open attempts alone: what became of them isn't known yet", async () => {
    await write(["2020-01-01T00:00:00.000Z"]);
    pruneTelemetry(sqlite(), { beforeMs: NOW });
    const file = openTelemetryFile(path);
    expect((await file.openAttempts()).map(({ callId }) => callId)).toEqual([sampleOpen(999).callId]);
    file.close();
  });

  test("more rows than one transaction takes, while another process writes", async () => {
    await write(Array.from({ length: 4_500 }, (_, index) => (index % 3 === 0 ? NOW : "2026-01-01T00:00:00.000Z")));
    const writer = new SqliteRecorder(path);
    const written = writer.record(sampleRecord(90_000), true);
    expect(pruneTelemetry(sqlite(), { beforeMs: NOW - DAY_MS }).rows).toBe(3_000);
    await written;
    await writer.close();
    expect(await idsLeft()).toHaveLength(1_501);
    expect(writer.stats()).toMatchObject({ dropped: 0, problem: null });
  });

  test("a file of something else is not touched, a table that isn't there is no success", async () => {
    await write([NOW]);
    for (const table of ["other", 'no"pe', ""]) {
      expect(() => pruneTelemetry(sqlite(), { beforeMs: NOW + 1, table })).toThrow("has no telemetry in a table");
    }
    const foreign = join(folder, "users.db");
    const database = openDatabase(foreign, { readOnly: false });
    database.exec("PRAGMA journal_mode = DELETE");
    database.exec("CREATE TABLE users (id TEXT)");
    database.close();
    const before = readFileSync(foreign);
    expect(() => pruneTelemetry({ kind: "sqlite", path: foreign }, { beforeMs: NOW })).toThrow(TelemetryFileError);
    expect(readFileSync(foreign).equals(before)).toBe(true);
  });

  test("JSONL is refused with what to do", () => {
    const jsonl = join(folder, "calls.jsonl");
    expect(() => pruneTelemetry({ kind: "jsonl", path: jsonl }, { beforeMs: NOW })).toThrow(TelemetryFileError);
  });
});
