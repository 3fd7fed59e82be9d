import { MemoryGovernor, type MemoryGovernorOptions } from "../../backends/memory/governor.js";
import type { ScopeConfig } from "../../domain/scope.js";
import type { Governor, GovernorEvent, ScopeSnapshot, TickBatch, TickReply } from "../../ports/governor.js";
import type { Runtime } from "../../ports/runtime.js";
import { createDraws, type Draws } from "./draws.js";
import type { ChaosSpec } from "./scenario.js";
import type { World } from "./world.js";

/** A store that all workers share, each over a connection of its own that takes time and loses replies. */
export interface SharedStore {
  connect(runtime: Runtime, worker: string): Governor;
  snapshot(): ScopeSnapshot;
  /** As after a restart without persistence. */
  restartEmpty(): void;
}

/** Between two messages of one moment, so that none overtakes another. */
const APART_MS = 2 ** -9;
/** A client gives a tick up after this long; it may run all the same. */
const TIMEOUT_MS = 250;
const STORE_STREAM = 3_000_000;
const DEFAULT_DELAY_MS = 0.5;

/** Changes what a governor answers; for tests of the observer. */
export type Tamper = (governor: Governor) => Governor;

export function createSharedStore(
  world: World,
  config: ScopeConfig,
  tamper: Tamper = (governor) => governor,
): SharedStore {
  const { observer, scenario } = world;
  const listeners = new Set<(event: GovernorEvent) => void>();
  const draws = createDraws(world.seed, STORE_STREAM);
  const options: MemoryGovernorOptions = { ...config, runtime: world.kernel.runtime("store") };

  function start(): Governor {
    const governor = tamper(new MemoryGovernor(options));
    governor.onEvent((event) => {
      if (event.type === "state") observer.changed(governor.snapshot() as ScopeSnapshot);
      for (const listener of listeners) listener(event);
    });
    return governor;
  }

  let governor = start();
  const run = (batch: TickBatch): TickReply => {
    const reply = governor.tick(batch) as TickReply;
    observer.ticked(batch, reply, () => governor.snapshot() as ScopeSnapshot);
    return reply;
  };
  return {
    connect(runtime, worker) {
      const setup: ConnectionSetup = {
        world,
        runtime,
        worker,
        scope: config.scope,
        delayMs: scenario.storeDelayMs ?? DEFAULT_DELAY_MS,
        draws,
        run,
        governor: () => governor,
        listeners,
      };
      return scenario.ownGovernor === true ? createOwn(setup) : createConnection(setup);
    },
    snapshot: () => governor.snapshot() as ScopeSnapshot,
    restartEmpty() {
      observer.storeRestarted();
      governor = start();
    },
  };
}

interface ConnectionSetup {
  readonly world: World;
  readonly runtime: Runtime;
  readonly worker: string;
  readonly scope: string;
  readonly delayMs: number;
  readonly draws: Draws;
  readonly run: (batch: TickBatch) => TickReply;
  readonly governor: () => Governor;
  readonly listeners: Set<(event: GovernorEvent) => void>;
}

/** Without a store: the governor is the worker's own, and only watched. */
function createOwn({ world, worker, scope, run, governor, listeners }: ConnectionSetup): Governor {
  const { observer } = world;
  return {
    scope,
    tick(batch) {
      const reply = run(batch);
      observer.replied(worker, reply);
      return reply;
    },
    onEvent(listener) {
      const forward = (event: GovernorEvent): void => {
        if (event.type !== "capacity") observer.told(worker, event.source);
        listener(event);
      };
      listeners.add(forward);
      return () => listeners.delete(forward);
    },
    snapshot: () => governor().snapshot(),
    progressAgeMs: () => governor().progressAgeMs(),
    async close() {},
  };
}

function createConnection(setup: ConnectionSetup): Governor {
  const { world, runtime, worker, delayMs, draws, listeners } = setup;
  const { observer, scenario } = world;
  const there = inOrder(world.runtime, delayMs);
  const back = inOrder(runtime, delayMs);

  /** Runs when it arrives, answers when the way back is done; a paused store lets both wait. */
  function ask<T>(execute: () => T): Promise<T> {
    const pausedMs = pauseLeftMs(scenario.chaos, world.kernel.now() + delayMs);
    const isLost = draws.chance(scenario.chaos?.lostReplyShare ?? 0);
    return new Promise<T>((resolve, reject) => {
      const late = pausedMs + 2 * delayMs > TIMEOUT_MS;
      if (late)
        runtime.setTimer(TIMEOUT_MS, () => reject(new Error(`the store did not answer within ${TIMEOUT_MS} ms`)));
      there(pausedMs, () => {
        let settle: () => void;
        try {
          const value = execute();
          settle = isLost ? () => reject(new Error("the reply of the store was lost")) : () => resolve(value);
        } catch (error) {
          settle = () => reject(error);
        }
        back(0, settle);
      });
    });
  }

  return {
    scope: setup.scope,
    async tick(batch) {
      const reply = await ask(() => setup.run(batch));
      observer.replied(worker, reply);
      return reply;
    },
    onEvent(listener) {
      let isCapacityOnItsWay = false;
      const forward = (event: GovernorEvent): void => {
        if (event.worker !== undefined && event.worker !== worker) return;
        const isCapacity = event.type === "capacity";
        // The one on its way wakes the worker after this one too.
        if (isCapacity && isCapacityOnItsWay) return;
        if (isCapacity) isCapacityOnItsWay = true;
        observer.events += 1;
        back(0, () => {
          if (isCapacity) isCapacityOnItsWay = false;
          else observer.told(worker, event.source);
          if (listeners.has(forward)) listener(event);
        });
      };
      listeners.add(forward);
      return () => listeners.delete(forward);
    },
    snapshot: () => ask(() => setup.governor().snapshot() as ScopeSnapshot),
    progressAgeMs: () => ask(() => setup.governor().progressAgeMs() as number),
    async close() {},
  };
}

/** One direction of a connection: nothing overtakes what left before it. */
function inOrder(runtime: Runtime, delayMs: number): (extraMs: number, arrive: () => void) => void {
  let freeAtMs = 0;
  return (extraMs, arrive) => {
    const nowMs = runtime.now();
    const arrivesMs = Math.max(nowMs + delayMs + extraMs, freeAtMs);
    freeAtMs = arrivesMs + APART_MS;
    runtime.setTimer(arrivesMs - nowMs, arrive);
  };
}

function pauseLeftMs(chaos: ChaosSpec | undefined, atMs: number): number {
  for (const pause of chaos?.pauses ?? []) {
    if (atMs >= pause.atMs && atMs < pause.atMs + pause.forMs) return pause.atMs + pause.forMs - atMs;
  }
  return 0;
}
