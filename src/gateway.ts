import { Assembly, type GatewaySnapshot, processOptions } from "./assembly.js";
import { MemoryCache } from "./backends/memory/cache.js";
import { RedisCache } from "./backends/redis/cache.js";
import { type ChatClient, createChatClient } from "./clients/chat.js";
import { type ChatCache, createChatCache } from "./clients/chat-cache.js";
import { createChatSharing } from "./clients/chat-sharing.js";
import type { ChatStream } from "./clients/chat-stream.js";
import { createEmbedder, type Embedder } from "./clients/embedding.js";
import {
  type DotEnvSource,
  type EmbeddingOverrides,
  type Env,
  type EnvSettings,
  loadEmbeddingEnv,
  loadEnv,
  type OcrOverrides,
  type Overrides,
  processEnv,
} from "./config/env.js";
import { loadEmbeddingFile, loadFile } from "./config/file.js";
import type { EmbeddingOptions, GatewayOptions } from "./config/options.js";
import { type ResolvedScope, resolveScope } from "./config/resolve.js";
import { zodToJsonSchema } from "./config/zod-json-schema.js";
import type { ChatRequest, ChatResponse } from "./domain/chat.js";
import type { EmbedOptions, EmbedResult } from "./domain/embedding.js";
import type { StructuredCall } from "./domain/structured.js";
import type { GovernEnvironment } from "./governance/call.js";
import type { AnswerCache } from "./ports/cache.js";
import type { Governor } from "./ports/governor.js";
import type { Runtime } from "./ports/runtime.js";
import type { ChatTransport, EmbeddingTransport } from "./ports/transport.js";
import { createOpenAiChatTransport } from "./transports/openai/chat.js";
import { createOpenAiEmbeddingTransport } from "./transports/openai/embedding.js";
import { profileFor, profiles } from "./transports/openai/profiles.js";

export type { GatewaySnapshot } from "./assembly.js";

/** The place that the configuration names; null = none, or one that was given. */
function ownStore({ cache, redis }: ResolvedScope, runtime: Runtime): AnswerCache | null {
  const { backend, maxBytes, ttlMs, namespace, salt, store } = cache;
  if (store !== null || backend === "none") return null;
  if (backend === "memory") return new MemoryCache({ maxBytes, ttlMs, runtime });
  const { url, timeoutMs } = redis;
  return new RedisCache({ ...(url && { url: url.reveal() }), timeoutMs, ttlMs, namespace, salt, runtime });
}

function cacheFor(
  { cache }: ResolvedScope,
  store: AnswerCache | null,
  environment: GovernEnvironment,
): ChatCache | null {
  const { namespace, salt } = cache;
  return store === null ? null : createChatCache(environment, store, { namespace, salt });
}

export interface FromEnvOptions<ClientOverrides = Overrides> extends DotEnvSource {
  /** Default: the environment of this process. */
  readonly env?: Env;
  /** Win over the environment; groups field by field, `sources` as a whole. */
  readonly overrides?: ClientOverrides;
}

export interface FromConfigOptions<ClientOverrides = Overrides> extends DotEnvSource {
  /** What `${NAME}` in the file is filled from. Default: the environment of this process. */
  readonly env?: Env;
  /** Win over the file; groups field by field, `sources` as a whole. */
  readonly overrides?: ClientOverrides;
}

/** What the makers of all clients from the environment and from a file add to what they read. */
export function settingsOf(
  overrides: Overrides | EmbeddingOverrides | OcrOverrides | undefined,
  source: DotEnvSource,
): EnvSettings {
  return { ...source, ...(overrides === undefined ? {} : { overrides }), profiles, profileFor };
}

/**
 * A governed client of one scope. Composition root: here and in assembly.ts, and only there, adapters are made and put
 * together.
 *
 * Constructing connects to nothing and throws ConfigError with every problem at once.
 */
