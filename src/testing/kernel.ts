import { sleepOn } from "../backends/sleep.js";
import { makeUuidV7 } from "../backends/uuid.js";
import { BinaryHeap } from "../domain/binary-heap.js";
import type { CancelTimer, LogLevel, Runtime } from "../ports/runtime.js";
import { type RandomStream, seededStream } from "./seeded-random.js";
import { createTraceHash } from "./trace-hash.js";
import { dueTime, onGrid } from "./virtual-clock.js";

export interface SimulationKernelOptions {
  /** The same seed and the same scenario give the same run. Default 1. */
  readonly seed?: number;
  /** Wall clock at virtual time 0, epoch ms. Default 2026-01-01T00:00:00Z. */
  readonly wallEpochMs?: number;
  /** Events one `run`, `advance` or `drain` may fire before it gives up: an endless loop of 0 ms timers. Default 10,000,000. */
  readonly maxEvents?: number;
}

export interface SimulatedLog {
  readonly atMs: number;
  readonly worker: string;
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: Record<string, unknown> | undefined;
}

interface SimulatedEvent {
  readonly dueMs: number;
  readonly tieBreak: number;
  readonly sequence: number;
  readonly worker: Worker;
  callback: (() => void) | undefined;
}

interface Worker {
  readonly name: string;
  readonly index: number;
  alive: boolean;
  /** Due events of a frozen worker, in the order they came due; undefined while it runs. */
  frozen: SimulatedEvent[] | undefined;
}

const DEFAULT_WALL_EPOCH_MS = Date.UTC(2026, 0, 1);
/** Streams 0 and up belong to the workers. */
const TIE_BREAK_STREAM = -1;
/** Turns of the real event loop that code under test may use (setImmediate) before "nothing happens" is believed. */
const PATIENCE_TURNS = 20;
const COMPACT_FROM_EVENTS = 4_096;

function isBefore(a: SimulatedEvent, b: SimulatedEvent): boolean {
  if (a.dueMs !== b.dueMs) return a.dueMs < b.dueMs;
  if (a.tieBreak !== b.tieBreak) return a.tieBreak < b.tieBreak;
  return a.sequence < b.sequence;
}

/**
 * Virtual time for the real code (spec 09, layer 3). All workers share one clock and one queue of timers; between two
 * events every microtask is drained, so a promise chain takes no virtual time. Events of the same moment fire in an
 * order drawn from the seed: code that relies on an accidental order fails for some seed.
 *
 * Only timers are simulated. Code under test that waits for real files or sockets makes `run` report a deadlock.
 */
export class SimulationKernel {
  /** Every log line of every worker, in order. */
  readonly logs: SimulatedLog[] = [];
  readonly #seed: number;
  readonly #wallEpochMs: number;
  readonly #maxEvents: number;
  readonly #queue = new BinaryHeap<SimulatedEvent>(isBefore);
  readonly #tieBreaks: RandomStream;
  readonly #trace = createTraceHash();
  readonly #workers = new Map<Runtime, Worker>();
  #nowMs = 0;
  #sequence = 0;
  #pending = 0;
  #driving = false;

  constructor(options: SimulationKernelOptions = {}) {
    this.#seed = options.seed ?? 1;
    this.#wallEpochMs = options.wallEpochMs ?? DEFAULT_WALL_EPOCH_MS;
    this.#maxEvents = options.maxEvents ?? 10_000_000;
    this.#tieBreaks = seededStream(this.#seed, TIE_BREAK_STREAM);
  }

  /** A virtual worker: the shared clock, timers, ids and random numbers of its own. Default name `worker-<n>`. */
  runtime(name?: string): Runtime {
    const index = this.#workers.size;
    const worker: Worker = { name: name ?? `worker-${index + 1}`, index, alive: true, frozen: undefined };
    const next = seededStream(this.#seed, index);
    const setTimer: Runtime["setTimer"] = (delayMs, callback) => this.#schedule(worker, delayMs, callback);
    const wallNow = (): number => this.#wallEpochMs + Math.floor(this.#nowMs);
    const runtime: Runtime = {
      now: () => this.#nowMs,
      wallNow,
      sleep: sleepOn(setTimer),
      setTimer,
      random: () => next() / 2 ** 32,
      uuid: makeUuidV7(wallNow, (bytes) => fillFrom(seededStream(next(), index), bytes)),
      log: (level, message, fields) => this.#log(worker, level, message, fields),
    };
    this.#workers.set(runtime, worker);
    return runtime;
  }

  /** Virtual milliseconds since the kernel was made. */
  now(): number {
    return this.#nowMs;
  }

  /** Timers that may still fire, those of frozen workers included. */
  pendingTimers(): number {
    return this.#pending;
  }

  /** Fingerprint of the run so far: same seed and scenario → same hash. */
  traceHash(): string {
    return this.#trace.digest();
  }

  /** Adds a fact of the scenario (a verdict, a result) to the fingerprint. */
  trace(fact: string | number): void {
    if (typeof fact === "number") this.#trace.addNumber(fact);
    else this.#trace.addText(fact);
  }

  /**
   * Drives the simulation until the promise settles and gives its result. Microtasks are drained before the first event.
   * @throws Error "deadlocked at t=…" when it is pending and no event is left that could change that
   */
  async run<T>(value: T | Promise<T>): Promise<T> {
    const work = Promise.resolve(value);
    let settled = false;
    const markSettled = (): void => {
      settled = true;
    };
    work.then(markSettled, markSettled);
    await this.#drive(() => settled, Number.POSITIVE_INFINITY);
    if (!settled) throw new Error(this.#describeDeadlock());
    return work;
  }

  /** Fires everything due within the next `ms`, then sets the clock to exactly that moment. */
  async advance(ms: number): Promise<void> {
    const endMs = onGrid(this.#nowMs + ms);
    await this.#drive(() => false, endMs);
    this.#nowMs = endMs;
  }

  /** Fires events until none is left; those of frozen workers stay. */
  async drain(): Promise<void> {
    await this.#drive(() => false, Number.POSITIVE_INFINITY);
  }

  /**
   * The worker dies as by `kill -9`: none of its timers fires any more and it can set no new one. Its promises stay
   * pending; a scenario asks `isAlive` where the dead worker could still be reached through a shared object.
   */
  kill(worker: Runtime): void {
    const victim = this.#workerOf(worker);
    if (!victim.alive) return;
    victim.alive = false;
    const cancel = (event: SimulatedEvent): void => this.#cancel(event);
    victim.frozen?.forEach(cancel);
    victim.frozen = undefined;
    this.#queue.retain((event) => {
      if (event.worker !== victim) return true;
      cancel(event);
      return false;
    });
  }

  isAlive(worker: Runtime): boolean {
    return this.#workerOf(worker).alive;
  }

  /** Holds back the worker's timers, as SIGSTOP does; the clock goes on. Promises others resolve still reach it. */
  freeze(worker: Runtime): void {
    const held = this.#workerOf(worker);
    if (held.alive) held.frozen ??= [];
  }

  /** Lets the worker go on: what came due meanwhile fires now, in its old order. */
  thaw(worker: Runtime): void {
    const released = this.#workerOf(worker);
    const held = released.frozen ?? [];
    released.frozen = undefined;
    for (const event of held) this.#queue.push(event);
  }

  #workerOf(runtime: Runtime): Worker {
    const worker = this.#workers.get(runtime);
    if (worker === undefined) throw new Error("This runtime was not made by this kernel.");
    return worker;
  }

