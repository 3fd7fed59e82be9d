import type { CancelTimer, Runtime } from "../../ports/runtime.js";
import type { LineAnswer, LineCall, LineKind } from "../kinds/kinds.js";
import type { BatchClient, BatchSnapshot, BatchWorker } from "../types.js";
import type { WorkerSetup } from "./messages.js";
import { MAX_DEATHS_IN_A_ROW, WorkersFailedError, whyGiveUp } from "./restarts.js";
import { createSlot, type PoolCall, type Slot } from "./slot.js";
import { livePermits, mergeSnapshots, troubleOf, type WorkerState } from "./snapshots.js";
import { createSuspects, type Death, guiltyError, NO_DEATHS } from "./suspects.js";
import { fromWire } from "./wire-error.js";
import type { StartWorker } from "./worker-process.js";

export interface PoolOptions {
  readonly scope: string;
  readonly kind: LineKind;
  readonly models: readonly string[];
  readonly setup: WorkerSetup;
  /** Worker processes, at least 1. */
  readonly workers: number;
  /** Lines in flight over all of them. */
  readonly concurrency: number;
  readonly runtime: Pick<Runtime, "now" | "setTimer">;
  readonly startWorker: StartWorker;
  readonly onNote: (text: string) => void;
}

/** Calls made by worker processes. A call whose worker dies is made again by another one: its caller notices nothing. */
export interface WorkerPool extends BatchClient {
  /** Resolves when the first worker can work. Rejects with WorkersFailedError. */
  start(linesToDo: number | undefined): Promise<void>;
  workers(): readonly BatchWorker[];
  /** Lets the workers write their telemetry and end; who hasn't ended after `limitMs` is killed. */
  close(limitMs: number): Promise<void>;
}

/** A worker that hasn't told its state by then is left out of it: it may be frozen, or at work on something large. */
const STATE_WAIT_MS = 1_000;
/** The same words, or words on the same topic, from several workers are said once, and again when they come later. */
const SAME_NOTE_MS = 10_000;
const MAX_KNOWN_NOTES = 1_000;

