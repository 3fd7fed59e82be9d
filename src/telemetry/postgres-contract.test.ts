import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../../test/services/database.js";
import { sharedPostgres } from "../../test/services/shared-postgres.js";
import { recorderContract } from "../testing/contracts/recorder.js";
import type { StoredRow } from "./columns.js";
import { PostgresRecorder } from "./postgres.js";
import { openTelemetryFile } from "./reader.js";

const server = await sharedPostgres();

async function readAll(dsn: string) {
  const file = openTelemetryFile(dsn);
  try {
    const rows: StoredRow[] = [];
    for await (const row of file.rows()) rows.push(row);
    return { rows, openCallIds: (await file.openAttempts()).map((open) => open.callId) };
  } finally {
    file.close();
  }
}

describe.skipIf(server === null)("PostgresRecorder", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createDatabase(server!);
  });
  afterAll(() => database?.dispose());

  recorderContract({
    test,
    makeRecorder: async (options) => {
      await database.sql("DROP TABLE IF EXISTS llm_calls, open_attempts");
      const dsn = database.url();
      return { recorder: new PostgresRecorder({ dsn, ...options }), read: () => readAll(dsn) };
    },
  });

  test("what SQLAlchemy calls the database is an address too", async () => {
    const dsn = database.url().replace("postgres://", "postgresql+asyncpg://");
    expect(await readAll(dsn)).toEqual(await readAll(database.url()));
  });
});
