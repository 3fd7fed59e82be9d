import { ConfigError, type ConfigProblem } from "../errors.js";
import { forClient } from "./client-kind.js";
import { type Env, type EnvInspection, type EnvSettings, environment, type LoadedEnv, proxyEnvOf } from "./env.js";
import { scopesIn } from "./env-keys.js";
import { type ProcessInspection, processNames } from "./env-process.js";
import { type EnvReading, startReading } from "./env-reading.js";
import { type FileLayout, layoutOf, missingScope } from "./file-layout.js";
import { parseConfigText } from "./file-parse.js";
import { readFileProcess } from "./file-process.js";
import { readFileScope } from "./file-scope.js";
import { readConfigText } from "./file-text.js";
import type { Tree } from "./file-tree.js";
import { interpolate } from "./interpolate.js";
import { addSecret, masked } from "./known-secrets.js";
import { fieldOf } from "./labels.js";
import type { EmbeddingOptions, GatewayOptions, OcrOptions } from "./options.js";
import { merged, notOverridden, overriddenLabels } from "./overrides.js";
import { inspectScope } from "./resolve.js";
import { isPlainObject, printable, unknownField } from "./values.js";

/** A configuration file that was read; its values are judged scope by scope. */
export interface ConfigFile {
  readonly path: string;
  /** Names of its scopes, as they stand there. */
  readonly scopes: readonly string[];
  readonly layout: FileLayout;
  /** The file can't be read or parsed at all. */
  readonly problems: readonly ConfigProblem[];
}

/** Reads a YAML file, or JSON when its name ends in `.json` (docs/configuration.md). Never throws. */
export function openConfigFile(path: string): ConfigFile {
  if (typeof path !== "string" || path === "") {
    const remedy = "Give the path of a YAML or JSON file, as a text.";
    const layout = { scopes: new Map(), process: undefined, problems: [] };
    return { path: "", scopes: [], layout, problems: [{ key: "path", problem: "is not the path of a file", remedy }] };
  }
  const { tree, problems } = parse(path);
  const layout = tree === undefined ? { scopes: new Map(), process: undefined, problems: [] } : layoutOf(path, tree);
  return { path, scopes: [...layout.scopes.keys()], layout, problems };
}

function parse(path: string): { readonly tree: Tree | undefined; readonly problems: readonly ConfigProblem[] } {
  try {
    return parseConfigText(path, readConfigText(path));
  } catch (error) {
    if (error instanceof ConfigError) return { tree: undefined, problems: error.problems };
    throw error;
  }
}

/**
 * One scope of a file and its process-wide settings. The environment only fills `${…}`.
 * Throws ConfigError with all problems at once, each by file, line and option.
 */
export function loadFile(path: string, scope: string, env: Env, settings: EnvSettings = {}): LoadedEnv {
  const { problems, ...loaded } = inspectFile(openConfigFile(path), scope, env, settings);
  if (problems.length > 0) throw new ConfigError(problems);
  return loaded;
}

/** The same for an embedding client. */
export function loadEmbeddingFile(
  path: string,
  scope: string,
  env: Env,
  settings: EnvSettings = {},
): LoadedEnv<EmbeddingOptions> {
  // Its fields were read and checked as those of an embedding client.
  return loadFile(path, scope, env, { ...settings, client: "embedding" }) as LoadedEnv<
    GatewayOptions & EmbeddingOptions
  >;
}

/** The same for an OCR client. */
export function loadOcrFile(path: string, scope: string, env: Env, settings: EnvSettings = {}): LoadedEnv<OcrOptions> {
  return loadFile(path, scope, env, { ...settings, client: "ocr" }) as LoadedEnv<GatewayOptions & OcrOptions>;
}