export function createWorkerPool(options: PoolOptions): WorkerPool {
  const { runtime, concurrency } = options;
  const slots: Slot[] = [];
  /** Calls without a worker, oldest first. */
  const queue: PoolCall[] = [];
  const saidMs = new Map<string, number>();
  const suspects = createSuspects();
  /** The line that a worker has for itself, since workers may die of it. */
  let alone: { readonly slot: Slot; readonly id: number } | undefined;
  let nextId = 0;
  let failed: WorkersFailedError | undefined;
  let closing = false;
  let latest: BatchSnapshot | null = null;
  let wakeStart = (): void => {};
  let wakeClose = (): void => {};

  function note(text: string, topic = text): void {
    const now = runtime.now();
    if (now - (saidMs.get(topic) ?? Number.NEGATIVE_INFINITY) < SAME_NOTE_MS) return;
    if (saidMs.size >= MAX_KNOWN_NOTES) saidMs.clear();
    saidMs.set(topic, now);
    options.onNote(text);
  }

  function fail(reason: string): void {
    failed ??= new WorkersFailedError(reason);
    for (const call of queue.splice(0)) call.reject(failed);
    for (const slot of slots) slot.stayDown();
    wakeStart();
  }

  /** While a worker is down the others take its share. One that starts gets its own, so that the first doesn't take all. */
  function dispatch(): void {
    const able = slots.filter(({ isReady }) => isReady);
    const apart = keepApart();
    const others = slots.filter((slot) => slot.isUp && slot !== apart).length;
    const share = Math.ceil(concurrency / Math.max(1, others));
    for (;;) {
      const at = queue.findIndex(({ deaths }) => !suspects.isSuspect(deaths));
      const free = able.filter((slot) => slot !== apart && slot.inFlight < share);
      if (at < 0 || free.length === 0) return;
      leastOf(free).take(queue.splice(at, 1)[0]!);
    }
  }

  /**
   * The worker that has a line for itself, or gets it as soon as it is free; undefined = there is no such line. The line
   * stays in its place: were it handed to the next worker at once, it would seem guilty where somebody kills all of them.
   */
  function keepApart(): Slot | undefined {
    if (alone?.slot.holds(alone.id) === true) return alone.slot;
    alone = undefined;
    const at = queue.findIndex(({ deaths, diedIn }) => suspects.isSuspect(deaths) && diedIn?.isReady === true);
    const call = queue[at];
    if (call?.diedIn === undefined) return undefined;
    const slot = call.diedIn;
    if (slot.inFlight > 0) return slot;
    queue.splice(at, 1);
    alone = { slot, id: call.id };
    slot.take(call);
    return slot;
  }

  function onDeath(slot: Slot, death: Death, lost: readonly PoolCall[]): number {
    const { how } = death;
    if (closing) {
      for (const call of lost) call.reject(new WorkersFailedError(`A worker ${how}.`));
      wakeClose();
      return 0;
    }
    for (const call of lost) call.diedIn = slot;
    const guilty = suspects.died(lost, death);
    if (guilty !== undefined && failed === undefined && suspects.mayBlame()) {
      options.onNote(`A worker ${how}. Line ${nameOf(guilty)} is recorded as failed: workers die of it.`);
      guilty.reject(guiltyError(guilty.deaths, how));
      slot.restartLater(true);
      dispatch();
      return 0;
    }
    queue.unshift(...lost);
    const reason = failed?.message ?? whyGiveUp(guilty === undefined ? death.deathsInRow : MAX_DEATHS_IN_A_ROW, how);
    if (reason !== undefined) {
      fail(reason);
      return 0;
    }
    const handedOn = lost.length === 0 ? "" : ` Its lines in flight are run again: ${lost.length}.`;
    options.onNote(`A worker ${how}.${handedOn}`);
    slot.restartLater();
    dispatch();
    return lost.length;
  }

  function newSlot(): Slot {
    const slot: Slot = createSlot({
      runtime,
      setup: options.setup,
      startWorker: options.startWorker,
      onReady() {
        wakeStart();
        dispatch();
      },
      onFree() {
        suspects.finished();
        dispatch();
      },
      onRefused: (reason) => fail(`A worker can't work: ${reason}`),
      onNote: note,
      onDeath: (death, lost) => onDeath(slot, death, lost),
    });
    return slot;
  }

  function admit(
    call: LineCall,
    signal: AbortSignal,
    resolve: (answer: LineAnswer) => void,
    reject: (error: unknown) => void,
  ): void {
    if (failed !== undefined || signal.aborted) {
      reject(failed ?? signal.reason);
      return;
    }
    const id = nextId++;
    const cancel = (): void => {
      const at = queue.findIndex((waiting) => waiting.id === id);
      if (at >= 0) queue.splice(at, 1);
      for (const slot of slots) slot.cancel(id);
      reject(signal.reason);
    };
    const leave = (): void => signal.removeEventListener("abort", cancel);
    signal.addEventListener("abort", cancel, { once: true });
    queue.push({
      id,
      call,
      deaths: NO_DEATHS,
      diedIn: undefined,
      resolve(answer) {
        leave();
        resolve(answer);
      },
      reject(error) {
        leave();
        reject(error);
      },
    });
    dispatch();
  }

  function askStates(): Promise<WorkerState[]> {
    const asked = slots.filter(({ isReady }) => isReady);
    return Promise.all(asked.map((slot) => slot.askState(STATE_WAIT_MS)));
  }

  async function snapshot(): Promise<BatchSnapshot> {
    const states = await askStates();
    const trouble = troubleOf(states);
    if (trouble !== undefined) throw fromWire(trouble);
    latest = mergeSnapshots(states, queue.length, latest);
    if (latest === null) throw new Error("no worker has told its state yet");
    return latest;
  }

  return {
    scope: options.scope,
    kind: options.kind,
    models: options.models,
    snapshot,
    leases: async () => ({ live: livePermits(await askStates()) }),
    workers: () => slots.map((slot) => slot.view()),
    async start(linesToDo = Number.POSITIVE_INFINITY) {
      const count = Math.min(options.workers, concurrency, linesToDo);
      for (let index = 0; index < count; index++) slots.push(newSlot());
      while (failed === undefined && slots.length > 0 && !slots.some(({ isReady }) => isReady)) {
        await new Promise<void>((resolve) => (wakeStart = resolve));
      }
      if (failed !== undefined) throw failed;
    },
    call: (call, signal) => new Promise((resolve, reject) => admit(call, signal, resolve, reject)),
    async close(limitMs) {
      closing = true;
      for (const slot of slots) slot.end();
      const cancelKill: CancelTimer = runtime.setTimer(limitMs, () => {
        for (const slot of slots.filter(({ isGone }) => !isGone)) {
          options.onNote(`Worker ${slot.pid} doesn't end: it is killed.`);
          slot.kill();
        }
      });
      while (slots.some(({ isGone }) => !isGone)) await new Promise<void>((resolve) => (wakeClose = resolve));
      cancelKill();
    },
  };
}

function leastOf(slots: readonly Slot[]): Slot {
  return slots.reduce((a, b) => (b.inFlight < a.inFlight ? b : a));
}

function nameOf({ call }: PoolCall): string {
  return JSON.stringify(call.parentCallId);
}
