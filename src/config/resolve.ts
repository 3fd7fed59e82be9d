import type { EmbeddingConfig } from "../domain/embedding.js";
import type { OcrConfig } from "../domain/ocr.js";
import { REMOTE_PREFETCH_MS, type ScopeConfig, type SelectorName } from "../domain/scope.js";
import type { SourceConfig } from "../domain/source.js";
import { ConfigError, type ConfigProblem } from "../errors.js";
import { cacheNotes, type ResolvedCache, readCache, requireRedis } from "./cache.js";
import { type ClientKind, NEVER_CACHED, ownOptions } from "./client-kind.js";
import type { Field, Fields } from "./field.js";
import { type ConfigNote, embeddingWarnings, violations, warnings } from "./invariants.js";
import { ocrWarnings, promptRules } from "./invariants-ocr.js";
import { masked, secretsIn } from "./known-secrets.js";
import { codeLabels, type Labels } from "./labels.js";
import type { EmbeddingOptions, GatewayOptions, OcrOptions, ProxyEnv, TelemetryOptions } from "./options.js";
import { type ProfileContext, readProfile } from "./profile.js";
import { type OptionReader, optionReader } from "./reader.js";
import {
  BACKPRESSURE_FIELDS,
  BREAKER_FIELDS,
  EMBEDDING_FIELDS,
  GLOBAL_FIELDS,
  OCR_FIELDS,
  RETRY_FIELDS,
  SCOPE_FIELDS,
} from "./schema.js";
import { PROCESS_FIELDS, type ProcessSettings, REDIS_FIELDS, type RedisSettings } from "./schema-process.js";
import { SCHEDULING_FIELDS } from "./schema-scheduling.js";
import { SOURCE_FIELDS } from "./schema-source.js";
import { checkTransport, suitingDefaults } from "./source-kind.js";
import { hasMethods, isPlainObject } from "./values.js";

export type { ConfigNote } from "./invariants.js";

export interface ResolveContext extends ProfileContext {
  /** Default `chat`. */
  readonly client?: ClientKind;
  /** How keys and values are called in problems; default: constructor paths. */
  readonly labels?: Labels;
  /** Paths that are already reported as broken: neither required nor judged again. */
  readonly broken?: ReadonlySet<string>;
  /** The process names a price table beside the options. */
  readonly hasPriceTable?: boolean;
}

export interface ResolvedScope {
  readonly config: ScopeConfig;
  readonly limiterBackend: ProcessSettings["limiterBackend"];
  readonly cache: ResolvedCache;
  readonly redis: RedisSettings;
  /** null for another kind of client. */
  readonly embedding: EmbeddingConfig | null;
  /** null for another kind of client. */
  readonly ocr: OcrConfig | null;
  readonly telemetry: Required<TelemetryOptions>;
  /** Folder where live state is shown; undefined = nowhere. */
  readonly statusPath: string | undefined;
  readonly notes: readonly ConfigNote[];
}

export interface ScopeInspection extends ResolvedScope {
  /** Empty = `config` may be used. */
  readonly problems: readonly ConfigProblem[];
}

type AnyOptions = GatewayOptions | EmbeddingOptions | OcrOptions;

/**
 * Fills every default of spec 07 and checks every rule; disabled sources are left out.
 * Throws ConfigError with all problems at once, each by its key.
 */
export function resolveScope(options: AnyOptions, context: ResolveContext = {}): ResolvedScope {
  const { problems, ...resolved } = inspectScope(options, context);
  if (problems.length > 0) throw new ConfigError(problems);
  return resolved;
}

/** The same without throwing, for those who show problems beside other things. */
export function inspectScope(options: AnyOptions, context: ResolveContext = {}): ScopeInspection {
  const given: Record<string, unknown> = isPlainObject(options) ? options : {};
  const labels = context.labels ?? codeLabels(given);
  const reader = optionReader(labels, context.broken);
  const { client = "chat" } = context;
  reader.refuseUnknown(given, [...KNOWN_OPTIONS, ...ownOptions(client)], "");
  const sources = readSources(reader, given.sources, context);
  const config = readScope(reader, given, sources);
  const limiterBackend = readLimiterBackend(reader, given);
  const cache = readCache(reader, given.cache);
  const redis = reader.object("redis", REDIS_FIELDS, given.redis);
  requireRedis(reader, { cache, limiterBackend }, redis);
  const telemetry = reader.object("telemetryOptions", TELEMETRY_FIELDS, given.telemetryOptions);
  if (client !== "chat") refuseCache(reader, given, client);
  const embedding = client === "embedding" ? readEmbedding(reader, given) : null;
  const ocr = client === "ocr" ? readOcr(reader, given) : null;
  checkPassedThrough(reader, given, TRANSPORTS[client]);
  const positions = sources.map(({ position }) => position);
  const hasPrices = context.hasPriceTable === true || given.pricing !== undefined;
  const subject = { config, positions, labels, usable: reader.usable, hasPrices };
  const secrets = secretsIn(given);
  return {
    config: limiterBackend === "redis" || isRemote(given.governor) ? prefetching(config, given.scheduling) : config,
    limiterBackend,
    cache,
    redis,
    embedding,
    ocr,
    telemetry,
    statusPath: reader.field("statusPath", PROCESS_FIELDS.statusPath, given.statusPath),
    notes: masked(secrets, [
      ...cacheNotes(given, { cache, limiterBackend }, labels),
      ...emptyScopeNotes(given.sources, sources.length),
      ...warnings(subject),
      ...(embedding === null ? [] : embeddingWarnings(subject, embedding.batchSize)),
      ...(ocr === null ? [] : ocrWarnings(subject)),
    ]),
    problems: masked(secrets, [...reader.problems, ...violations(subject), ...promptRules(subject)]),
  };
}

