import { type EmbedResult, textName } from "../domain/embedding.js";
import { PolyGatewayError, ResultInvalidError } from "../errors.js";
import type { CancelTimer, Runtime } from "../ports/runtime.js";
import { type LineEmbedder, writtenVector } from "./kinds/embedding.js";
import type { EmbeddingLine, LineAnswer, LineCall } from "./kinds/kinds.js";
import type { BatchClient } from "./types.js";
import type { VectorWidth } from "./vector-width.js";

/** Texts of many lines in one request: each line is still asked for, answered and refused alone. */

export interface TextGroupsOptions {
  /** Texts per request. */
  readonly batchSize: number;
  /** Requests in flight at once. */
  readonly batches: number;
  readonly runtime: Pick<Runtime, "setTimer">;
  /** Of all vectors of OUT. */
  readonly width: VectorWidth;
}

/** A line with one text, of the same width and form as all others. */
interface WaitingText {
  readonly line: EmbeddingLine;
  readonly call: LineCall;
  readonly signal: AbortSignal;
  resolve(answer: LineAnswer): void;
  reject(error: unknown): void;
  /** Whoever asked has left. */
  isGone: boolean;
  onLeft: () => void;
}

/** So long a request that isn't full waits for the lines that are being read or written just now. */
const LINGER_MS = 30;

export function groupTexts(
  client: LineEmbedder,
  { batchSize, batches, runtime, width }: TextGroupsOptions,
): BatchClient["call"] {
  let waiting: WaitingText[] = [];
  let inFlight = 0;
  let cancelLinger: CancelTimer | undefined;

  function sendFull(): void {
    while (inFlight < batches && waiting.length >= batchSize) void send(waiting.splice(0, batchSize));
    if (waiting.length === 0 || inFlight >= batches) stopLingering();
    else cancelLinger ??= runtime.setTimer(LINGER_MS, sendRest);
  }

  function sendRest(): void {
    cancelLinger = undefined;
    if (waiting.length > 0 && inFlight < batches) void send(waiting.splice(0, batchSize));
  }

  function stopLingering(): void {
    cancelLinger?.();
    cancelLinger = undefined;
  }

  async function send(group: readonly WaitingText[]): Promise<void> {
    inFlight++;
    const controller = new AbortController();
    for (const text of group) {
      text.onLeft = () => {
        if (group.every(({ isGone }) => isGone)) controller.abort(text.signal.reason);
      };
    }
    const { line, call } = group[0]!;
    const { base64, dimensions } = line;
    // One row for all of them: by the first, what was paid for can be found again.
    const { sessionId, parentCallId } = call;
    const { signal } = controller;
    const wishes = {
      sessionId,
      parentCallId,
      signal,
      ...(dimensions === undefined ? {} : { dimensions }),
      ...(width.known === undefined ? {} : { expectedDim: width.known }),
    };
    try {
      const result = await client.embed(
        group.map((text) => text.line.texts[0]!),
        { ...wishes, vectors: base64 ? "float32" : "number", onBadItem: "skip" },
      );
      handOut(group, result, base64, width);
    } catch (error) {
      for (const text of group) text.reject(namingLine(error, group));
    } finally {
      inFlight--;
      sendFull();
    }
  }

  function admit(
    call: LineCall,
    signal: AbortSignal,
    resolve: WaitingText["resolve"],
    reject: WaitingText["reject"],
  ): void {
    const { request: line } = call;
    if (line.kind !== "embedding") throw new TypeError(`a line of kind ${line.kind} came to a client for embeddings`);
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const leave = (): void => {
      text.isGone = true;
      text.reject(signal.reason);
      text.onLeft();
    };
    const done = (): void => signal.removeEventListener("abort", leave);
    const text: WaitingText = {
      line,
      call,
      signal,
      resolve(answer) {
        done();
        resolve(answer);
      },
      reject(error) {
        done();
        reject(error);
      },
      isGone: false,
      onLeft() {
        waiting = waiting.filter((other) => other !== text);
        if (waiting.length === 0) stopLingering();
      },
    };
    signal.addEventListener("abort", leave, { once: true });
    waiting.push(text);
    sendFull();
  }

  return (call, signal) => new Promise((resolve, reject) => admit(call, signal, resolve, reject));
}

/** To each line its own vector or error, and its share of what the calls took. */
function handOut(
  group: readonly WaitingText[],
  { vectors, batches, failed = [], latencyMs = 0, dim }: EmbedResult<number[] | Float32Array | null>,
  base64: boolean,
  width: VectorWidth,
): void {
  for (const { index, error } of failed) group[index]?.reject(namingLine(error, group));
  for (const { from, count, callId, sourceName, cost, promptTokens, attempts } of batches) {
    const each = Math.floor(promptTokens / count);
    for (let at = 0; at < count; at++) {
      const text = group[from + at];
      // Requests that were sent before the first vector came don't know of its width.
      if (!width.admits(dim)) {
        text?.reject(otherWidth(sourceName, dim, width.known));
        continue;
      }
      const isFirst = at === 0;
      const tokens = isFirst ? promptTokens - each * (count - 1) : each;
      text?.resolve({
        callId,
        requestId: callId,
        sourceName,
        body: writtenVector(vectors[from + at]!, base64),
        usage: { totalTokens: tokens },
        // A send is counted once, whatever it carried.
        attempts: isFirst ? attempts : 0,
        cost: cost === null ? null : cost / count,
        latencyMs,
      });
    }
  }
}

function otherWidth(sourceName: string, dim: number, expected: number | undefined): ResultInvalidError {
  return new ResultInvalidError(
    `${sourceName} unusable result: vectors of ${dim} dimensions where ${expected} are expected; none was cut or filled up`,
    { code: "dimension_mismatch", sourceName, details: { dim, expected } },
  );
}

/** The place of a text in a request says nothing to people: they know their lines. */
function namingLine(error: unknown, group: readonly WaitingText[]): unknown {
  const index = PolyGatewayError.isInstance(error) ? error.details?.index : undefined;
  const line = typeof index === "number" ? group[index] : undefined;
  if (!PolyGatewayError.isInstance(error) || line === undefined) return error;
  const { parentCallId: id } = line.call;
  error.message = error.message.replace(textName(index as number), () => `the text ${JSON.stringify(id)}`);
  return error;
}
