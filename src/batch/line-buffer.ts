import type { Feed, FeedLine } from "./feed.js";

/** The lines of one read, handed out one by one; the next read starts only when they are used up and one is wanted. */
export interface LineBuffer {
  /** true: the end of the input was reached and every line handed out. */
  readonly exhausted: boolean;
  /** undefined: none yet; a read is on its way and `onArrival` follows, unless the input is exhausted. */
  take(): FeedLine | undefined;
}

export function createLineBuffer(feed: Feed, onArrival: () => void, onError: (error: unknown) => void): LineBuffer {
  let lines: readonly FeedLine[] = [];
  let at = 0;
  let ended = false;
  let reading = false;

  async function read(): Promise<void> {
    reading = true;
    try {
      const next = await feed.next();
      ended = next === null;
      lines = next ?? [];
      at = 0;
    } catch (error) {
      // Stays "reading": an input that failed is neither read again nor at its end.
      return onError(error);
    }
    reading = false;
    onArrival();
  }

  return {
    get exhausted() {
      return ended && at >= lines.length;
    },
    take() {
      const line = lines[at];
      if (line !== undefined) at++;
      else if (!ended && !reading) void read();
      return line;
    },
  };
}
