import { askLine, isEmbeddingResponse, type LineRequest, type LineResponse } from "../ask.js";
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
  client: Pick<BatchClient, "chat" | "embed" | "snapshot" | "leases">,
  put: (message: FromWorker) => void,
  onEnd: () => void,
): Serving {
  const calls = new Map<number, AbortController>();

  async function call(id: number, request: LineRequest): Promise<void> {
    const controller = new AbortController();
    calls.set(id, controller);
    try {
      const response = await askLine(client, { ...request, signal: controller.signal });
      put({ kind: "answer", id, response: written(response) });
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
      if (message.kind === "call") void call(message.id, message.request);
      else if (message.kind === "cancel") calls.get(message.id)?.abort(new Error("the batch was stopped"));
      else if (message.kind === "ask") void tellState();
      else onEnd();
    },
    abort(reason) {
      for (const controller of calls.values()) controller.abort(reason);
    },
  };
}

/** What no line of OUT holds stays here: it may be as large as the answer itself. */
function written(answer: LineResponse): LineResponse {
  if (isEmbeddingResponse(answer)) return answer;
  const { parsed: _, ...response } = answer;
  return response;
}
