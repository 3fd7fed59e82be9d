import { describe, expect, it } from "vitest";
import { startLiveView } from "./live-view.js";

function harness(isTTY: boolean, columns = 20) {
  let written = "";
  const timers: { delayMs: number; callback: () => void; cancelled: boolean }[] = [];
  let state = 0;
  const view = startLiveView({
    stream: { write: (text: string) => (written += text), isTTY, columns },
    env: {},
    runtime: {
      setTimer(delayMs, callback) {
        const timer = { delayMs, callback, cancelled: false };
        timers.push(timer);
        return () => {
          timer.cancelled = true;
        };
      },
    },
    block: () => [`state ${state}`, "x".repeat(30)],
    line: () => `plain ${state}`,
  });
  return {
    view,
    pending: () => timers.filter((timer) => !timer.cancelled),
    advance(next: number) {
      state = next;
      const timer = timers.at(-1);
      if (timer) {
        timer.cancelled = true;
        timer.callback();
      }
    },
    take() {
      const text = written;
      written = "";
      return text;
    },
  };
}

describe("startLiveView", () => {
  it("takes a terminal that was never given a size for one of the usual width", () => {
    expect(harness(true, 0).take()).toContain(`${"x".repeat(30)}\n`);
  });

  it("draws over its own lines on a terminal and keeps notes above", () => {
    const { view, advance, take, pending } = harness(true);
    expect(take()).toBe(`state 0\n${"x".repeat(18)}…\n`);
    advance(1);
    expect(take()).toBe(`\u001b[2A\u001b[0Jstate 1\n${"x".repeat(18)}…\n`);
    view.note("careful");
    expect(take()).toBe(`\u001b[2A\u001b[0Jcareful\nstate 1\n${"x".repeat(18)}…\n`);
    view.stop();
    expect(take()).toContain("state 1");
    expect(pending()).toEqual([]);
    view.stop();
    expect(take()).toBe("");
  });

  it("writes plain lines, with no escape sequence, where nothing can be drawn over", () => {
    const { view, advance, take, pending } = harness(false);
    expect(take()).toBe("");
    advance(1);
    view.note("careful");
    view.stop();
    expect(take()).toBe("plain 1\ncareful\nplain 1\n");
    expect(pending()).toEqual([]);
  });
});
