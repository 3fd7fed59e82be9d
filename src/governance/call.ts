import type { OperationKind } from "../domain/record.js";
import type { ScopeConfig } from "../domain/scope.js";
import type { SourceConfig } from "../domain/source.js";
import type { Refusal } from "../domain/tick.js";
import type { BilledUsage } from "../domain/usage.js";
import type { Telemetry } from "../ports/recorder.js";
import type { Runtime } from "../ports/runtime.js";
import type { Selector } from "../ports/selector.js";
import type { Affinity } from "./affinity.js";
import type { Dispatcher } from "./dispatcher.js";
import { createInterrupt, type Interrupt } from "./interrupt.js";
import type { CallOptions, Operation } from "./operation.js";
import { createStallClock, type StallClock } from "./stall-clock.js";
import type { Wait } from "./wait-log.js";
import type { Warn } from "./warn.js";

/** What the loop works with; one per client. */
export interface GovernEnvironment {
  readonly config: ScopeConfig;
  readonly runtime: Runtime;
  readonly dispatcher: Dispatcher;
  readonly telemetry: Telemetry | null;
  readonly pricing: { costNanos(model: string, usage: BilledUsage, provider?: string): bigint | null } | null;
  /** A user's own order; null = the governor selects. */
  readonly selector: Selector | null;
  /** Which source served a session last; null = nobody asks. */
  readonly affinity: Affinity | null;
  readonly warn: Warn;
}

/** Everything one call remembers between its attempts. Never shared between calls. */
export interface Call {
  readonly environment: GovernEnvironment;
  readonly operation: Operation<unknown, unknown>;
  readonly kind: OperationKind;
  readonly options: CallOptions;
  readonly requestId: string;
  readonly startedMs: number;
  /** Queue position, kept through every retry. */
  readonly sequence: number;
  readonly interrupt: Interrupt;
  readonly clock: StallClock;
  readonly failover: boolean;
  /** Who may still be asked. */
  sources: readonly SourceConfig[];
  candidates: readonly string[];
  /** Counted failures. */
  fails: number;
  /** Those of them whose retry has been let through. */
  failsPaid: number;
  /** Sends, whatever came of them. */
  attempts: number;
  rateLimits: number;
  /** Sends repeated for a dead socket or a refused parameter of ours. */
  resends: number;
  /** An attempt left a source that had tripped; once is enough. */
  evacuated: boolean;
  /** A second attempt ran beside another one; once is enough. */
  hedged: boolean;
  failedHere: readonly string[];
  limitedHere: readonly string[];
  /** Sources that turned out dead in this call, with what they said. */
  deadHere: Map<string, Error> | null;
  lastFailure: Error | null;
  /** What the call waits for, while it waits. */
  lastRefusal: Refusal | null;
  /** What it waited for when a wait ended without a permit; null = none did. */
  endedWaits: readonly Wait[] | null;
  /** Progress elsewhere lets the call wait beyond its own stall window until this moment. */
  patienceUntilMs: number;
  /** The row that ends the call has been written. */
  finalRowWritten: boolean;
}

const NOBODY: readonly string[] = [];

export function startCall(
  environment: GovernEnvironment,
  operation: Operation<unknown, unknown>,
  options: CallOptions,
  interrupt: Interrupt = interruptOf(environment, options),
): Call {
  const { runtime, dispatcher, config } = environment;
  const startedMs = runtime.now();
  return {
    environment,
    operation,
    kind: operation.kind,
    options,
    requestId: runtime.uuid(),
    startedMs,
    sequence: dispatcher.nextSequence(),
    interrupt,
    clock: createStallClock(startedMs),
    failover: (options.failover ?? config.failover) === "on",
    sources: operation.sources,
    candidates: operation.candidates,
    fails: 0,
    failsPaid: 0,
    attempts: 0,
    rateLimits: 0,
    resends: 0,
    evacuated: false,
    hedged: false,
    failedHere: NOBODY,
    limitedHere: NOBODY,
    deadHere: null,
    lastFailure: null,
    lastRefusal: null,
    endedWaits: null,
    patienceUntilMs: 0,
    finalRowWritten: false,
  };
}

/** What may end a call of these options from outside. */
export function interruptOf({ runtime, config }: GovernEnvironment, options: CallOptions): Interrupt {
  return createInterrupt(runtime, options, options.deadlineMs ?? config.deadlineMs);
}

/** Narrows who may still be asked. */
export function keepSources(call: Call, keep: (source: SourceConfig) => boolean): void {
  call.sources = call.sources.filter(keep);
  call.candidates = call.sources.map((source) => source.name);
}

export function sourceNamed(call: Call, name: string): SourceConfig | undefined {
  return call.operation.sources.find((source) => source.name === name);
}

export function withName(names: readonly string[], name: string): readonly string[] {
  return names.includes(name) ? names : [...names, name];
}

/**
 * Whether an attempt that is given up for its source's sake leaves the call a way on: not where one send is all there
 * is, nor where it would end for want of another source.
 */
export function mayMoveOn(call: Call): boolean {
  const { retry, backpressure } = call.environment.config;
  if (call.evacuated || retry.maxAttempts === 1) return false;
  return call.sources.length > 1 || backpressure.whenOpen === "wait";
}

/** What is left of the stall window at this moment; more when the scope as a whole makes progress. */
export function patienceMs(call: Call, nowMs: number): number {
  const ownMs = call.environment.config.backpressure.stallWindowMs - call.clock.stalledMs(nowMs);
  return Math.max(ownMs, call.patienceUntilMs - nowMs);
}
