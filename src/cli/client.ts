import { createSystemRuntime, formatLogLine } from "../backends/system.js";
import { defaultConcurrency } from "../batch/concurrency.js";
import { chatLines } from "../batch/kinds/chat.js";
import { embeddingLines } from "../batch/kinds/embedding.js";
import { ocrLines } from "../batch/kinds/ocr.js";
import type { BatchClient } from "../batch/types.js";
import type { ClientKind } from "../config/client-kind.js";
import type { ProcessSettings } from "../config/env.js";
import type { EmbeddingOptions, GatewayOptions, OcrOptions } from "../config/options.js";
import { resolveScope } from "../config/resolve.js";
import { createPageReader } from "../documents/pages.js";
import type { EmbeddingConfig } from "../domain/embedding.js";
import { isPostgresDsn } from "../domain/postgres-dsn.js";
import { OcrClient } from "../gateway/ocr-client.js";
import { EmbeddingClient, GatewayClient } from "../gateway.js";
import type { Recorder } from "../ports/recorder.js";
import type { LogLevel, Runtime } from "../ports/runtime.js";
import { defaultStatusFolder } from "../status/status-file.js";
import { JsonlRecorder } from "../telemetry/jsonl.js";
import { PostgresRecorder } from "../telemetry/postgres.js";
import { PricingTable } from "../telemetry/pricing.js";
import { refuseOtherAddress } from "../telemetry/reader.js";
import { SqliteRecorder, sqliteAvailable } from "../telemetry/sqlite.js";
import { profileFor, profiles } from "../transports/openai/profiles.js";
import { type ConfigFlags, loadScope, openConfiguration } from "./configuration.js";
import { chooseScope } from "./scope.js";
import { printable, type Terminal } from "./terminal.js";

const LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];
const BATCH_BACKEND_GRACE_MS = 60_000;

export interface ClientRequest extends ConfigFlags {
  readonly scope?: string;
  /** SQLite database for telemetry, or the address of a PostgreSQL one, whatever the configuration says. */
  readonly db?: string;
  readonly terminal: Pick<Terminal, "env" | "stderr">;
  /** A batch waits where a single prompt would rather fail, and records each attempt before it goes on (spec 07). */
  readonly batch?: boolean;
  /** Kinds of clients that the command can use. Default: for chat alone. */
  readonly kinds?: readonly ClientKind[];
  /** Where warnings go. Default: stderr. */
  readonly note?: (text: string, topic?: string) => void;
}

/** Processes that share a Redis lose it together, and each has its own words of the client for it. */
const SHARED_TOPIC = "outage";

/** A telemetry store that commands can read back. */
export interface TelemetryStore {
  readonly kind: "sqlite" | "jsonl" | "postgres";
  /** Of a file; of PostgreSQL the address, secrets and all. */
  readonly path: string;
}

export interface OpenedClient {
  readonly client: GatewayClient;
  readonly runtime: Runtime;
  /** Lines a batch keeps in flight when the user names no number (spec 12 §1). */
  readonly defaultConcurrency: number;
  /** Where rows and open attempts are kept; undefined = nowhere. */
  readonly store: TelemetryStore | undefined;
  close(): Promise<void>;
}

/**
 * The stores a configuration asks for; the command line's default is SQLite at ./polygateway.db (spec 07).
 * Without a SQLite driver rows go to a JSONL file beside it, and one line says how to get SQLite (spec 05).
 */
export function telemetryStores(
  settings: Pick<ProcessSettings, "telemetryBackends" | "sqlitePath" | "jsonlPath" | "postgresDsn">,
  db: string | undefined,
  note: (text: string) => void,
): TelemetryStore[] {
  if (db !== undefined && isPostgresDsn(db)) return [{ kind: "postgres", path: db }];
  if (db !== undefined) refuseOtherAddress(db);
  const backends = db === undefined ? (settings.telemetryBackends ?? ["sqlite"]) : (["sqlite"] as const);
  const stores = backends.flatMap((kind): TelemetryStore[] => {
    if (kind === "jsonl") return [{ kind, path: settings.jsonlPath }];
    if (kind === "postgres" && settings.postgresDsn !== undefined)
      return [{ kind, path: settings.postgresDsn.reveal() }];
    if (kind !== "sqlite") return [];
    const path = db ?? settings.sqlitePath;
    const driver = sqliteAvailable();
    if (driver.ok) return [{ kind, path }];
    const fallback = `${path.replace(/\.(db|sqlite3?)$/, "")}.jsonl`;
    note(`No SQLite driver here: telemetry goes to ${fallback}. For SQLite: ${driver.remedy}`);
    return [{ kind: "jsonl", path: fallback }];
  });
  return stores.filter((store, index) => stores.findIndex((other) => other.path === store.path) === index);
}

export function recorderFor(store: TelemetryStore): Recorder {
  if (store.kind === "postgres") return new PostgresRecorder(store.path);
  return store.kind === "sqlite" ? new SqliteRecorder(store.path) : new JsonlRecorder(store.path);
}

/** What `batch` does differently where the user has not said otherwise. */
export function batchDefaults(options: GatewayOptions, settings: ProcessSettings): Partial<GatewayOptions> {
  return {
    backpressure: { whenOpen: "wait", backendGraceMs: BATCH_BACKEND_GRACE_MS, ...options.backpressure },
    // A line of OUT is written only after its record is committed (spec 05), so sync is not a choice here.
    telemetryOptions: {
      ...options.telemetryOptions,
      journal: options.telemetryOptions?.journal ?? settings.journal ?? "before_send",
      durability: "sync",
    },
  };
}

