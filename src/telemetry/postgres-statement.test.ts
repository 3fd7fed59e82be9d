import pg from "pg";
import { describe, expect, test } from "vitest";
import { ConfigError } from "../errors.js";
import { CALL_COLUMNS, OPEN_COLUMNS } from "./columns.js";
import { PostgresRecorder, type PostgresRecorderOptions } from "./postgres.js";
import { isConnectionFault, isRowFault, isStructural, LateError, PoolError, sqlState } from "./postgres-errors.js";
import { callTarget, openTarget, writeStatement } from "./postgres-statement.js";
import { tableNames } from "./postgres-tables.js";

const names = tableNames("llm_calls");
const TYPES = { TEXT: "text", INTEGER: "bigint", REAL: "double precision" };
const ours = new Map(CALL_COLUMNS.map(({ name, type }) => [name as string, TYPES[type]]));
const journal = openTarget(new Map(OPEN_COLUMNS.map(({ name, type }) => [name as string, TYPES[type]])));
const row = CALL_COLUMNS.map(({ type }, index) => (type === "TEXT" ? `t${index}` : index + 0.4));

describe("the statement of a batch", () => {
  test("inserts without naming the columns of the conflict, whatever else it does", () => {
    const target = { calls: callTarget(ours), opens: journal };
    const { text, values } = writeStatement(names, target, { calls: [row, row], opens: [["a"]], closed: ["b", "c"] });
    expect(text.match(/ON CONFLICT DO NOTHING/g)).toHaveLength(2);
    expect(text).not.toMatch(/ON CONFLICT \(/);
    expect(text).toContain(`DELETE FROM "open_attempts" WHERE call_id = ANY($${OPEN_COLUMNS.length + 1}::text[])`);
    expect(values).toHaveLength(CALL_COLUMNS.length + OPEN_COLUMNS.length + 1);
    expect(values[OPEN_COLUMNS.length + 1]).toEqual(["t0", "t0"]);
  });

  test("leaves the journal alone where there is none", () => {
    const target = { calls: callTarget(ours), opens: null };
    const { text } = writeStatement(names, target, { calls: [row], opens: [["a"]], closed: ["b"] });
    expect(text).toMatch(/^INSERT INTO "llm_calls"/);
    expect(text).not.toContain("open_attempts");
  });

  test("has nothing for columns that the table lacks", () => {
    const few = new Map([...ours].filter(([name]) => name !== "route" && name !== "messages"));
    const target = { calls: callTarget(few), opens: null };
    const { text, values } = writeStatement(names, target, { calls: [row], opens: [], closed: [] });
    expect(values).toHaveLength(CALL_COLUMNS.length - 2);
    expect(text).not.toMatch(/"route"|"messages"/);
  });

  test("fits values into the types of others", () => {
    const theirs = new Map([
      ["call_id", "uuid"],
      ["messages", "jsonb"],
      ["prompt_tokens", "smallint"],
      ["latency_ms", "integer"],
      ["final", "boolean"],
    ]);
    const values: (string | number | null)[] = CALL_COLUMNS.map(() => null);
    const put = (name: string, value: string | number) =>
      (values[CALL_COLUMNS.findIndex((column) => column.name === name)] = value);
    put("call_id", "x");
    put("messages", "{cut");
    put("prompt_tokens", 40_000);
    put("latency_ms", 12.6);
    put("final", 1);
    const statement = writeStatement(
      names,
      { calls: callTarget(theirs), opens: null },
      { calls: [values], opens: [], closed: [] },
    );
    expect(statement.values).toEqual([["x"], ['"{cut"'], [null], [13], [1]]);
    expect(statement.text).toContain("SELECT u.c0::uuid, u.c1::jsonb, u.c2, u.c3, u.c4::boolean FROM");
    expect(statement.text).toContain("unnest($1::text[], $2::text[], $3::smallint[], $4::integer[], $5::text[])");
  });

  test("quotes names, with their schema", () => {
    expect(tableNames("audit.calls")).toEqual({
      calls: '"audit"."calls"',
      open: '"audit"."open_attempts"',
      table: "calls",
    });
  });
});

describe("what an error means", () => {
  const withCode = (code: string) => Object.assign(new Error(code), { code });

  test.each([
    ["22003", { row: true, structural: false, connection: false }],
    ["23514", { row: true, structural: false, connection: false }],
    ["42501", { row: false, structural: true, connection: false }],
    ["42P01", { row: false, structural: true, connection: false }],
    ["3F000", { row: false, structural: true, connection: false }],
    ["57P01", { row: false, structural: false, connection: true }],
    ["57014", { row: false, structural: false, connection: false }],
    ["53300", { row: false, structural: false, connection: false }],
    // A standby that may be promoted.
    ["25006", { row: false, structural: false, connection: false }],
    ["ECONNRESET", { row: false, structural: false, connection: true }],
    ["EPIPE", { row: false, structural: false, connection: true }],
  ])("%s", (code, expected) => {
    const error = withCode(code);
    const found = { row: isRowFault(error), structural: isStructural(error), connection: isConnectionFault(error) };
    expect(found).toEqual(expected);
  });

  test("ours are no faults of a connection", () => {
    expect(isConnectionFault(new LateError())).toBe(false);
    expect(isConnectionFault(new PoolError())).toBe(false);
    expect(sqlState(null)).toBeNull();
  });
});

describe("options of PostgresRecorder", () => {
  const problems = (options: unknown): string[] => {
    try {
      new PostgresRecorder(options as PostgresRecorderOptions);
    } catch (error) {
      if (error instanceof ConfigError) return error.problems.map(({ key, problem }) => `${key} ${problem}`);
      throw error;
    }
    return [];
  };

  test("are all judged at once, and the address is never quoted", () => {
    expect(problems({ dsn: "mysql://me:secret@h/d", table: "a b", queueSize: 0, flushIntervalMs: 0.5 })).toEqual([
      "PostgresRecorder.dsn does not begin with postgres:// or postgresql://",
      "PostgresRecorder.table is no table name",
      "PostgresRecorder.queueSize is out of range",
      "PostgresRecorder.flushIntervalMs is out of range",
    ]);
    expect(problems("")).toEqual(["PostgresRecorder.dsn is empty"]);
    expect(problems({ pool: {} })).toEqual(["PostgresRecorder.pool has no connect()"]);
    expect(problems({ pool: new pg.Pool(), dsn: "postgres://h/d" })).toEqual([
      "PostgresRecorder.dsn is given beside a pool",
    ]);
  });

  test("constructing connects to nothing, and the place has no password", () => {
    const recorder = new PostgresRecorder({ dsn: "postgresql://me:secret@127.0.0.1:1/d", table: "audit.calls" });
    expect(recorder.place).toBe("postgres://me@127.0.0.1:1/d");
    expect(recorder.stats()).toEqual({ written: 0, queued: 0, dropped: 0, problem: null });
    expect(JSON.stringify(recorder)).not.toContain("secret");
  });
});
