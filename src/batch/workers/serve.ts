import type { LineCall } from "../kinds/kinds.js";
import type { BatchClient } from "../types.js";
import type { FromWorker, ToWorker } from "./messages.js";
import { toWire } from "./wire-error.js";

/** What a worker process does with its messages, once it has a client. */
export interface Serving {
  receive(message: Exclude<ToWorker, { kind: "setup" }>): void;
  /** Cancels every call: nobody waits for them any more. */
  abort(reason: Error): void;
}

export function serveCalls(
  client: Pick<BatchClient, "call" | "snapshot" | "leases">,
  put: (message: FromWorker) => void,
  onEnd: () => void,
): Serving {
  const calls = new Map<number, AbortController>();

  async function make(id: number, call: LineCall): Promise<void> {
    const controller = new AbortController();
    calls.set(id, controller);
    try {
      put({ kind: "answer", id, answer: await client.call(call, controller.signal) });
    } catch (error) {
      put({ kind: "failure", id, error: toWire(error) });
    } finally {
      calls.delete(id);
    }
  }

  async function tellState(): Promise<void> {
    try {
      const snapshot = await client.snapshot();
      put({ kind: "state", snapshot, live: (await client.leases()).live });
    } catch (error) {
      put({ kind: "state", snapshot: null, trouble: toWire(error), live: (await client.leases()).live });
    }
  }

  return {
    receive(message) {
      if (message.kind === "call") void make(message.id, message.call);
      else if (message.kind === "cancel") calls.get(message.id)?.abort(new Error("the batch was stopped"));
      else if (message.kind === "ask") void tellState();
      else onEnd();
    },
    abort(reason) {
      for (const controller of calls.values()) controller.abort(reason);
    },
  };
}