/** Everything a client is made of, checked; nothing is opened yet. */
export interface PreparedClient {
  /** Which client `options` are for; those of another client than chat have its fields too. */
  readonly kind: ClientKind;
  readonly options: GatewayOptions;
  readonly runtime: Runtime;
  /** Models of the enabled sources. */
  readonly models: readonly string[];
  /** Lines a batch keeps in flight when the user names no number (spec 12 §1). */
  readonly defaultConcurrency: number;
  /** Where rows and open attempts are kept; undefined = nowhere. */
  readonly store: TelemetryStore | undefined;
}

/** Reads a command's configuration file, or environment and `.env`. Throws ConfigError and CliError. */
export function prepareClient(request: ClientRequest): PreparedClient {
  const { terminal } = request;
  const note = request.note ?? ((text: string) => void terminal.stderr.write(`${text}\n`));
  let leastLevel: LogLevel = "warn";
  const runtime = createSystemRuntime({
    log: (level, message, fields) => {
      if (LEVELS.indexOf(level) < LEVELS.indexOf(leastLevel)) return;
      const line = printable(formatLogLine(message, level === "debug" ? fields : undefined).trimEnd());
      note(line, fields?.kind === SHARED_TOPIC ? SHARED_TOPIC : undefined);
    },
  });
  const configuration = openConfiguration(request, terminal.env);
  const loaded = loadScope(configuration, chooseScope(request.scope, configuration, request.kinds), request.kinds);
  for (const { key, level, text } of loaded.notes) if (level === "warning") note(`${key}: ${text}`);
  leastLevel = loaded.process.logLevel;
  const stores = telemetryStores(loaded.process, request.db, note);
  const options: GatewayOptions = {
    ...loaded.options,
    ...(request.batch ? batchDefaults(loaded.options, loaded.process) : {}),
    ...(request.batch ? { statusPath: loaded.options.statusPath ?? defaultStatusFolder() } : {}),
    runtime,
    telemetry: stores.length === 0 ? "none" : stores.map(recorderFor),
    ...pricingOf(loaded.process, note),
  };
  const { config } = resolveScope(options, { profiles, profileFor, client: loaded.client });
  return {
    kind: loaded.client,
    options,
    runtime,
    models: [...new Set(config.sources.map(({ model }) => model))],
    defaultConcurrency: defaultConcurrency(config),
    store: stores[0],
  };
}

/** Builds the governed client of a command. */
export function openClient(request: ClientRequest): OpenedClient {
  const { options, runtime, defaultConcurrency, store } = prepareClient(request);
  const client = new GatewayClient(options);
  return { client, runtime, defaultConcurrency, store, close: () => client.close() };
}

/** The client of a command that runs lines, whatever the scope is for. */
export interface OpenedLines extends Omit<OpenedClient, "client"> {
  readonly lines: BatchClient;
}

export const ALL_KINDS: readonly ClientKind[] = ["chat", "embedding", "ocr"];

/** Builds the governed client that a scope is for. */
export function openLines(request: ClientRequest): OpenedLines {
  const prepared = prepareClient({ kinds: ALL_KINDS, ...request });
  if (prepared.kind === "embedding") return embeddingLinesOf(prepared);
  const { kind, options, runtime, defaultConcurrency, store } = prepared;
  const opened = { runtime, defaultConcurrency, store };
  if (kind === "ocr") {
    // Read as the options of a client for OCR, so they have its fields too.
    const own = options as GatewayOptions & OcrOptions;
    const { maxImageBytes } = resolveScope(own, { profiles, profileFor, client: "ocr" }).ocr!;
    const client = new OcrClient(own);
    const pages = createPageReader({ clock: runtime, maxPictureBytes: maxImageBytes });
    return {
      ...opened,
      lines: ocrLines(client, pages),
      async close() {
        await client.close();
        pages.close();
      },
    };
  }
  const client = new GatewayClient(options);
  return { ...opened, lines: chatLines(client, runtime), close: () => client.close() };
}

export interface OpenedEmbeddingLines extends OpenedLines {
  readonly embedder: EmbeddingClient;
  readonly embedding: EmbeddingConfig;
}

/** The governed client of a command that embeds. Throws ConfigError and CliError. */
export function openEmbeddingLines(request: ClientRequest): OpenedEmbeddingLines {
  return embeddingLinesOf(prepareClient({ ...request, kinds: ["embedding"] }));
}

function embeddingLinesOf({ options, runtime, defaultConcurrency, store }: PreparedClient): OpenedEmbeddingLines {
  // Read as the options of an embedding client, so they have its fields too.
  const own = options as GatewayOptions & EmbeddingOptions;
  const embedding = resolveScope(own, { profiles, profileFor, client: "embedding" }).embedding!;
  const embedder = new EmbeddingClient(own);
  return {
    lines: embeddingLines(embedder),
    embedder,
    embedding,
    runtime,
    defaultConcurrency,
    store,
    close: () => embedder.close(),
  };
}

function pricingOf({ pricingPath }: ProcessSettings, note: (text: string) => void): Pick<GatewayOptions, "pricing"> {
  if (pricingPath === undefined) return {};
  const pricing = PricingTable.fromFile(pricingPath);
  pricing.onUnknownModel((model) => note(`${pricingPath} has no price for ${model}: its cost stays unknown.`));
  return { pricing };
}
