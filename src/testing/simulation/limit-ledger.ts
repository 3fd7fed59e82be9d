import type { LimitConfig } from "../../domain/source.js";
import type { Grant, Settle } from "../../domain/tick.js";

/** Limits a minute of one source, as it was configured. */
export type MinuteLimits = Pick<LimitConfig, "rpm" | "tpm" | "limitRule" | "strict">;

interface Booked {
  readonly startMs: number;
  tokens: number;
}

/**
 * The observer's own book of what was let through a minute: a list of starts, and none of the formulas that decide.
 * `smooth` promises at most `rpm` starts in any 60 s, `window` at most `rpm` and `tpm` in each minute of the clock. Tokens
 * under `smooth` are paid back later than they were used, and have no such plain sum.
 */
export interface LimitLedger {
  /** Books a permit; says what it broke, in words. */
  add(grant: Grant, nowMs: number): readonly string[];
  settle(settle: Settle, nowMs: number): void;
  clear(): void;
}

const MINUTE_MS = 60_000;

export function createLimitLedger(limitsOf: (source: string) => MinuteLimits | undefined): LimitLedger {
  const booked = new Map<string, Map<string, Booked>>();

  /** Those of the last minutes; older ones are forgotten. */
  function bookOf(source: string, nowMs: number): Map<string, Booked> {
    let book = booked.get(source);
    if (book === undefined) {
      book = new Map();
      booked.set(source, book);
    }
    for (const [leaseId, { startMs }] of book) {
      if (startMs > nowMs - 2 * MINUTE_MS) break;
      book.delete(leaseId);
    }
    return book;
  }

  return {
    add({ leaseId, source, startInMs, reservedTokens }, nowMs) {
      const limits = limitsOf(source);
      if (limits === undefined) return [];
      const startMs = nowMs + startInMs;
      const book = bookOf(source, nowMs);
      book.set(leaseId, { startMs, tokens: reservedTokens });
      return broken(source, limits, book, startMs);
    },
    settle({ leaseId, source, sent, actualTokens }, nowMs) {
      const own = booked.get(source)?.get(leaseId);
      if (own === undefined) return;
      if (!sent) booked.get(source)?.delete(leaseId);
      // A minute that is over can't be given anything back.
      else if (minuteOf(own.startMs) === minuteOf(nowMs)) own.tokens = actualTokens ?? own.tokens;
    },
    clear: () => booked.clear(),
  };
}

/** Virtual time begins with a minute of the wall clock. */
function minuteOf(atMs: number): number {
  return Math.floor(atMs / MINUTE_MS);
}

function broken(source: string, limits: MinuteLimits, book: ReadonlyMap<string, Booked>, startMs: number): string[] {
  const { rpm, tpm, limitRule, strict } = limits;
  const isWindow = limitRule === "window";
  let requests = 0;
  let tokens = 0;
  for (const other of book.values()) {
    const counts = isWindow
      ? minuteOf(other.startMs) === minuteOf(startMs)
      : other.startMs > startMs - MINUTE_MS && other.startMs <= startMs;
    if (!counts) continue;
    requests += 1;
    tokens += other.tokens;
  }
  const found: string[] = [];
  if (rpm > 0 && (isWindow || strict) && requests > rpm)
    found.push(`${source} got ${requests} starts in a minute of ${rpm}`);
  if (tpm > 0 && isWindow && tokens > tpm) found.push(`${source} got ${tokens} tokens in a minute of ${tpm}`);
  return found;
}
