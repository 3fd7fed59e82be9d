import { noOptions, unknownOptions } from "../domain/option-names.js";
import { ConfigError, type ConfigProblem } from "../errors.js";
import { DEFAULT_TABLE } from "./columns.js";

export interface SqliteRecorderOptions {
  /** Database file; created when missing, its folder is not. */
  readonly path: string;
  /** Default `llm_calls`. */
  readonly table?: string;
  /** Entries kept in memory while the file can't be written; the oldest are lost beyond it. Default 10,000. */
  readonly queueSize?: number;
  /** Longest time a row waits in memory, in milliseconds. Default 50. */
  readonly flushIntervalMs?: number;
}

const DEFAULT_QUEUE_SIZE = 10_000;
const DEFAULT_FLUSH_INTERVAL_MS = 50;
const TABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,62}$/;
const MAX_QUEUE_SIZE = 10_000_000;
const MAX_FLUSH_INTERVAL_MS = 60_000;

/** Fills the defaults in. Throws ConfigError with every option that is out of range. */
export function sqliteOptions(given: string | SqliteRecorderOptions): Required<SqliteRecorderOptions> {
  const none = typeof given === "string" ? null : noOptions("SqliteRecorder", given);
  if (none !== null) throw new ConfigError([none]);
  const options = {
    table: DEFAULT_TABLE,
    queueSize: DEFAULT_QUEUE_SIZE,
    flushIntervalMs: DEFAULT_FLUSH_INTERVAL_MS,
    ...(typeof given === "string" ? { path: given } : given),
  };
  const problems = optionProblems(options);
  if (problems.length > 0) throw new ConfigError(problems);
  return options;
}

function optionProblems(options: Required<SqliteRecorderOptions>): ConfigProblem[] {
  const problems = unknownOptions("SqliteRecorder", options, ["path", "table", "queueSize", "flushIntervalMs"]);
  const refuse = (key: string, value: unknown, problem: string, remedy: string) =>
    problems.push({ key: `SqliteRecorder.${key}`, value: String(value), problem, remedy });
  if (typeof options.path !== "string" || options.path.trim() === "") {
    refuse("path", options.path, "is no file path", 'Give one, for example "calls.db"');
  }
  if (typeof options.table !== "string" || !TABLE_NAME.test(options.table)) {
    refuse("table", options.table, "is no table name", "Use letters, digits and _ (at most 63), no digit first");
  }
  if (!isIntegerIn(options.queueSize, MAX_QUEUE_SIZE)) {
    refuse("queueSize", options.queueSize, "is out of range", `Use a whole number from 1 to ${MAX_QUEUE_SIZE}`);
  }
  if (!isIntegerIn(options.flushIntervalMs, MAX_FLUSH_INTERVAL_MS)) {
    const remedy = `Use whole milliseconds from 1 to ${MAX_FLUSH_INTERVAL_MS}`;
    refuse("flushIntervalMs", options.flushIntervalMs, "is out of range", remedy);
  }
  return problems;
}

function isIntegerIn(value: unknown, max: number): boolean {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= max;
}
