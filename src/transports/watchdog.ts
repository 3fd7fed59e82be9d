import type { CancelTimer, Runtime } from "../ports/runtime.js";

/** Comments and empty frames keep a stream alive, but not for longer than this many idle limits (spec 03 "Watchdog"). */
const IDLE_STRETCH = 4;

/** `end` is the short bound set by `boundEnd`; the others are the three timers of spec 03. */
export type WatchdogTimer = "timeout" | "ttft_timeout" | "idle_timeout" | "end";

/** Milliseconds; 0 = that timer is off. */
export interface WatchdogLimits {
  readonly totalMs: number;
  readonly ttftMs: number;
  readonly interTokenMs: number;
}

export type WatchdogListener = (timer: WatchdogTimer, limitMs: number) => void;

/**
 * The three timers of one attempt over ONE pending `runtime.setTimer`: feeding only stores a time,
 * and the timer re-arms itself when it fires too early. While the consumer is behind, nothing runs.
 */
export class Watchdog {
  readonly #runtime: Runtime;
  readonly #limits: WatchdogLimits;
  readonly #onExpired: WatchdogListener;
  #cancel: CancelTimer | undefined;
  #armedFor = Number.POSITIVE_INFINITY;
  #streaming = false;
  #startedAt = 0;
  #firstTokenAt: number | undefined;
  #progressAt = 0;
  #touchedAt = 0;
  #endAt = Number.POSITIVE_INFINITY;
  #endMs = 0;
  #pausedAt: number | undefined;
  /** The three timers apply. */
  #guarding = false;

  constructor(runtime: Runtime, limits: WatchdogLimits, onExpired: WatchdogListener) {
    this.#runtime = runtime;
    this.#limits = limits;
    this.#onExpired = onExpired;
  }

  /** A streamed answer has all three timers, a plain one only the total. */
  start(streaming: boolean): void {
    this.#guarding = true;
    this.#streaming = streaming;
    this.#startedAt = this.#runtime.now();
    this.#arm();
  }

  /** The request left: the timers count from here. */
  sent(): void {
    this.#startedAt = this.#runtime.now();
  }

  /** The server chose another kind of answer than was asked for. */
  setStreaming(streaming: boolean): void {
    this.#streaming = streaming;
    this.#rearmIfEarlier();
  }

  /** Bytes arrived, whatever they hold. */
  touch(): void {
    this.#touchedAt = this.#runtime.now();
  }

  /** A frame with content, thinking, a tool call or usage arrived. */
  progress(): void {
    const now = this.#runtime.now();
    this.#touchedAt = now;
    this.#progressAt = now;
  }

  /** First content, thinking or tool delta: from here the idle timer replaces the first-token timer. */
  firstToken(): void {
    this.progress();
    this.#firstTokenAt = this.#progressAt;
    this.#rearmIfEarlier();
  }

  /** From now on the exchange may last `withinMs` more at most; the other timers still apply. */
  boundEnd(withinMs: number): void {
    this.#endMs = withinMs;
    this.#endAt = this.#runtime.now() + withinMs;
    this.#rearmIfEarlier();
  }

  /** All timers are over; a later `boundEnd` arms that one bound alone. */
  stop(): void {
    this.#guarding = false;
    this.#endAt = Number.POSITIVE_INFINITY;
    this.#pausedAt = undefined;
    this.#cancel?.();
    this.#cancel = undefined;
    this.#armedFor = Number.POSITIVE_INFINITY;
  }

  pause(): void {
    this.#pausedAt ??= this.#runtime.now();
  }

  resume(): void {
    if (this.#pausedAt === undefined) return;
    const pausedMs = this.#runtime.now() - this.#pausedAt;
    this.#pausedAt = undefined;
    this.#startedAt += pausedMs;
    this.#progressAt += pausedMs;
    this.#touchedAt += pausedMs;
    this.#endAt += pausedMs;
    if (this.#firstTokenAt !== undefined) this.#firstTokenAt += pausedMs;
    if (this.#cancel === undefined) this.#arm();
  }

  /** Since the request left, pauses excluded. */
  elapsedMs(): number {
    const until = this.#pausedAt ?? this.#runtime.now();
    return Math.max(0, until - this.#startedAt);
  }

  #nextDeadline(): { timer: WatchdogTimer; at: number; limitMs: number } {
    const { totalMs, ttftMs, interTokenMs } = this.#limits;
    let next = { timer: "end" as WatchdogTimer, at: this.#endAt, limitMs: this.#endMs };
    if (!this.#guarding) return next;
    if (totalMs > 0 && this.#startedAt + totalMs < next.at) {
      next = { timer: "timeout", at: this.#startedAt + totalMs, limitMs: totalMs };
    }
    if (!this.#streaming) return next;
    if (this.#firstTokenAt === undefined) {
      if (ttftMs > 0 && this.#startedAt + ttftMs < next.at) {
        next = { timer: "ttft_timeout", at: this.#startedAt + ttftMs, limitMs: ttftMs };
      }
      return next;
    }
    const idleAt = Math.min(this.#touchedAt + interTokenMs, this.#progressAt + IDLE_STRETCH * interTokenMs);
    if (interTokenMs > 0 && idleAt < next.at) next = { timer: "idle_timeout", at: idleAt, limitMs: interTokenMs };
    return next;
  }

  #rearmIfEarlier(): void {
    if (this.#nextDeadline().at >= this.#armedFor) return;
    this.#cancel?.();
    this.#arm();
  }

  #arm(): void {
    const { at } = this.#nextDeadline();
    this.#armedFor = at;
    this.#cancel = undefined;
    if (at === Number.POSITIVE_INFINITY) return;
    this.#cancel = this.#runtime.setTimer(Math.max(0, at - this.#runtime.now()), () => this.#fired());
  }

  #fired(): void {
    this.#cancel = undefined;
    this.#armedFor = Number.POSITIVE_INFINITY;
    if (this.#pausedAt !== undefined) return;
    const { timer, at, limitMs } = this.#nextDeadline();
    if (this.#runtime.now() < at) {
      this.#arm();
      return;
    }
    this.stop();
    this.#onExpired(timer, limitMs);
  }
}
