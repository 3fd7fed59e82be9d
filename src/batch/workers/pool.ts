import type { ChatRequest, ChatResponse } from "../../domain/chat.js";
import type { CancelTimer, Runtime } from "../../ports/runtime.js";
import type { BatchClient, BatchSnapshot, BatchWorker } from "../types.js";
import type { WorkerSetup } from "./messages.js";
import { WorkersFailedError, whyGiveUp } from "./restarts.js";
import { createSlot, type PoolCall, type Slot } from "./slot.js";
import { livePermits, mergeSnapshots, troubleOf, type WorkerState } from "./snapshots.js";
import { fromWire } from "./wire-error.js";
import type { StartWorker } from "./worker-process.js";

export interface PoolOptions {
  readonly scope: string;
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
/** The same words from several workers are said once, and again when they come later. */
const SAME_NOTE_MS = 10_000;
const MAX_KNOWN_NOTES = 1_000;

export function createWorkerPool(options: PoolOptions): WorkerPool {
  const { runtime, concurrency } = options;
  const slots: Slot[] = [];
  /** Calls without a worker, oldest first. */
  const queue: PoolCall[] = [];
  const saidMs = new Map<string, number>();
  let nextId = 0;
  let failed: WorkersFailedError | undefined;
  let closing = false;
  let latest: BatchSnapshot | null = null;
  let wakeStart = (): void => {};
  let wakeClose = (): void => {};

  function note(text: string): void {
    const now = runtime.now();
    if (now - (saidMs.get(text) ?? Number.NEGATIVE_INFINITY) < SAME_NOTE_MS) return;
    if (saidMs.size >= MAX_KNOWN_NOTES) saidMs.clear();
    saidMs.set(text, now);
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
    const share = Math.ceil(concurrency / slots.filter(({ isUp }) => isUp).length);
    while (queue.length > 0) {
      const free = able.filter(({ inFlight }) => inFlight < share);
      if (free.length === 0) return;
      const least = free.reduce((a, b) => (b.inFlight < a.inFlight ? b : a));
      least.take(queue.shift()!);
    }
  }

  function onDeath(slot: Slot, how: string, lost: readonly PoolCall[]): void {
    if (closing) {
      for (const call of lost) call.reject(new WorkersFailedError(`A worker ${how}.`));
      wakeClose();
      return;
    }
    queue.unshift(...lost);
    const reason = failed?.message ?? whyGiveUp(slot.deathsInRow, how, worstOf(lost));
    if (reason !== undefined) {
      fail(reason);
      return;
    }
    const handedOn = lost.length === 0 ? "" : ` Its lines in flight are run again: ${lost.length}.`;
    options.onNote(`A worker ${how}.${handedOn}`);
    slot.restartLater();
    dispatch();
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
      onFree: dispatch,
      onRefused: (reason) => fail(`A worker can't work: ${reason}`),
      onNote: note,
      onDeath: (how, lost) => onDeath(slot, how, lost),
    });
    return slot;
  }

  function admit(
    { signal, ...request }: ChatRequest,
    resolve: (response: ChatResponse) => void,
    reject: (error: unknown) => void,
  ): void {
    if (failed !== undefined || signal?.aborted) {
      reject(failed ?? signal?.reason);
      return;
    }
    const id = nextId++;
    const cancel = (): void => {
      const at = queue.findIndex((call) => call.id === id);
      if (at >= 0) queue.splice(at, 1);
      for (const slot of slots) slot.cancel(id);
      reject(signal?.reason);
    };
    const leave = (): void => signal?.removeEventListener("abort", cancel);
    signal?.addEventListener("abort", cancel, { once: true });
    queue.push({
      id,
      request,
      deaths: 0,
      resolve(response) {
        leave();
        resolve(response);
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
    chat: (request) => new Promise((resolve, reject) => admit(request, resolve, reject)),
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

function worstOf(lost: readonly PoolCall[]): { readonly id: string; readonly deaths: number } | undefined {
  const [first, ...rest] = lost;
  if (first === undefined) return undefined;
  const worst = rest.reduce((a, b) => (b.deaths > a.deaths ? b : a), first);
  return { id: worst.request.parentCallId ?? "", deaths: worst.deaths };
}