/** The same without throwing, for those who show problems beside other things. */
export function inspectFile(file: ConfigFile, scope: string, env: Env, settings: EnvSettings = {}): EnvInspection {
  const reading = startReading(environment(env, settings), settings.readFile);
  const { path, layout } = file;
  rememberSecrets(reading, layout);
  const used = new Set<string>();
  const process = readFileProcess(path, layout.process, reading, used);
  const overrides = isPlainObject(settings.overrides) ? settings.overrides : {};
  const found = [...file.problems, ...layout.problems];
  const place = layout.scopes.get(scope);
  if (place === undefined) {
    const missing = found.length > 0 ? [] : [missingScope(path, scope, layout)];
    const options = { scope, sources: [] };
    const { settings: all } = process;
    return {
      client: "chat",
      options,
      process: all,
      notes: masked(reading.secrets, reading.notes),
      problems: masked(reading.secrets, [...found, ...missing, ...reading.problems]),
    };
  }
  const read = readFileScope(path, scope, place, reading, used, process);
  const client = forClient(read, settings.client ?? "chat", reading.notes);
  const options = merged({ proxyEnv: proxyEnvOf(reading.env), ...read.options }, overrides);
  const labels = overriddenLabels(read.labels, overrides);
  const broken = notOverridden(read.broken, overrides);
  const hasPriceTable = process.given.has("pricingPath");
  const inspected = inspectScope(options, { ...settings, client, labels, broken, hasPriceTable });
  noteUnread(reading, path, scope, used);
  return {
    client,
    options,
    process: process.settings,
    notes: masked(reading.secrets, [...reading.notes, ...inspected.notes]),
    problems: masked(reading.secrets, [...found, ...reading.problems, ...inspected.problems]),
  };
}

/** Its process-wide settings alone, whatever is wrong with its scopes. Throws ConfigError when a dotenv file can't be read. */
export function inspectFileProcess(file: ConfigFile, env: Env, settings: EnvSettings = {}): ProcessInspection {
  const reading = startReading(environment(env, settings), settings.readFile);
  rememberSecrets(reading, file.layout);
  const process = readFileProcess(file.path, file.layout.process, reading, new Set());
  const unread = [...file.problems, ...(file.layout.processProblems ?? [])];
  const broken = unread.length > 0 ? Object.keys(process.settings) : process.broken;
  return { settings: process.settings, problems: [...unread, ...reading.problems], broken: new Set(broken) };
}

/** Secrets that stand in the file, or come from a variable, are masked wherever else they turn up in it. */
function rememberSecrets(reading: EnvReading, { scopes, process }: FileLayout): void {
  const visit = (tree: Tree, name: string): void => {
    if (tree.kind === "map") for (const [key, value] of tree.entries) visit(value, key);
    else if (tree.kind === "list") for (const item of tree.items) visit(item, name);
    else rememberSecret(reading, String(tree.value), mayBeSecret(name));
  };
  for (const { tree } of scopes.values()) visit(tree, "");
  if (process !== undefined) visit(process, "");
}

const NUMBER = /^[\d.]*$/;

function rememberSecret({ env, secrets }: EnvReading, written: string, isSecret: boolean): void {
  const { text, names, problems } = interpolate(written, env);
  if (isSecret && problems.length === 0) addSecret(secrets, text);
  for (const name of names) {
    const value = (Object.hasOwn(env, name) ? env[name] : undefined) ?? "";
    // ${MAX_TOKENS} is called like a secret and is none.
    if (isSecret || (unknownField(name).secret && !NUMBER.test(value))) addSecret(secrets, value);
  }
}

/** `interTokenTimeoutMs` is called like a secret and is none. */
function mayBeSecret(name: string): boolean {
  const known = fieldOf(`sources[0].${name}`);
  return known === undefined ? unknownField(name).secret === true : known.secret === true;
}

const MOST_NAMED = 3;

/** The file is the whole configuration: settings in the environment beside it would be lost without a word. */
function noteUnread(reading: EnvReading, file: string, scope: string, used: ReadonlySet<string>): void {
  const isScope = scopesIn(reading.env).includes(scope);
  const process = new Set(processNames());
  // A name of other programs too; where it is needed and missing, that is a problem of its own.
  process.delete("REDIS_URL");
  const unread = Object.keys(reading.env).filter((name) => {
    if (reading.env[name] === undefined || used.has(name)) return false;
    return process.has(name) || (isScope && name.startsWith(`${scope}__`));
  });
  if (unread.length === 0) return;
  const more = unread.length > MOST_NAMED ? ` and ${unread.length - MOST_NAMED} more` : "";
  const text = `not read from the environment: ${printable(file)} is the whole configuration; say it there, if need be by \${…}`;
  reading.notes.push({
    key: `${unread.sort().slice(0, MOST_NAMED).map(printable).join(", ")}${more}`,
    level: "warning",
    text,
  });
}
