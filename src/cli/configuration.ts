import { existsSync } from "node:fs";
import type { ClientKind } from "../config/client-kind.js";
import {
  type Env,
  type EnvInspection,
  environment,
  inspectEnv,
  inspectProcess,
  type LoadedEnv,
  scopesIn,
} from "../config/env.js";
import type { ProcessInspection } from "../config/env-process.js";
import { type ConfigFile, inspectFile, inspectFileProcess, openConfigFile } from "../config/file.js";
import { ConfigError } from "../errors.js";
import { profileFor, profiles } from "../transports/openai/profiles.js";
import { CliError } from "./failure.js";

const DEFAULT_ENV_FILE = ".env";
/** Looked for in the current folder. */
export const DEFAULT_CONFIG_FILES = ["polygateway.yaml", "polygateway.yml", "polygateway.json"] as const;

/** Where a command is told to look. */
export interface ConfigFlags {
  /** Configuration file; default: one of DEFAULT_CONFIG_FILES, if there is one. */
  readonly config?: string;
  /** dotenv file; default: `.env`, if there is one. */
  readonly env?: string;
}

/** What a command is configured by: a file, whose `${…}` the environment fills, or else the environment alone. */
export interface Configuration {
  readonly file: ConfigFile | undefined;
  readonly dotenvPath: string | undefined;
  /** Names of the scopes that are configured. */
  readonly scopes: readonly string[];
  /** Everything about one scope, problems included. */
  inspect(scope: string, client: "chat" | "any"): EnvInspection;
  /** The settings of the process alone. */
  inspectProcess(): ProcessInspection;
}

/** A file wins over the environment as a whole; nothing is mixed. Throws CliError, and ConfigError for the dotenv file. */
export function openConfiguration(flags: ConfigFlags, env: Env): Configuration {
  const dotenvPath = flags.env ?? (existsSync(DEFAULT_ENV_FILE) ? DEFAULT_ENV_FILE : undefined);
  const source = dotenvPath === undefined ? {} : { dotenvPath };
  const settings = { ...source, profiles, profileFor };
  const path = flags.config ?? foundConfigFile();
  if (path === undefined) {
    const scopes = scopesIn(environment(env, source));
    return {
      file: undefined,
      dotenvPath,
      scopes,
      inspect: (scope, client) => inspectEnv(scope, env, { ...settings, client }),
      inspectProcess: () => inspectProcess(env, source),
    };
  }
  const file = openConfigFile(path);
  return {
    file,
    dotenvPath,
    scopes: file.scopes,
    inspect: (scope, client) => inspectFile(file, scope, env, { ...settings, client }),
    inspectProcess: () => inspectFileProcess(file, env, source),
  };
}

function foundConfigFile(): string | undefined {
  const found = DEFAULT_CONFIG_FILES.filter((name) => existsSync(name));
  if (found.length > 1) throw new CliError(`Here are ${found.join(" and ")}. Choose one with --config.`);
  return found[0];
}

/**
 * One scope that can be used, for a command that can use clients of these kinds. Throws ConfigError with every problem,
 * and CliError for a scope of another kind.
 */
export function loadScope(
  configuration: Configuration,
  scope: string,
  kinds: readonly ClientKind[] = ["chat"],
): LoadedEnv & Pick<EnvInspection, "client"> {
  const isForChat = kinds.length === 1 && kinds[0] === "chat";
  const { problems, ...loaded } = configuration.inspect(scope, isForChat ? "chat" : "any");
  if (!kinds.includes(loaded.client)) throw new CliError(wrongKind(scope, loaded.client, kinds[0] ?? "chat"));
  if (problems.length > 0) throw new ConfigError(problems);
  return loaded;
}

/** What makes a scope one of this kind. */
const MADE_BY: Readonly<Record<ClientKind, string>> = {
  chat: "a scope for chat has neither BATCH_SIZE nor a TRANSPORT of OCR",
  embedding: "a scope for embeddings has a BATCH_SIZE",
  ocr: "the sources of a scope for OCR name their TRANSPORT",
};

function wrongKind(scope: string, found: ClientKind, wanted: ClientKind): string {
  const isFor = { chat: "chat", embedding: "embeddings", ocr: "OCR" }[found];
  const remedy =
    wanted === "embedding"
      ? `Set ${scope}__BATCH_SIZE to the texts that its provider takes in one request, or name another with --scope.`
      : "Name another with --scope.";
  return `Scope ${scope} is for ${isFor}: ${MADE_BY[wanted]}. ${remedy}`;
}
