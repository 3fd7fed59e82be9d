import type { CancelTimer, Runtime } from "../ports/runtime.js";

/** Comments and empty frames keep a stream alive, but not for longer than this many idle limits (spec 03 "Watchdog"). */
export const IDLE_STRETCH = 4;

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
  /** The timer of the last `#nextDeadline()`. */
  #next: WatchdogTimer = "end";
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
    this.#arm(this.#startedAt);
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
    if (this.#cancel === undefined) this.#arm(this.#runtime.now());
  }

  /** Since the request left, pauses excluded. */
  elapsedMs(): number {
    const until = this.#pausedAt ?? this.#runtime.now();
    return Math.max(0, until - this.#startedAt);
  }

  /** The moment of the earliest timer; notes which one it is. */
  #nextDeadline(): number {
    const { totalMs, ttftMs, interTokenMs } = this.#limits;
    this.#next = "end";
    let at = this.#endAt;
    if (!this.#guarding) return at;
    if (totalMs > 0 && this.#startedAt + totalMs < at) {
      this.#next = "timeout";
      at = this.#startedAt + totalMs;
    }
    if (!this.#streaming) return at;
    if (this.#firstTokenAt === undefined) {
      if (ttftMs <= 0 || this.#startedAt + ttftMs >= at) return at;
      this.#next = "ttft_timeout";
      return this.#startedAt + ttftMs;
    }
    const idleAt = Math.min(this.#touchedAt + interTokenMs, this.#progressAt + IDLE_STRETCH * interTokenMs);
    if (interTokenMs <= 0 || idleAt >= at) return at;
    this.#next = "idle_timeout";
    return idleAt;
  }

  #limitMs(timer: WatchdogTimer): number {
    if (timer === "end") return this.#endMs;
    if (timer === "timeout") return this.#limits.totalMs;
    return timer === "ttft_timeout" ? this.#limits.ttftMs : this.#limits.interTokenMs;
  }

  #rearmIfEarlier(): void {
    if (this.#nextDeadline() >= this.#armedFor) return;
    this.#cancel?.();
    this.#arm(this.#runtime.now());
  }

  #arm(nowMs: number): void {
    const at = this.#nextDeadline();
    this.#armedFor = at;
    this.#cancel = undefined;
    if (at === Number.POSITIVE_INFINITY) return;
    this.#cancel = this.#runtime.setTimer(Math.max(0, at - nowMs), () => this.#fired());
  }

  #fired(): void {
    this.#cancel = undefined;
    this.#armedFor = Number.POSITIVE_INFINITY;
    if (this.#pausedAt !== undefined) return;
    const at = this.#nextDeadline();
    const timer = this.#next;
    const nowMs = this.#runtime.now();
    if (nowMs < at) {
      this.#arm(nowMs);
      return;
    }
    const limitMs = this.#limitMs(timer);
    this.stop();
    this.#onExpired(timer, limitMs);
  }
}
