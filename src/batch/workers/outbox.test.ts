import { setImmediate as turn } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { createOutbox } from "./outbox.js";

describe("messages to another process", () => {
  it("go together when they come in one turn, or while others are being written", async () => {
    const writes: (readonly number[])[] = [];
    let written = (_error: Error | null): void => {};
    const outbox = createOutbox<number>((messages, done) => {
      writes.push(messages);
      written = done;
    });
    outbox.put(1);
    outbox.put(2);
    await turn();
    expect(writes).toEqual([[1, 2]]);
    outbox.put(3);
    await turn();
    outbox.put(4);
    expect(writes).toHaveLength(1);
    written(null);
    expect(writes).toEqual([
      [1, 2],
      [3, 4],
    ]);
    written(null);
    outbox.put(5);
    await turn();
    expect(writes).toHaveLength(3);
  });

  it("stop with the first write that fails", async () => {
    let writes = 0;
    const outbox = createOutbox<number>((_messages, done) => {
      writes++;
      done(new Error("the reader is gone"));
    });
    outbox.put(1);
    await turn();
    outbox.put(2);
    await turn();
    expect(writes).toBe(1);
  });
});
