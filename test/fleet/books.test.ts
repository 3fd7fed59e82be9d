import { describe, expect, test } from "vitest";
import { BooksJudge, type JudgedRow } from "./books-judge.js";
import type { Life } from "./crew.js";
import { entry, grant, life, PID, T0 } from "./evidence.test-helper.js";
import { type LossEvidence, RowLosses } from "./row-losses.js";

/** As judges.test.ts, for rows: each invariant is broken once. */

describe("books", () => {
  const row = (changes: Partial<JudgedRow> = {}): JudgedRow => ({
    ...{ call_id: "r", request_id: "call", source_name: "a", outcome: "success", attempt: 1, final: 1 },
    ...{ usage_source: "measured", prompt_tokens: 5, completion_tokens: 5, ...changes },
  });
  const books = (
    rows: JudgedRow[],
    entries = [entry("r", 0, 5)],
    grants = new Map([grant("r", 0)]),
    losses = lossesOf(),
  ) => {
    const {
      permitted,
      once,
      rows: one,
      seen,
      ends,
      tokens,
    } = new BooksJudge([{ source: "a", limits: {}, entries }], grants, rows, losses);
    const found = { permitted, once, rows: one, seen, ends, tokens };
    return Object.entries(found).flatMap(([name, { violations }]) => (violations > 0 ? [name] : []));
  };

  test("books that agree have nothing to find", () => expect(books([row()])).toEqual([]));
  test("a request without a row", () => expect(books([])).toEqual(["rows"]));
  test("two rows for one request", () => expect(books([row(), row({ final: 0 })])).toEqual(["rows"]));
  test("a row of another source", () => expect(books([row({ source_name: "b" })])).toEqual(["rows"]));
  test("an answer that nobody gave", () => expect(books([row()], [])).toEqual(["seen"]));
  test("an abandoned attempt may have been seen by nobody", () =>
    expect(books([row({ outcome: "abandoned" })], [])).toEqual([]));
  test("a call without an end", () => expect(books([row({ final: 0 })])).toEqual(["ends"]));
  test("a call with two ends", () =>
    expect(books([row(), row({ call_id: "t", source_name: null, attempt: null })])).toEqual(["ends"]));
  test("other tokens", () => expect(books([row({ completion_tokens: 6 })])).toEqual(["tokens"]));
  test("a request without a permit", () => expect(books([row()], undefined, new Map())).toEqual(["permitted"]));
  test("a permit that was used twice", () =>
    expect(books([row()], [entry("r", 0, 5), entry("r", 6, 9)])).toEqual(["once"]));

  describe("when the store was away", () => {
    const unwritten = new Set(["r"]);
    const killed = [life({ killedAtMs: T0 + 500 })];
    const without = (evidence: Partial<LossEvidence>) => books([], undefined, undefined, lossesOf(evidence));

    test("a killed process takes rows with it, of which it has told", () => {
      expect(without({ unwritten, lives: killed })).toEqual([]);
      expect(without({ lives: killed })).toEqual(["rows"]);
    });
    test("a process that lives has all of its rows", () => expect(without({ unwritten })).toEqual(["rows"]));
    test("no more of them are missing than it told as lost", () => {
      const lives = [life({ rows: { given: 2, written: 1, dropped: 1 } })];
      expect(without({ lives })).toEqual([]);
      const two = [entry("r", 0, 5), entry("s", 6, 9)];
      const grants = new Map([grant("r", 0), grant("s", 5)]);
      expect(books([], two, grants, lossesOf({ lives }))).toEqual(["rows"]);
    });
  });
});

function lossesOf(changes: Partial<LossEvidence> = {}): RowLosses {
  return new RowLosses({
    ...{ lives: [life()], unwritten: new Set(), stored: new Map([[PID, 1]]), smallQueues: new Set() },
    ...changes,
  });
}

describe("rows", () => {
  const found = (rows: Life["rows"], changes: Partial<LossEvidence> = {}, killedAtMs: number | null = null) => {
    const { told, written } = lossesOf({ lives: [life({ rows, killedAtMs })], ...changes });
    return [told.violations, written.violations];
  };

  test("all of them written and there", () => expect(found({ given: 1, written: 1, dropped: 0 })).toEqual([0, 0]));
  test("one that was lost, and told, within the queue's bound", () => {
    const rows = { given: 2, written: 1, dropped: 1 };
    expect(found(rows)).toEqual([1, 0]);
    expect(found(rows, { smallQueues: new Set([PID]) })).toEqual([0, 0]);
  });
  test("one of which nobody knows", () => expect(found({ given: 2, written: 1, dropped: 0 })).toEqual([1, 0]));
  test("one that was told as written, and is not there", () => {
    const two = { given: 2, written: 2, dropped: 0 };
    expect(found(two)).toEqual([0, 1]);
    expect(found(two, {}, T0)).toEqual([0, 1]);
    // What was written after it told last is not known of one that was killed.
    expect(found({ given: 0, written: 0, dropped: 0 }, {}, T0)).toEqual([0, 0]);
  });
  test("one that is there, and was never told as written", () =>
    expect(found({ given: 0, written: 0, dropped: 0 })).toEqual([0, 1]));
});