  #schedule(worker: Worker, delayMs: number, callback: () => void): CancelTimer {
    if (!worker.alive) return () => {};
    const dueMs = dueTime(this.#nowMs, delayMs);
    const event: SimulatedEvent = { dueMs, tieBreak: this.#tieBreaks(), sequence: this.#sequence++, worker, callback };
    this.#queue.push(event);
    this.#pending += 1;
    return () => {
      this.#cancel(event);
      this.#compact();
    };
  }

  #cancel(event: SimulatedEvent): void {
    if (event.callback === undefined) return;
    event.callback = undefined;
    this.#pending -= 1;
  }

  /** Cancelled events stay in the queue until their moment; long timeouts of short calls would pile up there. */
  #compact(): void {
    if (this.#queue.size < COMPACT_FROM_EVENTS || this.#queue.size < 2 * this.#pending) return;
    this.#queue.retain((event) => event.callback !== undefined);
  }

  #log(worker: Worker, level: LogLevel, message: string, fields: Record<string, unknown> | undefined): void {
    if (!worker.alive) return;
    this.logs.push({ atMs: this.#nowMs, worker: worker.name, level, message, fields });
    this.#trace.addText(message);
  }

  async #drive(isDone: () => boolean, endMs: number): Promise<void> {
    if (this.#driving)
      throw new Error("The simulation is already being driven: await the earlier run or advance first.");
    this.#driving = true;
    try {
      await new Promise<void>((resolve, reject) => this.#turn(isDone, endMs, { resolve, reject, events: 0, idle: 0 }));
    } finally {
      this.#driving = false;
    }
  }

  /** One turn of the real event loop: its microtasks are drained by the time setImmediate calls back. */
  #turn(isDone: () => boolean, endMs: number, drive: Drive): void {
    setImmediate(() => {
      try {
        if (isDone()) return drive.resolve();
        if (this.#fireNext(endMs)) {
          drive.idle = 0;
          drive.events += 1;
          if (drive.events > this.#maxEvents) throw new Error(this.#describeEndless());
        } else if (++drive.idle > PATIENCE_TURNS) return drive.resolve();
      } catch (error) {
        return drive.reject(error);
      }
      this.#turn(isDone, endMs, drive);
    });
  }

  #fireNext(endMs: number): boolean {
    for (let event = this.#queue.peek(); event !== undefined && event.dueMs <= endMs; event = this.#queue.peek()) {
      this.#queue.pop();
      const { callback, worker } = event;
      if (callback === undefined) continue;
      if (worker.frozen !== undefined) {
        worker.frozen.push(event);
        continue;
      }
      this.#nowMs = Math.max(this.#nowMs, event.dueMs);
      this.#cancel(event);
      this.#trace.addNumber(this.#nowMs);
      this.#trace.addNumber(event.sequence);
      callback();
      return true;
    }
    return false;
  }

  #describeDeadlock(): string {
    const frozen = [...this.#workers.values()].filter((worker) => worker.frozen !== undefined);
    const hint = frozen.length === 0 ? "" : ` Frozen workers: ${frozen.map((worker) => worker.name).join(", ")}.`;
    return `deadlocked at t=${this.#nowMs} ms (seed ${this.#seed}): the promise is pending and no timer is left.${hint}`;
  }

  #describeEndless(): string {
    return `gave up at t=${this.#nowMs} ms (seed ${this.#seed}) after ${this.#maxEvents} events.`;
  }
}

interface Drive {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  events: number;
  /** Turns in a row without an event. */
  idle: number;
}

function fillFrom(next: RandomStream, bytes: Uint8Array): void {
  for (let index = 0; index < bytes.length; index++) bytes[index] = next() >>> 24;
}
