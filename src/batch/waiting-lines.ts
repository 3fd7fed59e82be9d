/** A line put back in the queue. Bounded by its user: see `MAX_WAITING_LINES`. */
export interface WaitingLine<Line> {
  readonly line: Line;
  /** Its size, for the memory bound. */
  readonly chars: number;
  /** Never tried before this moment. */
  readonly notBeforeMs: number;
  /** When it is due by itself. */
  dueMs: number;
  /** Put back because of an outage: due as soon as some call succeeds. */
  readonly outage: boolean;
}

/** Above this no new line is read until some of them are done. */
export const MAX_WAITING_LINES = 1_000;
export const MAX_WAITING_CHARS = 64 * 1024 * 1024;

/** By due time, then by arrival. */
export interface WaitingLines<Line> {
  readonly size: number;
  readonly chars: number;
  /** undefined when nothing waits. */
  readonly nextDueMs: number | undefined;
  add(entry: WaitingLine<Line>): void;
  takeDue(nowMs: number): Line | undefined;
  /** A call succeeded: what waits for the end of an outage is due at its earliest moment. */
  endOutage(): void;
  every(test: (line: Line) => boolean): boolean;
}

export function createWaitingLines<Line>(): WaitingLines<Line> {
  // At most MAX_WAITING_LINES and rarely more than a few: a sorted list is short enough and plainly stable.
  const entries: WaitingLine<Line>[] = [];
  let chars = 0;

  return {
    get size() {
      return entries.length;
    },
    get nextDueMs() {
      return entries[0]?.dueMs;
    },
    get chars() {
      return chars;
    },
    add(entry) {
      let at = entries.length;
      while (at > 0 && entries[at - 1]!.dueMs > entry.dueMs) at--;
      entries.splice(at, 0, entry);
      chars += entry.chars;
    },
    takeDue(nowMs) {
      const first = entries[0];
      if (first === undefined || first.dueMs > nowMs) return undefined;
      entries.shift();
      chars -= first.chars;
      return first.line;
    },
    endOutage() {
      for (const entry of entries) if (entry.outage) entry.dueMs = entry.notBeforeMs;
      entries.sort((a, b) => a.dueMs - b.dueMs);
    },
    every: (test) => entries.every(({ line }) => test(line)),
  };
}
