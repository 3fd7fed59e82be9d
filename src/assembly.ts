import { MemoryGovernor } from "./backends/memory/governor.js";
import { closedError } from "./backends/redis/failure.js";
import { RedisGovernor } from "./backends/redis/governor.js";
import { createSystemRuntime } from "./backends/system.js";
import type { CallLifetime } from "./clients/call-lifetime.js";
import { processEnv, proxyEnvOf } from "./config/env.js";
import { limitConflicts } from "./config/invariants.js";
import type { ProxyEnv, ScopeOptions } from "./config/options.js";
import type { ResolvedScope } from "./config/resolve.js";
import type { ProcessSettings, TelemetryBackend } from "./config/schema-process.js";
import { pricesOf } from "./config/source-prices.js";
import type { ScopeConfig } from "./domain/scope.js";
import { ConfigError } from "./errors.js";
import { Affinity } from "./governance/affinity.js";
import type { GovernEnvironment } from "./governance/call.js";
import { Dispatcher } from "./governance/dispatcher.js";
import { createWarn } from "./governance/warn.js";
import type { Governor, ScopeSnapshot } from "./ports/governor.js";
import type { Recorder } from "./ports/recorder.js";
import type { Runtime } from "./ports/runtime.js";
import type { StatusLimits, StatusSnapshot } from "./status/status-file.js";
import { createStatusWriter, type StatusWriter } from "./status/status-writer.js";
import { createTelemetry, type TelemetryEmitter } from "./telemetry/emitter.js";
import { JsonlRecorder } from "./telemetry/jsonl.js";
import { PostgresRecorder } from "./telemetry/postgres.js";
import { PricingTable } from "./telemetry/pricing.js";
import { SqliteRecorder } from "./telemetry/sqlite.js";
import { createWorkerId } from "./telemetry/worker-id.js";
import { proxySecrets } from "./transports/pool.js";
import { createRedactor, type Redact } from "./transports/redact.js";

/** The scope's state plus what waits in this process (spec 11). */
export interface GatewaySnapshot extends StatusSnapshot {
  /** Permits this process holds, and those it lost while still working on them. */
  readonly leases: { readonly live: number; readonly lost: number };
}

/** What a transport needs that is made here. */
export interface TransportSetup {
  readonly runtime: Runtime;
  readonly proxyEnv: ProxyEnv;
}

/**
 * Second half of the composition root (gateway.ts is the first): what every client of a scope is made of, whatever its
 * kind of call, and how it ends.
 */
export class Assembly<Transport extends { close(): Promise<void> }> implements CallLifetime {
  readonly config: ScopeConfig;
  readonly governor: Governor;
  readonly environment: GovernEnvironment;
  readonly transport: Transport;
  readonly #dispatcher: SharedDispatcher;
  readonly #telemetry: TelemetryEmitter | null;
  #open = 0;
  #closing: Promise<void> | null = null;
  #whenIdle: (() => void) | null = null;

  constructor(
    options: ScopeOptions & { readonly transport?: Transport },
    resolved: ResolvedScope,
    createTransport: (setup: TransportSetup) => Transport,
  ) {
    const { config } = resolved;
    const runtime = options.runtime ?? createSystemRuntime();
    const worker = createWorkerId(runtime);
    this.config = config;
    const { governor, isOwn } = governorFor(options, resolved, runtime);
    this.governor = governor;
    const proxyEnv = options.proxyEnv ?? proxyEnvOf(processEnv());
    const redact = createRedactor(config.sources, proxySecrets(proxyEnv));
    this.#dispatcher = shareDispatcher(governor, isOwn, resolved, runtime, worker, redact);
    this.#telemetry = telemetryFor(options, resolved, runtime, worker, redact);
    this.transport = options.transport ?? createTransport({ runtime, proxyEnv });
    this.environment = {
      config,
      runtime,
      dispatcher: this.#dispatcher.dispatcher,
      telemetry: this.#telemetry,
      pricing: options.pricing ?? null,
      selector: typeof options.selector === "object" ? options.selector : null,
      affinity: config.scheduling.affinity ? new Affinity() : null,
      warn: createWarn(runtime),
    };
  }

  /** Models of the enabled sources. */
  get models(): readonly string[] {
    return [...new Set(this.config.sources.map((source) => source.model))];
  }

