import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { earn, FREE_RETRIES, mayHedge, mayRetry, newBudgets, payHedge, payRetry } from "./budgets.js";
import { attemptTimeMs, successTimeMs } from "./expected-time.js";
import { LEAD, mustYield, nextInLine, noteWaiting, rankOf, visit, type WorkerBook } from "./fairness.js";
import { firstTokenDueMs, hedgeAfterMs } from "./first-token.js";
import { gradientShare, newGradient } from "./gradient.js";
import { newHealth, noteFailure, noteFirstToken, noteSuccess, successShare } from "./health.js";
import { fitsBetter, isTwoSided, matchingSize, mismatch } from "./size-match.js";
import { learnedOutTokens, learnedTokens, learnTokens, MOST_TOKEN_RECORDS, newTokenBook } from "./token-learning.js";

describe("size matching", () => {
  test("the matching size uses up both limits at once; unknown limits match nothing", () => {
    expect(matchingSize(600_000, 5)).toBe(2_000);
    expect(matchingSize(0, 5)).toBe(0);
    expect(matchingSize(600_000, Infinity)).toBe(0);
  });

  test("needs a source on each side of the mean", () => {
    expect(isTwoSided([500, 2_000, 0], 1_000)).toBe(true);
    expect(isTwoSided([2_000, 3_000], 1_000)).toBe(false);
    expect(isTwoSided([0, 0], 1_000)).toBe(false);
  });

  test("compares like |ln(a/r)| does, with 0.05 to spare", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1e6 }),
        fc.integer({ min: 1, max: 1e6 }),
        fc.integer({ min: 1, max: 1e6 }),
        (a, b, r) => {
          const gain = Math.abs(Math.log(a / r)) - Math.abs(Math.log(b / r));
          if (Math.abs(gain - 0.05) < 1e-9) return;
          expect(fitsBetter(mismatch(a, r), mismatch(b, r))).toBe(gain > 0.05);
        },
      ),
    );
  });
});

describe("budgets", () => {
  test("never more than 20, never below 0, and three retries are always free", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom("earn", "retry", "hedge"), { maxLength: 400 }), (verbs) => {
        const b = newBudgets();
        for (const verb of verbs) {
          if (verb === "earn") earn(b);
          else if (verb === "retry" && mayRetry(b, FREE_RETRIES)) payRetry(b);
          else if (verb === "hedge" && mayHedge(b)) payHedge(b);
          expect(b.retryTokens).toBeGreaterThanOrEqual(0);
          expect(b.retryTokens).toBeLessThanOrEqual(20);
          expect(b.hedgeTokens).toBeGreaterThanOrEqual(0);
          expect(mayRetry(b, FREE_RETRIES - 1)).toBe(true);
        }
      }),
    );
  });
});

describe("first token", () => {
  const known = { ownTtftMs: 1_000, poolTtftMs: 800, ttftTimeoutMs: 60_000, promptTokens: 500, meanPromptTokens: 500 };

  test("4.7 times the slower of source and pool, longer for a longer prompt, at least 3 s, null when unknown or later than the timeout", () => {
    expect(firstTokenDueMs(known)).toBe(4_700);
    expect(firstTokenDueMs({ ...known, poolTtftMs: 2_000 })).toBe(9_400);
    expect(firstTokenDueMs({ ...known, promptTokens: 1_500 })).toBe(14_100);
    expect(firstTokenDueMs({ ...known, promptTokens: 100 })).toBe(4_700);
    expect(firstTokenDueMs({ ...known, ownTtftMs: 100, poolTtftMs: 0 })).toBe(3_000);
    expect(firstTokenDueMs({ ...known, ownTtftMs: 0 })).toBeNull();
    expect(firstTokenDueMs({ ...known, ttftTimeoutMs: 4_700 })).toBeNull();
  });

  test("a hedge waits 2.2 times the usual first token, at least a second", () => {
    expect(hedgeAfterMs(0)).toBeNull();
    expect(hedgeAfterMs(100)).toBe(1_000);
    expect(hedgeAfterMs(1_000)).toBeCloseTo(2_200);
  });
});

describe("health", () => {
  test("a new source is believed to be 95 % good; what was seen fades within minutes", () => {
    const h = newHealth();
    expect(successShare(h, 0)).toBeCloseTo(0.95);
    for (let n = 0; n < 50; n += 1) noteFailure(h, 1_000, 0);
    expect(successShare(h, 0)).toBeLessThan(0.2);
    expect(successShare(h, 1_200_000)).toBeGreaterThan(0.94);
  });

  test("slower first tokens are believed sooner than faster ones", () => {
    const rising = newHealth();
    const falling = newHealth();
    noteFirstToken(rising, 1_000);
    noteFirstToken(falling, 1_000);
    noteFirstToken(rising, 2_000);
    noteFirstToken(falling, 0.001);
    expect(rising.ttftMs).toBeCloseTo(1_200);
    expect(falling.ttftMs).toBeCloseTo(900);
  });

  test("the expected time takes what is unknown from the pool, and failures make it longer", () => {
    const h = newHealth();
    expect(attemptTimeMs(h, { ttftMs: 500, tpotMs: 10 }, 100)).toBe(1_500);
    noteSuccess(h, 100, 20, 0);
    expect(attemptTimeMs(h, { ttftMs: 500, tpotMs: 10 }, 100)).toBe(2_500);
    const good = successTimeMs(h, successShare(h, 0), 2_500, 0);
    noteFailure(h, 60_000, 0);
    expect(successTimeMs(h, successShare(h, 0), 2_500, 0)).toBeGreaterThan(2 * good);
    expect(successTimeMs(h, successShare(h, 0), 2_500, 700)).toBeCloseTo(
      successTimeMs(h, successShare(h, 0), 2_500, 0) + 700,
    );
  });
});

