import { InvalidArgumentError } from "commander";
import type { Env } from "../config/env.js";
import { PROCESS_FIELDS, type TelemetryBackend } from "../config/schema-process.js";
import { isPostgresDsn, shownDsn } from "../domain/postgres-dsn.js";
import { ConfigError } from "../errors.js";
import { isTableName, TABLE_NAME_RULE } from "../telemetry/table-name.js";
import { parsePath } from "./arguments.js";
import { type ConfigFlags, openConfiguration } from "./configuration.js";

export interface TelemetryFlags extends ConfigFlags {
  /** The file or address, whatever the configuration says. */
  readonly db?: string;
}

/** For every command that reads telemetry back. */
export const DB_OPTION = [
  "--db <place>",
  "SQLite or JSONL file with telemetry, or the address of a PostgreSQL database (default: the one that is configured, else ./polygateway.db)",
  parsePath,
] as const;

function parseTable(text: string): string {
  if (isTableName(text, { schema: true })) return text;
  throw new InvalidArgumentError(
    `A table's name has ${TABLE_NAME_RULE}; in PostgreSQL its schema may stand before it.`,
  );
}

/** What no recorder would write into is nothing to read, nor to make. */
export const TABLE_OPTION = ["--table <name>", "table of a database (default llm_calls)", parseTable] as const;

/**
 * The file, or address of a PostgreSQL database, that `chat` and `batch` write to by the same configuration; of several
 * the first that is one of `kinds`, else the first.
 * What is wrong with sources or scopes is of no interest here. Throws ConfigError when the place itself is not clear.
 */
export function telemetryFile(flags: TelemetryFlags, env: Env, kinds: readonly TelemetryBackend[] = []): string {
  if (flags.db !== undefined) return flags.db;
  const { settings, problems, broken } = openConfiguration(flags, env).inspectProcess();
  const backends = settings.telemetryBackends ?? ["sqlite"];
  const backend = backends.find((name) => kinds.includes(name)) ?? backends[0];
  const place = PLACES[backend ?? "sqlite"];
  const isMissing = place === "postgresDsn" && settings.postgresDsn === undefined;
  if (broken.has("telemetryBackends") || broken.has(place) || isMissing) throw new ConfigError(problems);
  if (backend === undefined) return PROCESS_FIELDS.sqlitePath.fallback;
  return place === "postgresDsn" ? (settings.postgresDsn?.reveal() ?? "") : settings[place];
}

const PLACES: Readonly<Record<TelemetryBackend, "sqlitePath" | "jsonlPath" | "postgresDsn">> = {
  sqlite: "sqlitePath",
  jsonl: "jsonlPath",
  postgres: "postgresDsn",
  // Not in this version, so never in force.
  otel: "sqlitePath",
};

/** The place as people may see it: an address may hold a password. */
export function shownPlace(place: string): string {
  return isPostgresDsn(place) ? shownDsn(place) : place;
}