  snapshot(): GatewaySnapshot | Promise<GatewaySnapshot> {
    return snapshotOf(this.#dispatcher.dispatcher);
  }

  leases(): GatewaySnapshot["leases"] {
    return this.#dispatcher.dispatcher.leases();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  enter(): void {
    if (this.#closing !== null) {
      throw new ConfigError([
        { key: `client of scope ${this.config.scope}`, problem: "is closed", remedy: "Make the call before close()." },
      ]);
    }
    this.#open += 1;
    if (this.#open === 1) this.#dispatcher.status?.enter();
  }

  leave(): void {
    this.#open -= 1;
    if (this.#open > 0) return;
    this.#dispatcher.status?.leave();
    this.#whenIdle?.();
  }

  async #close(): Promise<void> {
    if (this.#open > 0) await new Promise<void>((resolve) => (this.#whenIdle = resolve));
    await this.#telemetry?.close();
    await this.transport.close();
    // The last permits are still on their way back.
    await this.#dispatcher.dispatcher.told();
    await this.#dispatcher.release();
  }
}

function snapshotOf(dispatcher: Dispatcher): GatewaySnapshot | Promise<GatewaySnapshot> {
  const complete = (scope: ScopeSnapshot): GatewaySnapshot => ({
    ...scope,
    waiting: dispatcher.waiting(),
    leases: dispatcher.leases(),
  });
  const scope = dispatcher.snapshot();
  return scope instanceof Promise ? scope.then(complete) : complete(scope);
}

/** One that is made here is closed with its last client. */
function governorFor(
  { governor: given, pricing }: ScopeOptions,
  { config, limiterBackend, redis }: ResolvedScope,
  runtime: Runtime,
): { governor: Governor; isOwn: boolean } {
  if (given === undefined) {
    const prices = pricesOf(config, pricing);
    const settings = { ...config, ...(prices === undefined ? {} : { prices }), runtime };
    if (limiterBackend === "memory") return { governor: new MemoryGovernor(settings), isOwn: true };
    const { url, timeoutMs } = redis;
    return { governor: new RedisGovernor({ ...settings, url: url!.reveal(), timeoutMs }), isOwn: true };
  }
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
  if (given instanceof RedisGovernor) given.adopt({ ...config, prices: pricesOf(config, pricing) });
  if (given instanceof MemoryGovernor || given instanceof RedisGovernor) {
    const problems = limitConflicts(config, { ...config, sources: given.sources, global: given.global });
    if (problems.length > 0) throw new ConfigError(problems);
  }
  return { governor: given, isOwn: false };
}

interface SharedDispatcher {
  readonly dispatcher: Dispatcher;
  /** null = nobody asked for it. */
  readonly status: StatusWriter | null;
  release(): Promise<void>;
}

interface DispatcherOfGovernor {
  readonly dispatcher: Dispatcher;
  status: StatusWriter | null;
  users: number;
  /** Its closing concerns nobody any more. */
  readonly leave: () => void;
  /** Made by one of the clients: closed with the last of them. */
  closesGovernor: boolean;
}

/** Clients that share a governor share its queue, so that order and limits hold over all of them. */
const dispatchers = new WeakMap<Governor, DispatcherOfGovernor>();

function shareDispatcher(
  governor: Governor,
  isOwn: boolean,
  resolved: ResolvedScope,
  runtime: Runtime,
  worker: string,
  redact: Redact,
): SharedDispatcher {
  let shared = dispatchers.get(governor);
  if (shared === undefined) {
    const { leaseTtlMs, leaseRenewal } = resolved.config;
    const warn = createWarn(runtime);
    const dispatcher = new Dispatcher({ governor, runtime, worker, leaseTtlMs, leaseRenewal, warn });
    const leave = governor.onClose?.(() => dispatcher.finish(closedError(governor.scope))) ?? (() => {});
    shared = { dispatcher, status: null, users: 0, closesGovernor: isOwn, leave };
    dispatchers.set(governor, shared);
  }
  const { dispatcher } = shared;
  shared.status ??= statusFor(dispatcher, resolved, runtime, worker, redact);
  shared.users += 1;
  return {
    dispatcher,
    status: shared.status,
    async release() {
      shared.users -= 1;
      if (shared.users > 0) return;
      dispatchers.delete(governor);
      // What the last calls used is on its way.
      await dispatcher.told();
      dispatcher.close();
      shared.leave();
      await shared.status?.close();
      if (shared.closesGovernor) await governor.close();
    },
  };
}

function statusFor(
  dispatcher: Dispatcher,
  { config, telemetry, statusPath }: ResolvedScope,
  runtime: Runtime,
  worker: string,
  redact: Redact,
): StatusWriter | null {
  if (statusPath === undefined) return null;
  return createStatusWriter({
    folder: statusPath,
    scope: config.scope,
    worker,
    limits: Object.fromEntries(config.sources.map((source) => [source.name, limitsOf(source)])),
    global: limitsOf(config.global),
    runtime,
    redact,
    keepsTexts: telemetry.capture === "full",
    snapshot: () => snapshotOf(dispatcher),
  });
}

const limitsOf = ({ maxConcurrency, rpm, tpm, limitRule }: StatusLimits): StatusLimits => ({
  maxConcurrency,
  rpm,
  tpm,
  limitRule,
});

function telemetryFor(
  options: ScopeOptions,
  { telemetry }: ResolvedScope,
  runtime: Runtime,
  worker: string,
  redact: Redact,
): TelemetryEmitter | null {
  const given = options.telemetry ?? "none";
  if (given === "none") return null;
  const recorders = Array.isArray(given) ? (given as readonly Recorder[]) : [given as Recorder];
  if (recorders.length === 0) return null;
  return createTelemetry({ recorders, runtime, worker, redact, ...telemetry });
}

/** What the process-wide settings add to a client made from the environment. */
export function processOptions(settings: ProcessSettings): Partial<ScopeOptions> {
  const runtime = createSystemRuntime({ level: settings.logLevel });
  const recorders = (settings.telemetryBackends ?? []).map((backend) => recorderOf(backend, settings));
  return {
    runtime,
    ...(recorders.length === 0 ? {} : { telemetry: recorders }),
    ...(settings.pricingPath === undefined ? {} : { pricing: pricingFrom(settings.pricingPath, runtime) }),
  };
}

function recorderOf(backend: TelemetryBackend, settings: ProcessSettings): Recorder {
  if (backend === "jsonl") return new JsonlRecorder(settings.jsonlPath);
  // Required where the backend is named (config/env-process.ts).
  if (backend === "postgres") return new PostgresRecorder(settings.postgresDsn?.reveal() ?? "");
  return new SqliteRecorder(settings.sqlitePath);
}

function pricingFrom(path: string, runtime: Runtime): PricingTable {
  const pricing = PricingTable.fromFile(path);
  pricing.onUnknownModel((model) => runtime.log("warn", `${path} has no price for ${model}: its cost stays unknown`));
  return pricing;
}
