import { noOptions, unknownOptions } from "../domain/option-names.js";
import { countProblems, definedOf } from "../domain/option-values.js";
import { dsnProblem } from "../domain/postgres-dsn.js";
import { ConfigError, type ConfigProblem } from "../errors.js";
import { DEFAULT_TABLE } from "./columns.js";
import type { PostgresPool } from "./postgres-database.js";
import { DEFAULT_QUEUE_SIZE, MAX_QUEUE_SIZE } from "./row-queue.js";
import { tableProblems } from "./table-name.js";

interface CommonOptions {
  /** Default `llm_calls`; `schema.name` names its schema too, else the search path finds it. */
  readonly table?: string;
  /** Entries kept in memory while the database can't be written; the oldest are lost beyond it. Default 10,000. */
  readonly queueSize?: number;
  /** Longest time a row waits in memory, in milliseconds. Default 50. */
  readonly flushIntervalMs?: number;
  /** A statement that takes longer is given up and tried again, in milliseconds. Default 10,000. */
  readonly statementTimeoutMs?: number;
}

/** Where the database is: an address, or a pool of the package `pg` that stays the caller's own and is never closed. */
export type PostgresRecorderOptions = CommonOptions &
  ({ readonly dsn: string; readonly pool?: undefined } | { readonly pool: PostgresPool; readonly dsn?: undefined });

export interface ResolvedPostgresOptions extends Required<CommonOptions> {
  readonly dsn?: string | undefined;
  readonly pool?: PostgresPool | undefined;
}

export const DEFAULT_STATEMENT_TIMEOUT_MS = 10_000;
const DEFAULTS = {
  table: DEFAULT_TABLE,
  queueSize: DEFAULT_QUEUE_SIZE,
  flushIntervalMs: 50,
  statementTimeoutMs: DEFAULT_STATEMENT_TIMEOUT_MS,
};
const MAX_FLUSH_INTERVAL_MS = 60_000;
const MAX_STATEMENT_TIMEOUT_MS = 600_000;

/** Fills the defaults in. Throws ConfigError with every option that is out of range; an address is never quoted. */
export function postgresOptions(given: string | PostgresRecorderOptions): ResolvedPostgresOptions {
  const none = typeof given === "string" ? null : noOptions("PostgresRecorder", given);
  if (none !== null) throw new ConfigError([none]);
  const options: ResolvedPostgresOptions = {
    ...DEFAULTS,
    ...(typeof given === "string" ? { dsn: given } : definedOf(given)),
  };
  const problems = [...placeProblems(options), ...optionProblems(options)];
  if (problems.length > 0) throw new ConfigError(problems);
  return options;
}

function placeProblems({ dsn, pool }: ResolvedPostgresOptions): ConfigProblem[] {
  const key = "PostgresRecorder.dsn";
  const remedy = "Give an address like postgres://user:password@host:5432/database, or a pool";
  if (pool !== undefined && dsn !== undefined) {
    return [{ key, problem: "is given beside a pool", remedy: "Keep one of the two" }];
  }
  if (pool !== undefined) {
    if (typeof pool?.connect === "function") return [];
    return [{ key: "PostgresRecorder.pool", problem: "has no connect()", remedy: "Give a Pool of the package pg" }];
  }
  const problem = dsnProblem(dsn);
  return problem === null ? [] : [{ key, problem, remedy }];
}

const KNOWN = ["dsn", "pool", ...Object.keys(DEFAULTS)];

function optionProblems(options: ResolvedPostgresOptions): ConfigProblem[] {
  const { queueSize, flushIntervalMs, statementTimeoutMs } = options;
  const ms = "milliseconds";
  return [
    ...unknownOptions("PostgresRecorder", options, KNOWN),
    ...tableProblems("PostgresRecorder.table", options.table, { schema: true }),
    ...countProblems("PostgresRecorder.queueSize", queueSize, MAX_QUEUE_SIZE),
    ...countProblems("PostgresRecorder.flushIntervalMs", flushIntervalMs, MAX_FLUSH_INTERVAL_MS, ms),
    ...countProblems("PostgresRecorder.statementTimeoutMs", statementTimeoutMs, MAX_STATEMENT_TIMEOUT_MS, ms),
  ];
}
