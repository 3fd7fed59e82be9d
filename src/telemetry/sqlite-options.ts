import { noOptions, unknownOptions } from "../domain/option-names.js";
import { countProblems, definedOf, pathProblems } from "../domain/option-values.js";
import { ConfigError } from "../errors.js";
import { DEFAULT_TABLE } from "./columns.js";
import { DEFAULT_QUEUE_SIZE, MAX_QUEUE_SIZE } from "./row-queue.js";
import { tableProblems } from "./table-name.js";

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

const DEFAULT_FLUSH_INTERVAL_MS = 50;
const MAX_FLUSH_INTERVAL_MS = 60_000;

/** Fills the defaults in. Throws ConfigError with every option that is out of range. */
export function sqliteOptions(given: string | SqliteRecorderOptions): Required<SqliteRecorderOptions> {
  const none = typeof given === "string" ? null : noOptions("SqliteRecorder", given);
  if (none !== null) throw new ConfigError([none]);
  const options = {
    table: DEFAULT_TABLE,
    queueSize: DEFAULT_QUEUE_SIZE,
    flushIntervalMs: DEFAULT_FLUSH_INTERVAL_MS,
    ...(typeof given === "string" ? { path: given } : definedOf(given)),
  };
  const problems = optionProblems(options);
  if (problems.length > 0) throw new ConfigError(problems);
  return options;
}

function optionProblems({ path, table, queueSize, flushIntervalMs, ...rest }: Required<SqliteRecorderOptions>) {
  return [
    ...unknownOptions("SqliteRecorder", rest, ["path", "table", "queueSize", "flushIntervalMs"]),
    ...pathProblems("SqliteRecorder.path", path, "calls.db"),
    ...tableProblems("SqliteRecorder.table", table, { schema: false }),
    ...countProblems("SqliteRecorder.queueSize", queueSize, MAX_QUEUE_SIZE),
    ...countProblems("SqliteRecorder.flushIntervalMs", flushIntervalMs, MAX_FLUSH_INTERVAL_MS, "milliseconds"),
  ];
}
