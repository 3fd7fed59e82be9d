import { createSystemRuntime } from "../../backends/system.js";
import { ConfigError } from "../../errors.js";
import { createProviderApi, type Outage } from "./api.js";
import type { ProviderClock } from "./clock.js";
import { createLedger, type Ledger, type LedgerEntry, type LedgerOutcome } from "./ledger.js";
import type { ProviderLimits } from "./limits.js";
import { type Listener, startListener } from "./listener.js";
import { checkProviderOptions, type SimulatedProviderOptions } from "./options.js";
import type { FaultOptions, LatencyOptions, OutputOptions } from "./plan.js";
import type { UpstreamScript } from "./script.js";

export type { Answer, ReceivedRequest } from "./answer.js";
export { echoAnswer } from "./answer.js";
export type { Outage } from "./api.js";
export type { ProviderClock } from "./clock.js";
export { type LedgerEntry, type LedgerOptions, type LedgerOutcome, readLedger } from "./ledger.js";
export type { ProviderLimits } from "./limits.js";
export type { SimulatedProviderOptions } from "./options.js";
export type { FaultOptions, LatencyOptions, OutputOptions } from "./plan.js";
export type { ResponseScript, ScriptChunk, SocketScript, UpstreamScript } from "./script.js";
export { parseScripts } from "./script-file.js";

/** What can be changed while the provider runs. */
export interface ProviderChanges {
  readonly faults?: FaultOptions;
  readonly latency?: LatencyOptions;
  readonly output?: OutputOptions;
  /** New limits start with full buckets and empty windows. */
  readonly limits?: ProviderLimits;
}

export interface ProviderStats {
  readonly arrived: number;
  readonly inProgress: number;
  /** How many ended in which way. */
  readonly outcomes: Partial<Record<LedgerOutcome, number>>;
  /** Open client sockets. */
  readonly connections: number;
  /** Ledger entries that memory no longer holds. */
  readonly ledgerDropped: number;
  /** Why the ledger file could not be written any more; null = it could. */
  readonly ledgerFileError: string | null;
}

export interface SimulatedProvider {
  readonly name: string;
  readonly port: number;
  /** `http://host:port/v1`: what a source's BASE_URL is. */
  readonly baseUrl: string;
  /** `http://host:port`. */
  readonly origin: string;
  /** What arrived so far, by arrival. */
  ledger(): readonly Readonly<LedgerEntry>[];
  /** Puts every ended request of the ledger into its file. */
  flushLedger(): void;
  stats(): ProviderStats;
  /**
   * Answers the next POST requests with a script, byte for byte, instead of anything else.
   * `times`: how many requests (default 1), or `"always"`: all that no queued script takes.
   */
  script(script: UpstreamScript, times?: number | "always"): void;
  clearScripts(): void;
  /** Replaces the named groups; each starts from its defaults. @throws ConfigError */
  change(changes: ProviderChanges): void;
  /** `refuse`: connections are refused and open ones reset · `503`: everything is answered 503 · `off`: back to normal. */
  setOutage(outage: Outage): Promise<void>;
  /**
   * Stops accepting, lets answers in progress end for `graceMs` (default 0), then resets what is left.
   * Safe to repeat; a repetition without grace cuts the first one's short.
   */
  stop(options?: { graceMs?: number }): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

function assertGood(options: SimulatedProviderOptions): void {
  const problems = checkProviderOptions(options);
  if (problems.length > 0) throw new ConfigError(problems);
}

/**
 * Starts a provider that speaks the chat API over real HTTP, with limits, latencies and faults, and with a ledger of its
 * own of everything that arrived (spec 09). For tests, demos and benchmarks; it authenticates nobody worth protecting.
 *
 * @throws ConfigError with every bad option; the system's error when the port or the ledger file can't be had.
 */
export async function startSimulatedProvider(options: SimulatedProviderOptions = {}): Promise<SimulatedProvider> {
  assertGood(options);
  const { name = "sim", host = "127.0.0.1" } = options;
  const clock: ProviderClock = options.clock ?? createSystemRuntime();
  const ledger: Ledger = createLedger(name, clock, options.ledger ?? {});
  const api = createProviderApi(options, clock, ledger);
  let stopping: Promise<void> | null = null;
  let listener: Listener;
  try {
    listener = await startListener({ host, port: options.port ?? 0 }, clock, api);
  } catch (error) {
    ledger.stop();
    throw error;
  }
  const { port, origin } = listener;

  async function stop(graceMs: number): Promise<void> {
    listener.refuse();
    await api.drained(graceMs);
    listener.resetAll();
    await listener.allClosed();
    ledger.stop();
  }

  function stopOnce({ graceMs = 0 }: { graceMs?: number } = {}): Promise<void> {
    if (stopping === null) stopping = stop(graceMs);
    else if (graceMs === 0) listener.resetAll();
    return stopping;
  }

  return {
    name,
    port,
    origin,
    baseUrl: `${origin}/v1`,
    ledger: () => ledger.entries(),
    flushLedger: () => ledger.flush(),
    stats: () => ({
      arrived: api.arrived(),
      inProgress: api.inProgress(),
      outcomes: ledger.outcomes(),
      connections: listener.connections,
      ledgerDropped: ledger.dropped,
      ledgerFileError: ledger.fileError,
    }),
    script: api.script,
    clearScripts: api.clearScripts,
    change(changes) {
      assertGood(changes);
      api.change(changes);
    },
    async setOutage(outage) {
      api.setOutage(outage);
      if (outage === "refuse") {
        listener.refuse();
        listener.resetAll();
        await listener.allClosed();
      } else if (!listener.listening && stopping === null) await listener.reopen();
    },
    stop: stopOnce,
    [Symbol.asyncDispose]: () => stopOnce(),
  };
}
