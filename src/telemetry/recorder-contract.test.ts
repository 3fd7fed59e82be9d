import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "vitest";
import type { Recorder } from "../ports/recorder.js";
import { type RecorderUnderTest, recorderContract } from "../testing/contracts/recorder.js";
import type { StoredRow } from "./columns.js";
import { JsonlRecorder } from "./jsonl.js";
import { openTelemetryFile } from "./reader.js";
import { SqliteRecorder, sqliteAvailable } from "./sqlite.js";

async function readAll(path: string) {
  if (!existsSync(path)) return { rows: [], openCallIds: [] };
  const file = openTelemetryFile(path);
  try {
    const rows: StoredRow[] = [];
    for await (const row of file.rows()) rows.push(row);
    return { rows, openCallIds: (await file.openAttempts()).map((open) => open.callId) };
  } finally {
    file.close();
  }
}

function inTempFolder(name: string, make: (path: string) => Recorder): RecorderUnderTest {
  const folder = mkdtempSync(join(tmpdir(), "pgw-recorder-"));
  const path = join(folder, name);
  return {
    recorder: make(path),
    read: () => readAll(path),
    dispose: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

describe.skipIf(!sqliteAvailable().ok)("SqliteRecorder", () => {
  recorderContract({
    test,
    makeRecorder: async (options) => inTempFolder("calls.db", (path) => new SqliteRecorder({ path, ...options })),
  });
});

describe("JsonlRecorder", () => {
  recorderContract({
    test,
    makeRecorder: async (options) => inTempFolder("calls.jsonl", (path) => new JsonlRecorder({ path, ...options })),
  });
});
