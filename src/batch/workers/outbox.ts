/** Messages to another process. What comes in one turn, or while others are being written, goes together. */
export interface Outbox<Message> {
  put(message: Message): void;
}

/**
 * At most one write is under way, so that a reader that stands still fills this list, which its user bounds, and not a
 * pipe. After a failed write nothing is sent any more: the reader is gone, and its end is told elsewhere.
 */
export function createOutbox<Message>(
  write: (messages: readonly Message[], written: (error: Error | null) => void) => void,
): Outbox<Message> {
  let waiting: Message[] = [];
  let writing = false;
  let broken = false;

  function writeNext(): void {
    writing = waiting.length > 0;
    if (!writing) return;
    const messages = waiting;
    waiting = [];
    write(messages, (error) => {
      broken ||= error !== null;
      if (broken) waiting = [];
      else writeNext();
    });
  }

  return {
    put(message) {
      if (broken) return;
      waiting.push(message);
      if (writing) return;
      writing = true;
      // Each write wakes the reader: with calls of a few milliseconds that is what costs most.
      setImmediate(writeNext);
    },
  };
}
