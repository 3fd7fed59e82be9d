import { BinaryHeap } from "../../domain/binary-heap.js";
import type { CancelTimer, Runtime } from "../../ports/runtime.js";

interface Job {
  /** In the server's own work clock. */
  readonly dueWork: number;
  readonly sequence: number;
  callback: (() => void) | null;
}

/**
 * A self-hosted server that shares its speed evenly among all requests in progress (processor sharing): at full speed up
 * to its knee, proportionally slower beyond it. It refuses nothing. Work is measured in the milliseconds it would take
 * at full speed.
 */
export class SharedServer {
  readonly #runtime: Runtime;
  readonly #knee: number;
  readonly #jobs = new BinaryHeap<Job>((a, b) =>
    a.dueWork === b.dueWork ? a.sequence < b.sequence : a.dueWork < b.dueWork,
  );
  #busy = 0;
  #work = 0;
  #workAtMs = 0;
  #sequence = 0;
  #cancelTimer: CancelTimer | null = null;

  constructor(runtime: Runtime, knee: number) {
    this.#runtime = runtime;
    this.#knee = knee;
  }

  enter(): void {
    this.#catchUp();
    this.#busy += 1;
    this.#arm();
  }

  leave(): void {
    this.#catchUp();
    this.#busy -= 1;
    this.#arm();
  }

  /** Calls back when that much work has been done for a request from now on. */
  after(workMs: number, callback: () => void): CancelTimer {
    this.#catchUp();
    const job: Job = { dueWork: this.#work + workMs, sequence: this.#sequence++, callback };
    this.#jobs.push(job);
    this.#arm();
    return () => {
      job.callback = null;
    };
  }

  #speed(): number {
    return Math.min(1, this.#knee / this.#busy);
  }

  #catchUp(): void {
    const nowMs = this.#runtime.now();
    this.#work += (nowMs - this.#workAtMs) * this.#speed();
    this.#workAtMs = nowMs;
  }

  #arm(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    let next = this.#jobs.peek();
    while (next !== undefined && next.callback === null) {
      this.#jobs.pop();
      next = this.#jobs.peek();
    }
    if (next === undefined) return;
    const delayMs = Math.max(0, (next.dueWork - this.#work) / this.#speed());
    this.#cancelTimer = this.#runtime.setTimer(delayMs, () => this.#fire());
  }

  #fire(): void {
    this.#cancelTimer = null;
    this.#catchUp();
    const job = this.#jobs.peek();
    // The clock has a grid: what is due within a thousandth of a millisecond is due.
    if (job !== undefined && job.dueWork <= this.#work + 1e-3) {
      this.#jobs.pop();
      job.callback?.();
    }
    this.#arm();
  }
}
