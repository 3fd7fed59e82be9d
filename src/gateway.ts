import { MemoryGovernor } from "./backends/memory/governor.js";
import { createSystemRuntime } from "./backends/system.js";
import { type ChatClient, createChatClient } from "./clients/chat.js";
import { type ChatCache, createChatCache } from "./clients/chat-cache.js";
import type { ChatStream } from "./clients/chat-stream.js";
import { type DotEnvSource, type Env, loadEnv, type Overrides, processEnv, proxyEnvOf } from "./config/env.js";
import { limitConflicts } from "./config/invariants.js";
import type { GatewayOptions } from "./config/options.js";
import { type ResolvedScope, resolveScope } from "./config/resolve.js";
import type { ProcessSettings } from "./config/schema-process.js";
import type { ChatRequest, ChatResponse } from "./domain/chat.js";
import type { ScopeConfig } from "./domain/scope.js";
import { ConfigError } from "./errors.js";
import type { GovernEnvironment } from "./governance/call.js";
import { Dispatcher } from "./governance/dispatcher.js";
import { createWarn } from "./governance/warn.js";
import type { Governor, ScopeSnapshot } from "./ports/governor.js";
import type { Recorder } from "./ports/recorder.js";
import type { Runtime } from "./ports/runtime.js";
import type { ChatTransport } from "./ports/transport.js";
import { createTelemetry, type TelemetryEmitter } from "./telemetry/emitter.js";
import { JsonlRecorder } from "./telemetry/jsonl.js";
import { PricingTable } from "./telemetry/pricing.js";
import { SqliteRecorder } from "./telemetry/sqlite.js";
import { createWorkerId } from "./telemetry/worker-id.js";
import { createOpenAiChatTransport } from "./transports/openai/chat.js";
import { profileFor, profiles } from "./transports/openai/profiles.js";
import { proxySecrets } from "./transports/pool.js";
import { createRedactor } from "./transports/redact.js";

function cacheFor(options: GatewayOptions, environment: GovernEnvironment): ChatCache | null {
  const { cache, cacheNamespace: namespace = "", cacheSalt: salt = "" } = options;
  return cache === undefined ? null : createChatCache(environment, cache, { namespace, salt });
}

export interface FromEnvOptions extends DotEnvSource {
  /** Default: the environment of this process. */
  readonly env?: Env;
  /** Win over the environment; groups field by field, `sources` as a whole. */
  readonly overrides?: Overrides;
}

/** The scope's state plus what waits in this process (spec 11). */
export interface GatewaySnapshot extends ScopeSnapshot {
  readonly waiting: { readonly count: number; readonly oldestMs: number };
  /** Permits this process holds, and those it lost while still working on them. */
  readonly leases: { readonly live: number; readonly lost: number };
}

/**
 * A governed client of one scope. Composition root: here, and only here, adapters are made and put together.
 *
 * Constructing connects to nothing and throws ConfigError with every problem at once.
 */
export class GatewayClient {
  readonly scope: string;
  /** Give it to another client of this scope to share limits, breakers and queue. */
  readonly governor: Governor;
  readonly #config: ScopeConfig;
  readonly #chat: ChatClient;
  readonly #dispatcher: SharedDispatcher;
  readonly #telemetry: TelemetryEmitter | null;
  readonly #transport: ChatTransport;
  readonly #runtime: Runtime;
  #open = 0;
  #closing: Promise<void> | null = null;
  #whenIdle: (() => void) | null = null;

