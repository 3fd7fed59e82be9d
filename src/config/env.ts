import { ConfigError, type ConfigProblem } from "../errors.js";
import { type ClientKind, forClient } from "./client-kind.js";
import { parseDotEnv, readText } from "./dotenv.js";
import { envNameOf } from "./env-keys.js";
import { type ProcessInspection, type ProcessReading, readProcess, settingOf } from "./env-process.js";
import { type Env, type EnvReading, startReading } from "./env-reading.js";
import { missingScopeRemedy, readScope, type ScopeReading } from "./env-scope.js";
import type { ConfigNote } from "./invariants.js";
import { masked } from "./known-secrets.js";
import { fieldOf, type Labels, written } from "./labels.js";
import type { EmbeddingOptions, GatewayOptions, OcrOptions, ProxyEnv } from "./options.js";
import {
  type EmbeddingOverrides,
  merged,
  notOverridden,
  type OcrOverrides,
  type Overrides,
  overriddenLabels,
} from "./overrides.js";
import { inspectScope, type ResolveContext } from "./resolve.js";
import type { ProcessSettings } from "./schema-process.js";
import { accepted, isPlainObject, NAME_PATTERN, printable } from "./values.js";

export { readDotEnv } from "./dotenv.js";
export { scopesIn } from "./env-keys.js";
export type { Env } from "./env-reading.js";
export type { EmbeddingOverrides, OcrOverrides, Overrides } from "./overrides.js";
export type { ProcessSettings } from "./schema-process.js";

export interface DotEnvSource {
  /** A dotenv file below the given environment, which wins. Must exist. Default: none is read. */
  readonly dotenvPath?: string;
  /** Reads the dotenv file and `*_FILE` secrets. Throws ConfigError. Default: from the file system. */
  readonly readFile?: (path: string) => string;
}

export interface EnvSettings extends DotEnvSource, Pick<ResolveContext, "profiles" | "profileFor"> {
  /** What the scope is read for; `any`: by its BATCH_SIZE or TRANSPORT. Default `chat`. */
  readonly client?: ClientKind | "any";
  /** Win over the environment; the groups (`retry`, `global`, …) field by field, `sources` as a whole. */
  readonly overrides?: Overrides | EmbeddingOverrides | OcrOverrides;
}

export interface LoadedEnv<Options = GatewayOptions> {
  /** Ready for the constructor of a client: environment and overrides, only what was given. */
  readonly options: Options;
  readonly process: ProcessSettings;
  readonly notes: readonly ConfigNote[];
}

export interface EnvInspection extends LoadedEnv {
  /** Which client `options` are for; those of another client than chat have its fields too. */
  readonly client: ClientKind;
  /** Empty = `options` may be used. */
  readonly problems: readonly ConfigProblem[];
}

/** The environment of this process; everything else in the library is handed one. */
export function processEnv(): Env {
  return process.env;
}

/**
 * Reads one scope and the process-wide settings. Throws ConfigError with all problems at once, violated rules
 * included, each by its environment name with the masked value and what is accepted.
 */
export function loadEnv(scope: string, env: Env, settings: EnvSettings = {}): LoadedEnv {
  const { problems, ...loaded } = inspectEnv(scope, env, settings);
  if (problems.length > 0) throw new ConfigError(problems);
  return loaded;
}

/** The same for an embedding client. */
export function loadEmbeddingEnv(scope: string, env: Env, settings: EnvSettings = {}): LoadedEnv<EmbeddingOptions> {
  // Its fields were read and checked as those of an embedding client.
  return loadEnv(scope, env, { ...settings, client: "embedding" }) as LoadedEnv<GatewayOptions & EmbeddingOptions>;
}

/** The same for an OCR client. */
export function loadOcrEnv(scope: string, env: Env, settings: EnvSettings = {}): LoadedEnv<OcrOptions> {
  return loadEnv(scope, env, { ...settings, client: "ocr" }) as LoadedEnv<GatewayOptions & OcrOptions>;
}

/** The same without throwing, for those who show problems beside other things. */
export function inspectEnv(scope: string, env: Env, settings: EnvSettings = {}): EnvInspection {
  const reading = startReading(environment(env, settings), settings.readFile);
  if (settings.dotenvPath !== undefined) reportLines(reading, scope, env, settings);
  const process = readProcess(reading);
  const read = withProcess(readScope(reading, scope), process);
  const overrides = isPlainObject(settings.overrides) ? settings.overrides : {};
  const given = optionsOf(scope, read);
  const ownLabels = envLabels(scope, read);
  const client = forClient(
    { options: given, broken: read.broken, labels: ownLabels },
    settings.client ?? "chat",
    reading.notes,
  );
  const options = { proxyEnv: proxyEnvOf(reading.env), ...merged(given, overrides) };
  reportScope(reading, scope, read, overrides.sources !== undefined);
  const broken = notOverridden(read.broken, overrides);
  const labels = overriddenLabels(ownLabels, overrides);
  const hasPriceTable = process.given.has("pricingPath");
  const inspected = inspectScope(options, { ...settings, client, labels, broken, hasPriceTable });
  return {
    client,
    options,
    process: process.settings,
    notes: masked(reading.secrets, [...reading.notes, ...inspected.notes]),
    problems: masked(reading.secrets, [...reading.problems, ...inspected.problems]),
  };
}

/** The process-wide settings alone, for commands that need no source. Throws ConfigError. */
export function loadProcessSettings(env: Env, source: DotEnvSource = {}): ProcessSettings {
  const reading = startReading(environment(env, source), source.readFile);
  const { settings } = readProcess(reading);
  if (reading.problems.length > 0) throw new ConfigError(masked(reading.secrets, reading.problems));
  return settings;
}

