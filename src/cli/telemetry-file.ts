import type { Env } from "../config/env.js";
import { PROCESS_FIELDS } from "../config/schema-process.js";
import { ConfigError } from "../errors.js";
import { type ConfigFlags, openConfiguration } from "./configuration.js";

export interface TelemetryFlags extends ConfigFlags {
  /** The file, whatever the configuration says. */
  readonly db?: string;
}

/** For every command that reads telemetry back. */
export const DB_OPTION = [
  "--db <path>",
  "SQLite or JSONL file with telemetry (default: the one that is configured, else ./polygateway.db)",
] as const;

/**
 * The file that `chat` and `batch` write to by the same configuration; of several the one of `kind`, else the first.
 * What is wrong with sources or scopes is of no interest here. Throws ConfigError when the place itself is not clear.
 */
export function telemetryFile(flags: TelemetryFlags, env: Env, kind?: "sqlite"): string {
  if (flags.db !== undefined) return flags.db;
  const { settings, problems, broken } = openConfiguration(flags, env).inspectProcess();
  const backends = settings.telemetryBackends ?? ["sqlite"];
  const backend = kind !== undefined && backends.includes(kind) ? kind : backends[0];
  const place = backend === "jsonl" ? "jsonlPath" : "sqlitePath";
  if (broken.has("telemetryBackends") || broken.has(place)) throw new ConfigError(problems);
  return backend === undefined ? PROCESS_FIELDS.sqlitePath.fallback : settings[place];
}
