import type { Secret } from "../domain/secret.js";
import type { CaptureMode } from "../ports/recorder.js";
import type { LogLevel } from "../ports/runtime.js";
import { choice, duration, type Field, type Fields, flag, optional } from "./field.js";
import type { Durability, JournalMode } from "./options.js";

/** The settings of the whole process (spec 07 "Process wide"); see schema.ts. */
export const TELEMETRY_BACKENDS = ["sqlite", "jsonl", "postgres", "otel"] as const;
export type TelemetryBackend = (typeof TELEMETRY_BACKENDS)[number];

/** What holds for the whole process, whatever the scope. */
export interface ProcessSettings {
  readonly limiterBackend: "memory" | "redis";
  readonly breakerBackend: "memory" | "redis";
  readonly cacheBackend: "none" | "memory" | "redis";
  /** Required by everything that is kept in Redis. */
  readonly redisUrl: Secret | undefined;
  readonly redisTimeoutMs: number;
  readonly leaseTtlMs: number;
  readonly leaseRenewal: boolean;
  /** undefined = not said (library: none; CLI: sqlite); empty = none. */
  readonly telemetryBackends: readonly TelemetryBackend[] | undefined;
  readonly sqlitePath: string;
  readonly jsonlPath: string;
  /** Address of the PostgreSQL database; required for that backend. */
  readonly postgresDsn: Secret | undefined;
  readonly capture: CaptureMode;
  readonly durability: Durability;
  /** undefined = not said (library: async; batch: before_send). */
  readonly journal: JournalMode | undefined;
  readonly pricingPath: string | undefined;
  /** Folder of files with live state; undefined = not said (library: none; batch: one of the user's own). */
  readonly statusPath: string | undefined;
  readonly logLevel: LogLevel;
}

export interface RedisSettings {
  readonly url: Secret | undefined;
  readonly timeoutMs: number;
}

const PATH: Pick<Field<string>, "kind"> = { kind: "text" };

export const PROCESS_FIELDS: Fields<ProcessSettings> = {
  limiterBackend: choice("PGW_LIMITER_BACKEND", ["memory", "redis"], "memory", "Where limits are counted"),
  breakerBackend: choice(
    "PGW_BREAKER_BACKEND",
    ["memory", "redis"],
    "memory",
    "Where breakers live; the same as PGW_LIMITER_BACKEND, which is enough by itself",
  ),
  cacheBackend: choice(
    "PGW_CACHE_BACKEND",
    ["none", "memory", "redis"],
    "none",
    "Where answers of a scope are kept that says nothing of its own",
  ),
  redisUrl: {
    kind: "redis_url",
    env: "REDIS_URL",
    fallback: undefined,
    defaultText: "– (required for redis)",
    secret: true,
    text: "Address of Redis, for everything that is kept there",
  },
  redisTimeoutMs: duration("PGW_REDIS_TIMEOUT_S", 250, "Longest wait for an answer of Redis", {
    above: 0,
    max: 60_000,
  }),
  leaseTtlMs: duration("PGW_LEASE_TTL_S", 30_000, "When the permits of a dead worker come back", {
    min: 3_000,
    max: 86_400_000,
  }),
  leaseRenewal: flag("PGW_LEASE_RENEWAL", true, "off: PGW_LEASE_TTL_S must cover the longest TIMEOUT_S"),
  telemetryBackends: {
    kind: "list",
    env: "PGW_TELEMETRY_BACKEND",
    fallback: undefined,
    choices: TELEMETRY_BACKENDS,
    available: ["sqlite", "jsonl", "postgres"],
    defaultText: "none (command line: sqlite)",
    text: "Where telemetry goes: a list with commas, or none",
  },
  sqlitePath: {
    ...PATH,
    env: "PGW_TELEMETRY_SQLITE_PATH",
    fallback: "./polygateway.db",
    text: "Database file of the sqlite backend",
  },
  jsonlPath: {
    ...PATH,
    env: "PGW_TELEMETRY_JSONL_PATH",
    fallback: "./polygateway.jsonl",
    text: "File of the jsonl backend",
  },
  postgresDsn: {
    kind: "dsn",
    env: "PGW_TELEMETRY_PG_DSN",
    fallback: undefined,
    defaultText: "– (required for postgres)",
    secret: true,
    text: "Address of the database of the postgres backend",
  },
  capture: choice(
    "PGW_TELEMETRY_CAPTURE",
    ["full", "digest", "none"],
    "full",
    "How texts are kept: as they are, as hash and length, or not at all",
  ),
  durability: choice(
    "PGW_TELEMETRY_DURABILITY",
    ["async", "sync"],
    "async",
    "sync: a call waits until its row is committed",
  ),
  journal: optional(
    choice<JournalMode>(
      "PGW_JOURNAL",
      ["async", "before_send", "off"],
      "async",
      "When an open attempt is written down",
    ),
    "async (batch: before_send)",
  ),
  pricingPath: optional({ ...PATH, env: "PGW_PRICING_PATH", fallback: "", text: "JSON price table" }, "no prices"),
  statusPath: optional(
    {
      ...PATH,
      env: "PGW_STATUS_PATH",
      fallback: "",
      text: "Folder where a process shows its live state to `polygateway status`",
    },
    "none (batch: a temporary folder of the user's own)",
  ),
  logLevel: choice("PGW_LOG_LEVEL", ["debug", "info", "warn", "error"], "warn", "Least severe message that is logged"),
};

/** How Redis is reached: a group of options in code, settings of the process elsewhere. */
export const REDIS_FIELDS: Fields<RedisSettings> = {
  url: PROCESS_FIELDS.redisUrl,
  timeoutMs: PROCESS_FIELDS.redisTimeoutMs,
};