const SCOPE_NAME: Field<string> = { kind: "name", fallback: "", required: true, text: "Name of the scope" };

const TELEMETRY_FIELDS: Fields<Required<TelemetryOptions>> = {
  capture: PROCESS_FIELDS.capture,
  journal: { ...PROCESS_FIELDS.journal, fallback: "async" },
  durability: PROCESS_FIELDS.durability,
};

const PROXY: Field<string | undefined> = { kind: "text", fallback: undefined, mayBeEmpty: true, text: "" };
const PROXY_FIELDS: Fields<ProxyEnv> = { httpProxy: PROXY, httpsProxy: PROXY, noProxy: PROXY };

interface Shape {
  readonly methods: readonly string[];
  readonly what: string;
}

const TRANSPORTS: Readonly<Record<ClientKind, Shape>> = {
  chat: { methods: ["complete"], what: "a ChatTransport" },
  embedding: { methods: ["embed"], what: "an EmbeddingTransport" },
  ocr: { methods: ["recognizeText", "parseLayout", "checkHealth"], what: "an OcrTransport" },
};

/** Objects that are handed through as they are: only their shape is checked. */
const PASSED_THROUGH: Readonly<Record<string, Shape>> = {
  governor: { methods: ["tick", "onEvent", "snapshot"], what: "a Governor" },
  pricing: { methods: ["costNanos"], what: "an object with costNanos(model, usage)" },
  runtime: { methods: ["now", "sleep", "setTimer", "random", "uuid"], what: "a Runtime" },
};

const KNOWN_OPTIONS = [
  "scope",
  "sources",
  "retry",
  "breaker",
  "backpressure",
  "global",
  "scheduling",
  ...Object.keys(SCOPE_FIELDS),
  "telemetry",
  "telemetryOptions",
  "leaseTtlMs",
  "leaseRenewal",
  "limiterBackend",
  "statusPath",
  "proxyEnv",
  "cache",
  "redis",
  "transport",
  ...Object.keys(PASSED_THROUGH),
];

function refuseCache(reader: OptionReader, given: Record<string, unknown>, client: Exclude<ClientKind, "chat">): void {
  if (given.cache === undefined) return;
  reader.report("cache", `has no meaning here: ${NEVER_CACHED[client]}`, "Leave it out.");
}

function readOcr(reader: OptionReader, given: Record<string, unknown>): OcrConfig {
  return { maxImageBytes: reader.field("maxImageBytes", OCR_FIELDS.maxImageBytes, given.maxImageBytes) };
}

function readEmbedding(reader: OptionReader, given: Record<string, unknown>): EmbeddingConfig {
  return {
    batchSize: reader.field("batchSize", EMBEDDING_FIELDS.batchSize, given.batchSize),
    expectedDim: reader.field("expectedDim", EMBEDDING_FIELDS.expectedDim, given.expectedDim),
    normalize: reader.field("normalize", EMBEDDING_FIELDS.normalize, given.normalize),
    concurrency: reader.field("concurrency", EMBEDDING_FIELDS.concurrency, given.concurrency),
  };
}

const isRemote = (governor: unknown): boolean => (governor as { isRemote?: unknown } | undefined)?.isRemote === true;

/** A governor of the user's own is where it is. */
function readLimiterBackend(reader: OptionReader, given: Record<string, unknown>): ProcessSettings["limiterBackend"] {
  const backend = reader.field("limiterBackend", PROCESS_FIELDS.limiterBackend, given.limiterBackend);
  if (given.governor === undefined || given.limiterBackend === undefined) return backend;
  reader.report("limiterBackend", "has no effect beside governor", "Give one of the two.");
  return "memory";
}

function prefetching(config: ScopeConfig, given: unknown): ScopeConfig {
  if (isPlainObject(given) && given.prefetchMs !== undefined) return config;
  return { ...config, scheduling: { ...config.scheduling, prefetchMs: REMOTE_PREFETCH_MS } };
}

