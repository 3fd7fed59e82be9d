import type { CancelTimer, Runtime } from "../../ports/runtime.js";
import type { LineAnswer, LineCall } from "../kinds/kinds.js";
import type { BatchWorker } from "../types.js";
import type { FromWorker, ToldState, WorkerSetup } from "./messages.js";
import { restartAfterMs } from "./restarts.js";
import type { WorkerState } from "./snapshots.js";
import type { Death, LineDeaths } from "./suspects.js";
import { fromWire } from "./wire-error.js";
import type { StartWorker, WorkerLink } from "./worker-process.js";

/** A line's call in the hands of the pool. */
export interface PoolCall {
  readonly id: number;
  readonly call: LineCall;
  readonly resolve: (answer: LineAnswer) => void;
  readonly reject: (error: unknown) => void;
  deaths: LineDeaths;
  /** Where the newest of them was. */
  diedIn: Slot | undefined;
}

export interface SlotOptions {
  readonly runtime: Pick<Runtime, "now" | "setTimer">;
  readonly setup: WorkerSetup;
  readonly startWorker: StartWorker;
  readonly onReady: () => void;
  /** A call ended. */
  readonly onFree: () => void;
  readonly onRefused: (reason: string) => void;
  readonly onNote: (text: string, topic?: string) => void;
  /** The process is gone, with these calls, oldest first. Also after `end` and `kill`. Answers how many are run again. */
  readonly onDeath: (death: Death, lost: readonly PoolCall[]) => number;
}

/** The place of one worker: one process after another. */
export interface Slot {
  readonly pid: number | null;
  /** There is a process; it may not be ready yet. */
  readonly isUp: boolean;
  readonly isReady: boolean;
  /** No process, and none will come. */
  readonly isGone: boolean;
  readonly inFlight: number;
  holds(id: number): boolean;
  take(call: PoolCall): void;
  /** Nothing happens when it has no such call. */
  cancel(id: number): void;
  askState(waitMs: number): Promise<WorkerState>;
  /** `afresh`: what it died of is gone, so that its earlier deaths don't count. */
  restartLater(afresh?: boolean): void;
  /** No process comes after this one. */
  stayDown(): void;
  end(): void;
  kill(): void;
  view(): BatchWorker;
}

export function createSlot(options: SlotOptions): Slot {
  const { runtime } = options;
  const calls = new Map<number, PoolCall>();
  let link: WorkerLink | undefined;
  let ready = false;
  let last = false;
  let cancelRestart: CancelTimer | undefined;
  let deathsInRow = 0;
  let deaths = 0;
  let handedOn = 0;
  let finished = 0;
  /** When a state was asked for that has not come yet. */
  let askedMs: number | undefined;
  const waiters = new Set<(told: ToldState | null) => void>();

  function launch(): void {
    cancelRestart = undefined;
    ready = false;
    askedMs = undefined;
    link = options.startWorker({ onMessage: receive, onEnd: died });
    link.put({ kind: "setup", setup: options.setup });
  }

  function receive(message: FromWorker): void {
    if (message.kind === "ready") {
      ready = true;
      options.onReady();
    } else if (message.kind === "refused") options.onRefused(message.reason);
    else if (message.kind === "note") options.onNote(message.text, message.topic);
    else if (message.kind === "answer") finish(message.id)?.resolve(message.answer);
    else if (message.kind === "failure") finish(message.id)?.reject(fromWire(message.error));
    else {
      askedMs = undefined;
      tell(message);
    }
  }

  /** undefined: it was cancelled meanwhile. */
  function finish(id: number): PoolCall | undefined {
    const call = calls.get(id);
    if (call === undefined) return undefined;
    calls.delete(id);
    finished++;
    deathsInRow = 0;
    options.onFree();
    return call;
  }

  function tell(told: ToldState | null): void {
    for (const waiter of [...waiters]) waiter(told);
  }

  function died(how: string, fromOutside: boolean): void {
    const lost = [...calls.values()];
    calls.clear();
    link = undefined;
    ready = false;
    if (!last) {
      deaths++;
      deathsInRow++;
    }
    tell(null);
    const again = options.onDeath({ how, fromOutside, deathsInRow }, lost);
    if (!last) handedOn += again;
  }

  function stayDown(): void {
    last = true;
    cancelRestart?.();
    cancelRestart = undefined;
  }

  launch();
  return {
    get pid() {
      return link?.pid ?? null;
    },
    get isUp() {
      return link !== undefined;
    },
    get isReady() {
      return ready;
    },
    get isGone() {
      return link === undefined && cancelRestart === undefined;
    },
    get inFlight() {
      return calls.size;
    },
    holds: (id) => calls.has(id),
    take(call) {
      calls.set(call.id, call);
      link?.put({ kind: "call", id: call.id, call: call.call });
    },
    cancel(id) {
      if (calls.delete(id)) link?.put({ kind: "cancel", id });
    },
    askState(waitMs) {
      return new Promise((resolve) => {
        const hear = (told: ToldState | null): void => {
          waiters.delete(hear);
          cancelWait();
          resolve({ told, inFlight: calls.size });
        };
        const cancelWait = runtime.setTimer(waitMs, () => hear(null));
        waiters.add(hear);
        if (askedMs !== undefined) return;
        askedMs = runtime.now();
        link?.put({ kind: "ask" });
      });
    },
    restartLater(afresh = false) {
      if (afresh) deathsInRow = 1;
      if (!last) cancelRestart = runtime.setTimer(restartAfterMs(deathsInRow), launch);
    },
    stayDown,
    end() {
      stayDown();
      link?.put({ kind: "end" });
    },
    kill: () => link?.kill(),
    view() {
      const silentMs = askedMs === undefined ? 0 : runtime.now() - askedMs;
      const state = ready ? "working" : link === undefined ? "down" : "starting";
      return { pid: link?.pid ?? null, state, inFlight: calls.size, finished, deaths, handedOn, silentMs };
    },
  };
}
