import { expect, test } from "vitest";
import { runtime, TestContext } from "../attempt.test-helper.js";
import type { WholeBody } from "../openai/whole-answer.js";
import { timeLeft } from "./timeout-left.js";

/** An answer that was read at 1,000 ms and had left 400 ms before. */
function started(timeoutMs: number) {
  let nowMs = 1_000;
  const context = new TestContext({ ...runtime, now: () => nowMs });
  const assembler = { deltas: 0, hasChoices: false, partial: () => undefined };
  const answer = { sourceName: "reader", operation: "ocr_layout", statusCode: 200, redact: String, assembler };
  const left = timeLeft({ ...answer, latencyMs: 400 } as unknown as WholeBody, timeoutMs, context);
  return {
    left,
    context,
    pass(ms: number) {
      nowMs += ms;
    },
  };
}

test("what is left shrinks from the moment the first request left, and its end is told", () => {
  const { left, pass } = started(1_000);
  expect(left.forNextMs()).toBe(600);
  pass(599);
  expect(left.forNextMs()).toBe(1);
  expect(left.isOver()).toBe(false);
  expect(left.elapsedMs()).toBe(999);
  pass(1);
  expect(left.isOver()).toBe(true);
  expect(() => left.forNextMs()).toThrow(/reader ocr_layout transient failure: no complete answer within 1000 ms/);
});

test("a timeout of 0 bounds nothing", () => {
  const { left, pass } = started(0);
  pass(1e9);
  expect(left.forNextMs()).toBe(0);
  expect(left.isOver()).toBe(false);
});

test("after an abort nobody waits any more", () => {
  const { left, context } = started(0);
  context.abort(new Error("left"));
  expect(left.isOver()).toBe(true);
});