function readScope(
  reader: OptionReader,
  given: Record<string, unknown>,
  sources: readonly PlacedSource[],
): ScopeConfig {
  return {
    scope: reader.field("scope", SCOPE_NAME, given.scope),
    sources: sources.map(({ config }) => config),
    retry: reader.object("retry", RETRY_FIELDS, given.retry),
    breaker: reader.object("breaker", BREAKER_FIELDS, given.breaker),
    backpressure: reader.object("backpressure", BACKPRESSURE_FIELDS, given.backpressure),
    global: reader.object("global", GLOBAL_FIELDS, given.global),
    selector: readSelector(reader, given.selector),
    scheduling: reader.object("scheduling", SCHEDULING_FIELDS, given.scheduling),
    failover: reader.field("failover", SCOPE_FIELDS.failover, given.failover),
    deadlineMs: reader.field("deadlineMs", SCOPE_FIELDS.deadlineMs, given.deadlineMs),
    leaseTtlMs: reader.field("leaseTtlMs", PROCESS_FIELDS.leaseTtlMs, given.leaseTtlMs),
    leaseRenewal: reader.field("leaseRenewal", PROCESS_FIELDS.leaseRenewal, given.leaseRenewal),
  };
}

/** A selector object orders by itself; the name then only says what happens among equals. */
function readSelector(reader: OptionReader, given: unknown): SelectorName {
  if (hasMethods(given, ["order"])) return "least_inflight";
  return reader.field("selector", SCOPE_FIELDS.selector, given);
}

interface PlacedSource {
  readonly config: SourceConfig;
  /** Where it stands in what the user wrote. */
  readonly position: number;
}

function readSources(reader: OptionReader, given: unknown, context: ResolveContext): PlacedSource[] {
  if (!Array.isArray(given) || given.length === 0) {
    if (reader.usable("sources")) reader.report("sources", "has no source", "Give a list with at least one source.");
    return [];
  }
  return given.flatMap((source: unknown, position) => {
    const isDisabled = isPlainObject(source) && source.disabled === true;
    const config = readSource(reader, source, `sources[${position}]`, isDisabled, context);
    return isDisabled ? [] : [{ config, position }];
  });
}

function readSource(
  reader: OptionReader,
  source: unknown,
  path: string,
  partial: boolean,
  context: ResolveContext,
): SourceConfig {
  const given = isPlainObject(source) ? { ...suitingDefaults(source), ...source } : {};
  const { disabled: _, ...values } = reader.object(
    path,
    SOURCE_FIELDS,
    isPlainObject(source) ? given : source,
    partial,
  );
  checkTransport(reader, `${path}.transport`, values.transport, context.client ?? "chat");
  const { name, provider, timeoutMs, ttftTimeoutMs, interTokenTimeoutMs } = values;
  // A default is never a violation: a short timeout shortens the defaults that must fit into it.
  const within = (option: string, value: number): number =>
    given[option] === undefined ? Math.min(value, timeoutMs) : value;
  return {
    ...values,
    provider: given.provider === undefined ? name.replace(/_\d+$/, "") : provider,
    profile: readProfile(reader, `${path}.profile`, given.profile, values.baseUrl, context),
    ttftTimeoutMs: within("ttftTimeoutMs", ttftTimeoutMs),
    interTokenTimeoutMs: within("interTokenTimeoutMs", interTokenTimeoutMs),
  };
}

function checkPassedThrough(reader: OptionReader, given: Record<string, unknown>, transport: Shape): void {
  for (const [option, { methods, what }] of Object.entries({ ...PASSED_THROUGH, transport })) {
    if (given[option] === undefined || !reader.usable(option) || hasMethods(given[option], methods)) continue;
    reader.report(option, "can't be used", `Give ${what}.`);
  }
  const { governor, scope, telemetry, proxyEnv } = given;
  if (reader.usable("governor") && governor !== undefined && (governor as { scope?: unknown }).scope !== scope) {
    const other = String((governor as { scope?: unknown }).scope);
    reader.report("governor", `belongs to scope ${other}`, `Give one of this client's scope, ${String(scope)}.`);
  }
  const recorders = [telemetry].flat().filter((recorder) => recorder !== undefined && telemetry !== "none");
  if (!recorders.every((recorder) => hasMethods(recorder, ["open", "record", "flush", "close"]))) {
    reader.report("telemetry", "can't be used", 'Give a recorder, a list of recorders or "none".');
  }
  reader.object("proxyEnv", PROXY_FIELDS, proxyEnv);
}

function emptyScopeNotes(given: unknown, enabled: number): ConfigNote[] {
  if (enabled > 0 || !Array.isArray(given) || given.length === 0) return [];
  const text = "every source of the scope is disabled, so each call ends as no_sources";
  return [{ key: "DISABLED", level: "warning", text }];
}