  constructor(options: GatewayOptions) {
    const resolved = resolveScope(options, { profiles, profileFor });
    const { config } = resolved;
    this.scope = config.scope;
    this.#config = config;
    this.#runtime = options.runtime ?? createSystemRuntime();
    const worker = createWorkerId(this.#runtime);
    this.governor = governorFor(options.governor, config, this.#runtime);
    this.#dispatcher = shareDispatcher(this.governor, config, this.#runtime, worker);
    const proxyEnv = options.proxyEnv ?? proxyEnvOf(processEnv());
    this.#telemetry = telemetryFor(options, resolved, this.#runtime, worker, proxySecrets(proxyEnv));
    this.#transport = options.transport ?? createOpenAiChatTransport({ runtime: this.#runtime, proxyEnv });
    const environment = {
      config,
      runtime: this.#runtime,
      dispatcher: this.#dispatcher.dispatcher,
      telemetry: this.#telemetry,
      pricing: options.pricing ?? null,
      selector: typeof options.selector === "object" ? options.selector : null,
      warn: createWarn(this.#runtime),
    };
    this.#chat = createChatClient(
      environment,
      this.#transport,
      {
        enter: () => this.#enter(),
        leave: () => this.#leave(),
      },
      cacheFor(options, environment),
    );
  }

  /**
   * Reads `{SCOPE}__…` and the process-wide `PGW_…` keys (docs/configuration.md). Telemetry and prices named there are
   * opened too. Throws ConfigError with every problem by its key.
   */
  static fromEnv(scope: string, { env = processEnv(), overrides, ...source }: FromEnvOptions = {}): GatewayClient {
    const loaded = loadEnv(scope, env, {
      ...source,
      ...(overrides === undefined ? {} : { overrides }),
      profiles,
      profileFor,
    });
    return new GatewayClient({ ...processOptions(loaded.process), ...loaded.options });
  }

  /** Models of the enabled sources. */
  get models(): readonly string[] {
    return [...new Set(this.#config.sources.map((source) => source.model))];
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
    const { dispatcher } = this.#dispatcher;
    const complete = (scope: ScopeSnapshot): GatewaySnapshot => ({
      ...scope,
      waiting: dispatcher.waiting(),
      leases: dispatcher.leases(),
    });
    const scope = dispatcher.snapshot();
    return scope instanceof Promise ? scope.then(complete) : complete(scope);
  }

  /** Waits for the calls in flight, writes the telemetry and closes the sockets. New calls are refused. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    if (this.#open > 0) await new Promise<void>((resolve) => (this.#whenIdle = resolve));
    await this.#telemetry?.close();
    await this.#transport.close();
    // The last permits are still on their way back.
    await this.#dispatcher.dispatcher.told();
    this.#dispatcher.release();
  }

  #enter(): void {
    if (this.#closing !== null) {
      throw new ConfigError([
        { key: `client of scope ${this.scope}`, problem: "is closed", remedy: "Make the call before close()." },
      ]);
    }
    this.#open += 1;
  }

  #leave(): void {
    this.#open -= 1;
    if (this.#open === 0) this.#whenIdle?.();
  }
}

function governorFor(given: Governor | undefined, config: ScopeConfig, runtime: Runtime): Governor {
  if (given === undefined) return new MemoryGovernor({ ...config, runtime });
  if (given.scope !== config.scope) {
    throw new ConfigError([
      {
        key: "governor",
        value: given.scope,
        problem: `governs scope ${given.scope}, the client is of scope ${config.scope}`,
        remedy: "Give the client a governor of its own scope.",
      },
    ]);
  }
  if (given instanceof MemoryGovernor) {
    const problems = limitConflicts(config, { ...config, sources: given.sources, global: given.global });
    if (problems.length > 0) throw new ConfigError(problems);
  }
  return given;
}

interface SharedDispatcher {
  readonly dispatcher: Dispatcher;
  release(): void;
}

/** Clients that share a governor share its queue, so that order and limits hold over all of them. */
const dispatchers = new WeakMap<Governor, { dispatcher: Dispatcher; users: number }>();

function shareDispatcher(governor: Governor, config: ScopeConfig, runtime: Runtime, worker: string): SharedDispatcher {
  let shared = dispatchers.get(governor);
  if (shared === undefined) {
    const { leaseTtlMs, leaseRenewal } = config;
    const warn = createWarn(runtime);
    shared = { dispatcher: new Dispatcher({ governor, runtime, worker, leaseTtlMs, leaseRenewal, warn }), users: 0 };
    dispatchers.set(governor, shared);
  }
  const { dispatcher } = shared;
  shared.users += 1;
  return {
    dispatcher,
    release() {
      shared.users -= 1;
      if (shared.users > 0) return;
      dispatchers.delete(governor);
      dispatcher.close();
    },
  };
}

function telemetryFor(
  options: GatewayOptions,
  { config, telemetry }: ResolvedScope,
  runtime: Runtime,
  worker: string,
  secrets: readonly string[],
): TelemetryEmitter | null {
  const given = options.telemetry ?? "none";
  if (given === "none") return null;
  const recorders = Array.isArray(given) ? (given as readonly Recorder[]) : [given as Recorder];
  if (recorders.length === 0) return null;
  const redact = createRedactor(config.sources, secrets);
  return createTelemetry({ recorders, runtime, worker, redact, ...telemetry });
}

/** What the process-wide settings add to a client made from the environment. */
function processOptions(settings: ProcessSettings): Partial<GatewayOptions> {
  const runtime = createSystemRuntime({ level: settings.logLevel });
  const recorders = (settings.telemetryBackends ?? []).map((backend) =>
    backend === "jsonl" ? new JsonlRecorder(settings.jsonlPath) : new SqliteRecorder(settings.sqlitePath),
  );
  return {
    runtime,
    ...(recorders.length === 0 ? {} : { telemetry: recorders }),
    ...(settings.pricingPath === undefined ? {} : { pricing: pricingFrom(settings.pricingPath, runtime) }),
  };
}

function pricingFrom(path: string, runtime: Runtime): PricingTable {
  const pricing = PricingTable.fromFile(path);
  pricing.onUnknownModel((model) => runtime.log("warn", `${path} has no price for ${model}: its cost stays unknown`));
  return pricing;
}
