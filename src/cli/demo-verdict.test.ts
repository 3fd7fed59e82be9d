import { describe, expect, it } from "vitest";
import {
  checkAnswers,
  checkBooks,
  checkLimits,
  checkRows,
  type OutLine,
  type WitnessedSource,
} from "./demo-verdict.js";

const questions = [
  { id: "q1", answer: "one" },
  { id: "q2", answer: "two" },
];

function line(id: string, content: string): OutLine {
  return { custom_id: id, error: null, response: { body: { choices: [{ message: { content } }] } } };
}

function request(id: number, arrivedAtMs: number, lastsMs = 10) {
  return {
    id,
    arrivedAtMs,
    endedAtMs: arrivedAtMs + lastsMs,
    promptTokens: 1,
    billedTokens: 2,
    maxTokens: null,
    clientClosed: false,
    requestId: `call-${id}`,
  };
}

function source(ledger: WitnessedSource["ledger"], limits: WitnessedSource["limits"] = {}): WitnessedSource {
  return { name: "s_1", limits, ledger };
}

describe("checkAnswers", () => {
  it("holds when each question has one line with its own answer, in any order", () => {
    expect(checkAnswers(questions, [line("q2", "two"), line("q1", "one")])).toMatchObject({ ok: true });
  });

  it.each<[string, OutLine[], string]>([
    ["a missing line", [line("q1", "one")], "q2 has no line"],
    ["a line twice", [line("q1", "one"), line("q2", "two"), line("q2", "two")], "q2 has 2 lines"],
    ["another question's answer", [line("q1", "two"), line("q2", "two")], "q1 holds another answer"],
    ["a failure", [line("q1", "one"), { custom_id: "q2", error: { message: "no" }, response: null }], "q2 failed: no"],
    ["a line too many", [line("q1", "one"), line("q2", "two"), line("q3", "x")], "3 lines for 2 questions"],
  ])("breaks on %s", (_, lines, found) => {
    expect(checkAnswers(questions, lines)).toMatchObject({ ok: false, found: expect.stringContaining(found) });
  });
});

describe("checkLimits", () => {
  it("holds at the limit and breaks one above it, in any 60 s", () => {
    const requests = [request(1, 30_000), request(2, 60_000), request(3, 89_999)];
    expect(checkLimits([source(requests, { rpm: 3 })])).toMatchObject({
      ok: true,
      found: "s_1 3 of 3 requests in 60 s",
    });
    expect(checkLimits([source(requests, { rpm: 2 })])).toMatchObject({ ok: false });
  });

  it("judges overlap against the concurrency", () => {
    const requests = [request(1, 0, 1_000), request(2, 500, 1_000)];
    expect(checkLimits([source(requests, { maxConcurrency: 2 })])).toMatchObject({ ok: true });
    expect(checkLimits([source(requests, { maxConcurrency: 1 })])).toMatchObject({ ok: false });
  });
});

describe("checkRows", () => {
  const arrived = source([request(1, 0), request(2, 10)]);
  const row = (id: number) => ({ callId: `call-${id}`, sourceName: "s_1" });

  it("holds when requests and rows are the same calls", () => {
    expect(checkRows([arrived], [row(2), row(1)])).toMatchObject({ ok: true });
  });

  it("breaks on a missing row, and on a row of something that never arrived", () => {
    expect(checkRows([arrived], [row(1)])).toMatchObject({ ok: false, found: "s_1: 2 requests arrived, 1 row" });
    expect(checkRows([arrived], [row(1), row(7)])).toMatchObject({
      ok: false,
      found: expect.stringContaining("1 row of"),
    });
  });
});

describe("checkBooks", () => {
  it("tells the sums, or the first differences", () => {
    expect(checkBooks([], "2 calls = 2 ended")).toMatchObject({ ok: true, found: "2 calls = 2 ended" });
    const many = checkBooks(["a", "b", "c", "d", "e"], "");
    expect(many).toMatchObject({ ok: false, found: "a; b; c; and 2 more" });
  });
});