export class GatewayClient {
  readonly scope: string;
  /** Give it to another client of this scope to share limits, breakers and queue. */
  readonly governor: Governor;
  /**
   * Asks for a value that fits a schema: any Standard Schema (zod, valibot, arktype, …) or a JSON Schema. An answer that
   * doesn't fit is asked for again, with what is wrong, at most `maxReasks` times. Each ask is a governed call with rows of
   * its own; `deadlineMs` and the signal span them all.
   *
   * Rejects like `chat()`; with ResultInvalidError (`rawText`, `issues`, `details.asks`) when no answer fits, and with
   * RequestRejectedError `refused` when the model refuses.
   *
   * @example const { value } = await client.structured({ messages }, schema, { maxReasks: 2 });
   */
  readonly structured: StructuredCall;
  readonly #assembly: Assembly<ChatTransport>;
  readonly #chat: ChatClient;
  /** A cache that was made here, so it is closed here. */
  readonly #ownStore: AnswerCache | null;

  constructor(options: GatewayOptions) {
    const resolved = resolveScope(options, { profiles, profileFor });
    const assembly = new Assembly<ChatTransport>(options, resolved, createOpenAiChatTransport);
    const { environment, transport } = assembly;
    this.scope = resolved.config.scope;
    this.governor = assembly.governor;
    this.#assembly = assembly;
    this.#ownStore = ownStore(resolved, environment.runtime);
    const store = resolved.cache.store ?? this.#ownStore;
    this.#chat = createChatClient(environment, transport, assembly, {
      cache: cacheFor(resolved, store, environment),
      sharing: resolved.cache.coalesce ? createChatSharing(environment, resolved.cache) : null,
      zodToJsonSchema,
    });
    this.structured = this.#chat.structured;
  }

  /**
   * Reads `{SCOPE}__…` and the process-wide `PGW_…` keys (docs/configuration.md). Telemetry and prices named there are
   * opened too. Throws ConfigError with every problem by its key.
   */
  static fromEnv(scope: string, { env = processEnv(), overrides, ...source }: FromEnvOptions = {}): GatewayClient {
    const loaded = loadEnv(scope, env, settingsOf(overrides, source));
    return new GatewayClient({ ...processOptions(loaded.process), ...loaded.options });
  }

  /**
   * Reads one scope of a YAML or JSON file (docs/configuration.md), and its process-wide settings; the environment only
   * fills `${NAME}`. Telemetry and prices named there are opened too; relative paths start at the file's folder.
   * Throws ConfigError with every problem by file, line and option.
   */
  static fromConfig(path: string, scope: string, options: FromConfigOptions = {}): GatewayClient {
    const { env = processEnv(), overrides, ...source } = options;
    const loaded = loadFile(path, scope, env, settingsOf(overrides, source));
    return new GatewayClient({ ...processOptions(loaded.process), ...loaded.options });
  }

  /** Models of the enabled sources. */
  get models(): readonly string[] {
    return this.#assembly.models;
  }

  /**
   * Sends one chat request through the loop and resolves with the complete answer.
   * Rejects with RequestRejectedError, ResultInvalidError, a GatewayUnavailableError ("try later"),
   * SourceNotConfiguredError, or exactly the reason of the caller's signal.
   */
  chat(request: ChatRequest): Promise<ChatResponse> {
    return this.#chat.chat(request);
  }

  /** A stream of typed events; see ChatStream. Lazy: nothing happens before the first `next()` or `.final`. */
  stream(request: ChatRequest): ChatStream {
    return this.#chat.stream(request);
  }

  /**
   * What is used, what is broken and who waits, right now. At once with the memory governor, a promise where the state
   * is kept elsewhere: `await` fits both. Throws or rejects with GovernanceBackendError.
   */
  snapshot(): GatewaySnapshot | Promise<GatewaySnapshot> {
    return this.#assembly.snapshot();
  }

  /** Permits that this process holds: `leases` of the snapshot, which is known while the governor does not answer, too. */
  leases(): GatewaySnapshot["leases"] {
    return this.#assembly.leases();
  }

  /** Waits for the calls in flight, writes the telemetry and closes the sockets. New calls are refused. */
  async close(): Promise<void> {
    await this.#assembly.close();
    await this.#ownStore?.close?.();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/**
 * A governed client that turns texts into vectors: limits, retries, failover and telemetry as for chat, a call of its
 * own for every batch of texts (spec 06).
 *
 * Constructing connects to nothing and throws ConfigError with every problem at once.
 */
export class EmbeddingClient {
  readonly scope: string;
  /** Give it to another client of this scope to share limits, breakers and queue. */
  readonly governor: Governor;
  readonly #assembly: Assembly<EmbeddingTransport>;
  readonly #embedder: Embedder;

  constructor(options: EmbeddingOptions) {
    const resolved = resolveScope(options, { profiles, profileFor, client: "embedding" });
    const assembly = new Assembly<EmbeddingTransport>(options, resolved, createOpenAiEmbeddingTransport);
    this.scope = resolved.config.scope;
    this.governor = assembly.governor;
    this.#assembly = assembly;
    this.#embedder = createEmbedder(assembly.environment, assembly.transport, assembly, resolved.embedding!);
  }

  /**
   * Reads `{SCOPE}__…`, `BATCH_SIZE` among them, and the process-wide `PGW_…` keys (docs/configuration.md), like
   * `GatewayClient.fromEnv`. Throws ConfigError with every problem by its key.
   */
  static fromEnv(
    scope: string,
    { env = processEnv(), overrides, ...source }: FromEnvOptions<EmbeddingOverrides> = {},
  ): EmbeddingClient {
    const loaded = loadEmbeddingEnv(scope, env, settingsOf(overrides, source));
    return new EmbeddingClient({ ...processOptions(loaded.process), ...loaded.options });
  }

  /** Reads one scope of a YAML or JSON file, like `GatewayClient.fromConfig`. Throws ConfigError. */
  static fromConfig(
    path: string,
    scope: string,
    { env = processEnv(), overrides, ...source }: FromConfigOptions<EmbeddingOverrides> = {},
  ): EmbeddingClient {
    const loaded = loadEmbeddingFile(path, scope, env, settingsOf(overrides, source));
    return new EmbeddingClient({ ...processOptions(loaded.process), ...loaded.options });
  }

  /** Models of the enabled sources. */
  get models(): readonly string[] {
    return this.#assembly.models;
  }

  /**
   * Embeds texts in batches of `batchSize` and resolves with one vector per text, in their order. The first batch that
   * fails fails the call and cancels the others. The list is copied; an empty one resolves at once with no vectors.
   *
   * A batch that a source refuses for its size, or for one of its texts, is cut and sent again in parts. With
   * `onBadItem: "skip"` a text that is refused alone has no vector (null, and its error in `failed`); else it fails the call.
   *
   * Rejects with RequestRejectedError (also for a text that is no string, empty, or not well-formed; `details.index` names
   * the text), ResultInvalidError when an answer isn't exactly one good vector per text, a
   * GatewayUnavailableError ("try later"), SourceNotConfiguredError, or exactly the reason of the caller's signal.
   */
  embed(
    texts: readonly string[],
    options: EmbedOptions & { readonly vectors: "float32"; readonly onBadItem?: "fail" },
  ): Promise<EmbedResult<Float32Array>>;
  embed(
    texts: readonly string[],
    options?: EmbedOptions & { readonly vectors?: "number"; readonly onBadItem?: "fail" },
  ): Promise<EmbedResult>;
  embed(
    texts: readonly string[],
    options: EmbedOptions & { readonly vectors: "float32" },
  ): Promise<EmbedResult<Float32Array | null>>;
  embed(
    texts: readonly string[],
    options: EmbedOptions & { readonly vectors?: "number" },
  ): Promise<EmbedResult<number[] | null>>;
  embed(texts: readonly string[], options?: EmbedOptions): Promise<EmbedResult<number[] | Float32Array | null>>;
  embed(texts: readonly string[], options?: EmbedOptions): Promise<EmbedResult<number[] | Float32Array | null>> {
    return this.#embedder.embed(texts, options);
  }

  /**
   * Most texts a request, by source name, as learned from sources that refused a batch as too large. Batches are cut to
   * the smallest of them; `batchSize` of that size saves the refused requests.
   */
  batchLimits(): Readonly<Record<string, number>> {
    return this.#embedder.batchLimits();
  }

  /** What is used, what is broken and who waits, right now; see `GatewayClient.snapshot`. */
  snapshot(): GatewaySnapshot | Promise<GatewaySnapshot> {
    return this.#assembly.snapshot();
  }

  /** Permits that this process holds; see `GatewayClient.leases`. */
  leases(): GatewaySnapshot["leases"] {
    return this.#assembly.leases();
  }

  /** Waits for the calls in flight, writes the telemetry and closes the sockets. New calls are refused. */
  close(): Promise<void> {
    return this.#assembly.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
