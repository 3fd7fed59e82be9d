import { MemoryGovernor } from "../../src/backends/memory/governor.js";
import type { GatewayOptions } from "../../src/config/options.js";
import { resolveScope } from "../../src/config/resolve.js";
import type { Governor, GovernorEvent, ScopeSnapshot, TickBatch, TickReply } from "../../src/ports/governor.js";
import type { Runtime } from "../../src/ports/runtime.js";
import type { SimulationKernel } from "../../src/testing/kernel.js";

/** What a connection to the store does to one tick. */
export interface TickFault {
  /** Fails before it is executed. */
  readonly refuse?: Error;
  /** Executed, but the answer is lost: the caller only sees this error. */
  readonly loseReply?: Error;
}

export interface ConnectionOptions {
  /** Milliseconds on the way there, then back; 0 = a promise that settles at the same moment. Default 0. */
  readonly thereMs?: () => number;
  readonly backMs?: () => number;
  readonly fault?: (batch: TickBatch) => TickFault | null;
  /** Every tick that was asked for. */
  readonly onTick?: (batch: TickBatch) => void;
}

/** A store that outlives its clients: the memory governor's rules behind connections that take time and fail. */
export interface Store {
  /** The rules themselves, without a connection. */
  readonly inner: Governor;
  /** As after a restart without persistence: every lease, count and breaker is forgotten. */
  restartEmpty(): void;
  /** An asynchronous governor for one process; `runtime` is that process's own. */
  connect(runtime: Runtime, options?: ConnectionOptions): Governor;
}

/** One direction of a connection: nothing overtakes what left before it. null = no way at all. */
function inOrder(runtime: Runtime, lengthMs: (() => number) | undefined): () => Promise<void> | null {
  let freeAtMs = 0;
  return () => {
    const length = lengthMs?.() ?? 0;
    if (length === 0 && freeAtMs <= runtime.now()) return null;
    const arrivesMs = Math.max(runtime.now() + length, freeAtMs);
    freeAtMs = arrivesMs + 2 ** -9;
    return runtime.sleep(arrivesMs - runtime.now());
  };
}

export function createStore(kernel: SimulationKernel, options: GatewayOptions): Store {
  const { config } = resolveScope(options);
  const storeRuntime = kernel.runtime("store");
  const listeners = new Set<(event: GovernorEvent) => void>();
  const start = (): MemoryGovernor => {
    const governor = new MemoryGovernor({ ...config, runtime: storeRuntime });
    governor.onEvent((event) => {
      for (const listener of [...listeners]) listener(event);
    });
    return governor;
  };
  let inner = start();

  function connect(runtime: Runtime, { thereMs, backMs, fault, onTick }: ConnectionOptions = {}): Governor {
    const road = inOrder(storeRuntime, thereMs);
    const wayBack = inOrder(runtime, backMs);
    /** Executes when it arrives, answers when the way back is done; in the order of asking, as one connection does. */
    const overTheWire = async <T>(execute: () => T, lost?: Error): Promise<T> => {
      const arrival = road();
      if (arrival !== null) await arrival;
      let answer: { value: T } | { error: unknown };
      try {
        answer = { value: execute() };
      } catch (error) {
        answer = { error };
      }
      const homecoming = wayBack();
      if (homecoming !== null) await homecoming;
      if (lost !== undefined) throw lost;
      if ("error" in answer) throw answer.error;
      return answer.value;
    };
    return {
      scope: config.scope,
      tick(batch): Promise<TickReply> {
        onTick?.(batch);
        const failure = fault?.(batch);
        if (failure?.refuse !== undefined) {
          const error = failure.refuse;
          return overTheWire(() => {
            throw error;
          });
        }
        return overTheWire(() => inner.tick(batch), failure?.loseReply);
      },
      onEvent(listener) {
        const later = (event: GovernorEvent): void => {
          const homecoming = wayBack();
          if (homecoming === null) listener(event);
          else void homecoming.then(() => listeners.has(later) && listener(event));
        };
        listeners.add(later);
        return () => listeners.delete(later);
      },
      snapshot: (): Promise<ScopeSnapshot> => overTheWire(() => inner.snapshot() as ScopeSnapshot),
      progressAgeMs: (): Promise<number> => overTheWire(() => inner.progressAgeMs() as number),
      async close() {},
    };
  }

  return {
    get inner() {
      return inner;
    },
    restartEmpty() {
      inner = start();
    },
    connect,
  };
}

/** A governor of the same turn that fails where the test says, before anything is executed. */
export function failingGovernor(
  inner: Governor,
  fault: (batch: TickBatch) => Error | null,
  extra: Partial<Governor> = {},
): Governor {
  return {
    scope: inner.scope,
    tick(batch) {
      const error = fault(batch);
      if (error !== null) throw error;
      return inner.tick(batch);
    },
    onEvent: (listener) => inner.onEvent(listener),
    snapshot: () => inner.snapshot(),
    progressAgeMs: () => inner.progressAgeMs(),
    close: () => inner.close(),
    ...extra,
  };
}
