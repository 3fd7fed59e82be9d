import { beforeEach, describe, expect, it } from "vitest";
import type { Runtime } from "../ports/runtime.js";
import { Watchdog } from "./watchdog.js";

/** A clock that only moves when told to, with the timers that are pending on it. */
class FakeTime {
  nowMs = 1_000;
  started = 0;
  readonly timers = new Map<number, { at: number; callback: () => void }>();
  readonly runtime = {
    now: () => this.nowMs,
    setTimer: (delayMs: number, callback: () => void) => {
      this.started += 1;
      const id = this.started;
      this.timers.set(id, { at: this.nowMs + delayMs, callback });
      return () => void this.timers.delete(id);
    },
  } as unknown as Runtime;

  advance(ms: number): void {
    const until = this.nowMs + ms;
    for (;;) {
      const due = [...this.timers].filter(([, timer]) => timer.at <= until).sort((a, b) => a[1].at - b[1].at)[0];
      if (due === undefined) break;
      this.timers.delete(due[0]);
      this.nowMs = due[1].at;
      due[1].callback();
    }
    this.nowMs = until;
  }
}

describe("Watchdog", () => {
  let time: FakeTime;
  let expired: [string, number, number][];
  let dog: Watchdog;

  beforeEach(() => {
    time = new FakeTime();
    expired = [];
    dog = new Watchdog(time.runtime, { totalMs: 10_000, ttftMs: 3_000, interTokenMs: 1_000 }, (timer, limitMs) => {
      expired.push([timer, limitMs, time.nowMs - 1_000]);
    });
  });

  it("a stream without a first token", () => {
    dog.start(true);
    time.advance(500);
    dog.touch();
    time.advance(20_000);
    expect(expired).toEqual([["ttft_timeout", 3_000, 3_000]]);
    expect(time.timers.size).toBe(0);
  });

  it("counts from the moment the request left", () => {
    dog.start(true);
    time.advance(2_000);
    dog.sent();
    time.advance(2_900);
    expect(expired).toEqual([]);
    time.advance(200);
    expect(expired).toEqual([["ttft_timeout", 3_000, 5_000]]);
  });

  it("a plain answer has the total only", () => {
    dog.start(false);
    time.advance(9_999);
    expect(expired).toEqual([]);
    time.advance(1);
    expect(expired).toEqual([["timeout", 10_000, 10_000]]);
  });

  it("tokens feed the idle timer, and nothing feeds the total", () => {
    dog.start(true);
    time.advance(100);
    dog.firstToken();
    for (let turn = 0; turn < 5; turn += 1) {
      time.advance(900);
      dog.progress();
    }
    expect(expired).toEqual([]);
    time.advance(1_000);
    expect(expired).toEqual([["idle_timeout", 1_000, 5_600]]);
  });

  it("the total ends a stream that is fed for ever", () => {
    dog.start(true);
    dog.firstToken();
    for (let turn = 0; turn < 30; turn += 1) {
      time.advance(500);
      dog.progress();
    }
    expect(expired).toEqual([["timeout", 10_000, 10_000]]);
  });

  it("comments stretch the idle timer to four times its length at most", () => {
    dog.start(true);
    dog.firstToken();
    for (let turn = 0; turn < 20; turn += 1) {
      time.advance(500);
      dog.touch();
    }
    expect(expired).toEqual([["idle_timeout", 1_000, 4_000]]);
  });

  it("has one timer pending, and feeding sets none", () => {
    dog.start(true);
    dog.firstToken();
    const { started } = time;
    for (let turn = 0; turn < 1_000; turn += 1) dog.progress();
    expect(time.started).toBe(started);
    expect(time.timers.size).toBe(1);
  });

  it("doesn't count while the consumer is behind", () => {
    dog.start(true);
    dog.firstToken();
    time.advance(400);
    dog.pause();
    time.advance(60_000);
    expect(expired).toEqual([]);
    expect(dog.elapsedMs()).toBe(400);
    dog.resume();
    time.advance(599);
    expect(expired).toEqual([]);
    time.advance(1);
    expect(expired).toEqual([["idle_timeout", 1_000, 61_000]]);
  });

  it("a bound on the end fires, also after the timers were stopped", () => {
    dog.start(true);
    time.advance(200);
    dog.stop();
    expect(time.timers.size).toBe(0);
    dog.boundEnd(100);
    time.advance(1_000);
    expect(expired).toEqual([["end", 100, 300]]);
    expect(dog.elapsedMs()).toBe(1_200);
  });

  it("a stopped watchdog leaves nothing behind", () => {
    dog.start(true);
    dog.firstToken();
    dog.stop();
    time.advance(100_000);
    expect(expired).toEqual([]);
    expect(time.timers.size).toBe(0);
  });

  it("timers set to 0 are off", () => {
    const off = new Watchdog(time.runtime, { totalMs: 0, ttftMs: 0, interTokenMs: 0 }, () => expired.push(["x", 0, 0]));
    off.start(true);
    off.firstToken();
    time.advance(1e9);
    expect(expired).toEqual([]);
    expect(time.timers.size).toBe(0);
  });
});
