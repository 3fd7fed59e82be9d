import { noOptions, unknownOptions } from "../domain/option-names.js";
import { dsnProblem } from "../domain/postgres-dsn.js";
import { ConfigError, type ConfigProblem } from "../errors.js";
import { DEFAULT_TABLE } from "./columns.js";
import type { PostgresPool } from "./postgres-database.js";

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
  queueSize: 10_000,
  flushIntervalMs: 50,
  statementTimeoutMs: DEFAULT_STATEMENT_TIMEOUT_MS,
};
const HIGHEST = { queueSize: 10_000_000, flushIntervalMs: 60_000, statementTimeoutMs: 600_000 };
const TABLE_NAME = /^(?:[A-Za-z_][A-Za-z0-9_]{0,62}\.)?[A-Za-z_][A-Za-z0-9_]{0,62}$/;

/** Fills the defaults in. Throws ConfigError with every option that is out of range; an address is never quoted. */
export function postgresOptions(given: string | PostgresRecorderOptions): ResolvedPostgresOptions {
  const none = typeof given === "string" ? null : noOptions("PostgresRecorder", given);
  if (none !== null) throw new ConfigError([none]);
  const options: ResolvedPostgresOptions = { ...DEFAULTS, ...(typeof given === "string" ? { dsn: given } : given) };
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
  const problems = unknownOptions("PostgresRecorder", options, KNOWN);
  if (typeof options.table !== "string" || !TABLE_NAME.test(options.table)) {
    const remedy = "Use letters, digits and _ (at most 63), no digit first, with or without a schema";
    const value = String(options.table);
    problems.push({ key: "PostgresRecorder.table", value, problem: "is no table name", remedy });
  }
  for (const [name, highest] of Object.entries(HIGHEST)) {
    const value: unknown = options[name as keyof typeof HIGHEST];
    if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= highest) continue;
    const remedy = `Use a whole number from 1 to ${highest}`;
    problems.push({ key: `PostgresRecorder.${name}`, value: String(value), problem: "is out of range", remedy });
  }
  return problems;
}