test("gradient: twelve samples of twice the best time per token ask for a cut, by half at most; a slow rise of the base is no cut", () => {
  const g = newGradient();
  const feed = (tpotMs: number, nowMs: number) => {
    let share: number | null = null;
    for (let n = 0; n < 12; n += 1) share = gradientShare(g, tpotMs, nowMs) ?? share;
    return share;
  };
  expect(feed(10, 1_000)).toBeNull();
  expect(feed(19, 2_000)).toBeNull();
  expect(feed(25, 3_000)).toBeCloseTo(0.8, 1);
  expect(feed(1_000, 4_000)).toBe(0.5);
  expect(feed(10, 5_000)).toBeNull();
});

test("jitter of a server that writes a token in a millisecond is no load", () => {
  const g = newGradient();
  const feed = (tpotMs: number) => Array.from({ length: 12 }, () => gradientShare(g, tpotMs, 1_000)).at(-1);
  expect([feed(0.5), feed(2), feed(9)]).toEqual([null, null, null]);
  expect(feed(40)).toBe(0.5);
});

describe("learned sizes", () => {
  test("20 samples, then the mean, bounded by maxTokens; the estimate's own error is corrected", () => {
    const book = newTokenBook();
    for (let n = 0; n < 19; n += 1) learnTokens(book, "k", 100, 150, 40);
    expect(learnedTokens(book, "k", 200, undefined)).toBeNull();
    learnTokens(book, "k", 100, 150, 40);
    expect(learnedTokens(book, "k", 200, undefined)).toBe(340);
    expect(learnedTokens(book, "k", 200, 10)).toBe(310);
    expect(learnedOutTokens(book, "k")).toBeCloseTo(40);
  });

  test("nonsense is not learned, and a tag a call doesn't fill the memory", () => {
    const book = newTokenBook();
    for (const [actualIn, actualOut] of [
      [Number.NaN, 1],
      [-1, 1],
      [1, Infinity],
    ] as const) {
      learnTokens(book, "k", 1, actualIn, actualOut);
    }
    expect(book.get("k")).toBeUndefined();
    for (let n = 0; n < 10_000; n += 1) learnTokens(book, `tag-${n}`, 1, 1, 1);
    expect(book.get(`tag-${10_000 - MOST_TOKEN_RECORDS - 1}`)).toBeUndefined();
    expect(book.get(`tag-${10_000 - MOST_TOKEN_RECORDS}`)).toBeDefined();
    expect(book.get("tag-9999")).toBeDefined();
  });
});

describe("fairness", () => {
  const wants = (priority: number) => [{ priority } as never];
  const refused = [{ kind: "gate" } as never];

  test("who is more than the lead ahead of a waiting one yields; alone nobody does", () => {
    const book: WorkerBook = new Map();
    const a = visit(book, "a", 0);
    expect(mustYield(book, a, 0, false, 0)).toBe(false);
    const b = visit(book, "b", 0);
    a.virtualTime = 1_000;
    expect(mustYield(book, a, 0, false, 0)).toBe(false);
    noteWaiting(b, wants(0), refused);
    expect(mustYield(book, a, 0, false, 0)).toBe(true);
    expect(mustYield(book, b, 0, false, 0)).toBe(false);
    expect(mustYield(book, a, 0, false, 1_501)).toBe(false);
    a.virtualTime = b.virtualTime + LEAD;
    expect(mustYield(book, a, 0, false, 0)).toBe(false);
  });

  test("processes that are gone are forgotten when others come", () => {
    const book: WorkerBook = new Map();
    for (let n = 0; n < 1_000; n += 1) visit(book, `worker-${n}`, n * 1_000);
    expect(book.size).toBeLessThanOrEqual(17);
    expect(book.has("worker-999")).toBe(true);
  });

  test("who was away does not catch up in one go", () => {
    const book: WorkerBook = new Map();
    const busy = visit(book, "busy", 0);
    busy.virtualTime = 500;
    noteWaiting(busy, wants(0), refused);
    expect(visit(book, "back", 100).virtualTime).toBe(500);
  });

  test("while nobody waits, who comes new begins where the others are", () => {
    const book: WorkerBook = new Map();
    visit(book, "old", 0).virtualTime = 500;
    expect(visit(book, "new", 100).virtualTime).toBe(500);
    // Forgotten when it has been silent for long.
    visit(book, "third", 20_000);
    expect([...book.keys()]).toEqual(["third"]);
  });

  test("the next in line is the most urgent, then the one least served; silent ones are passed over", () => {
    const book: WorkerBook = new Map();
    for (const [name, virtualTime, priority, at] of [
      ["a", 10, 0, 1_000],
      ["b", 5, 0, 1_000],
      ["c", 1, 3, 1_000],
      ["d", 0, 0, 0],
    ] as const) {
      const worker = visit(book, name, at);
      noteWaiting(worker, wants(priority), refused);
      worker.virtualTime = virtualTime;
      worker.lastVisitMs = at;
    }
    expect(nextInLine(book, null, false, 2_000)).toBe("b");
    expect(nextInLine(book, null, true, 2_000)).toBe("c");
    expect(nextInLine(book, book.get("b")!, false, 2_000)).toBe("a");
    expect(rankOf(book, book.get("a")!, 2_000)).toBe(2);
  });
});