/** The same without throwing, lines of the dotenv file included. Throws ConfigError when that can't be read. */
export function inspectProcess(env: Env, source: DotEnvSource = {}): ProcessInspection {
  const reading = startReading(environment(env, source), source.readFile);
  // Of no scope.
  if (source.dotenvPath !== undefined) reportLines(reading, "", env, source);
  const { settings, broken } = readProcess(reading);
  const named = reading.problems.flatMap(({ key }) => settingOf(key) ?? []);
  return { settings, problems: reading.problems, broken: new Set([...broken, ...named]) };
}

/** The given environment above a dotenv file, if one is named. Throws ConfigError when it can't be read. */
export function environment(env: Env, { dotenvPath, readFile = readText }: DotEnvSource): Env {
  return dotenvPath === undefined ? env : { ...parseDotEnv(readFile(dotenvPath)).values, ...env };
}

/** Lines of the dotenv file that would be skipped or overwritten without a word. */
function reportLines(reading: EnvReading, scope: string, env: Env, source: DotEnvSource): void {
  const { suspicious } = parseDotEnv((source.readFile ?? readText)(source.dotenvPath ?? ""));
  const concerns = (name: string): boolean => name.startsWith(`${scope}__`) || name.startsWith("PGW_");
  for (const { name, line, earlier } of suspicious) {
    if (!concerns(name) || env[name] !== undefined) continue;
    const where = `in ${printable(source.dotenvPath ?? "")}`;
    reading.problems.push({
      key: printable(name),
      problem:
        earlier === undefined
          ? `has no "=" in line ${line} ${where}`
          : `is set in lines ${earlier} and ${line} ${where}`,
      remedy: earlier === undefined ? `Write ${printable(name)}=value.` : "Keep one of the lines.",
    });
  }
}

/** Lease, telemetry and cache settings are process-wide names for options of the client. */
export const PROCESS_OPTIONS = [
  ["leaseTtlMs", "leaseTtlMs"],
  ["leaseRenewal", "leaseRenewal"],
  ["capture", "telemetryOptions.capture"],
  ["journal", "telemetryOptions.journal"],
  ["durability", "telemetryOptions.durability"],
  ["cacheBackend", "cache.backend"],
  ["limiterBackend", "limiterBackend"],
  ["redisUrl", "redis.url"],
  ["redisTimeoutMs", "redis.timeoutMs"],
  ["statusPath", "statusPath"],
] as const;

function withProcess(read: ScopeReading, { settings, given, broken }: ProcessReading): ScopeReading {
  const whole = { ...read, values: new Map(read.values), given: new Map(read.given), broken: new Set(read.broken) };
  for (const [setting, path] of PROCESS_OPTIONS) {
    const text = given.get(setting);
    // Only a cache has a name of its own in the scope, which wins.
    if (text === undefined || whole.given.has(path)) continue;
    whole.given.set(path, text);
    if (broken.has(setting)) whole.broken.add(path);
    else whole.values.set(path, settings[setting]);
  }
  return whole;
}

function reportScope(reading: EnvReading, scope: string, read: ScopeReading, hasOwnSources: boolean): void {
  if (!NAME_PATTERN.test(scope) || scope.includes("__")) {
    read.broken.add("scope");
    const remedy = "Use 1 to 64 of the characters A-Z a-z 0-9 _ . - without a double underscore.";
    reading.problems.push({ key: "scope", value: printable(scope), problem: "is not a valid scope name", remedy });
  }
  if (read.prefixes.length > 0 || hasOwnSources) return;
  read.broken.add("sources");
  const remedy = missingScopeRemedy(reading, scope);
  reading.problems.push({ key: printable(scope), problem: "no source is configured for this scope", remedy });
}

/** Paths and values as the object a constructor takes. */
function optionsOf(scope: string, read: ScopeReading): Record<string, unknown> {
  const sources: Record<string, unknown>[] = read.prefixes.map((prefix) => ({
    name: prefix.replace("__", "_").toLowerCase(),
    provider: prefix.split("__")[0]?.toLowerCase(),
  }));
  const options: Record<string, unknown> = { scope, sources };
  for (const [path, value] of read.values) {
    const [owner = "", option = ""] = path.split(".", 2);
    const index = /^sources\[(\d+)\]$/.exec(owner)?.[1];
    const source = index === undefined ? undefined : sources[Number(index)];
    if (source) source[option] = value;
    else if (option === "") options[path] = value;
    else options[owner] = { ...(options[owner] as object | undefined), [option]: value };
  }
  return options;
}

/** Keys by their environment names. */
function envLabels(scope: string, read: ScopeReading): Labels {
  const sourceName = (path: string): string | undefined => {
    const index = /^sources\[(\d+)\]\.name$/.exec(path)?.[1];
    return index === undefined ? undefined : read.prefixes[Number(index)]?.replace("__", "_").toLowerCase();
  };
  return {
    key: (path) => read.given.get(path)?.key ?? envNameOf(scope, path, read.prefixes),
    value(path, value) {
      return read.given.get(path)?.shown ?? sourceName(path) ?? `${written(fieldOf(path), value, "seconds")} (default)`;
    },
    given: (path) => read.given.get(path)?.shown ?? sourceName(path),
    accepted: (field) => accepted(field, "seconds"),
  };
}

/** `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` of an environment; the lower-case name wins, as in curl. */
export function proxyEnvOf(env: Env): ProxyEnv {
  const named = (name: string): string | undefined => env[name.toLowerCase()] ?? env[name];
  const proxies = { httpProxy: named("HTTP_PROXY"), httpsProxy: named("HTTPS_PROXY"), noProxy: named("NO_PROXY") };
  return Object.fromEntries(Object.entries(proxies).filter(([, value]) => value !== undefined && value !== ""));
}
