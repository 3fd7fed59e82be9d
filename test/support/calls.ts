import {
  AllSourcesExhausted,
  type ChatEvent,
  type ChatRequest,
  type ChatResponse,
  type GatewayClient,
  type PolyGatewayError,
} from "../../src/index.js";

/** The two public ways to make a chat call, with everything that the caller gets to see of it. */

export type Way = "chat" | "stream";

export interface Called {
  readonly way: Way;
  readonly reply?: ChatResponse;
  readonly error?: unknown;
  /** What a consumer of the stream was handed, in order. */
  readonly events: readonly ChatEvent[];
}

export async function call(client: GatewayClient, way: Way, request: ChatRequest): Promise<Called> {
  if (way === "chat") return callPlain(client, request);
  const events: ChatEvent[] = [];
  const stream = client.stream(request);
  try {
    for await (const event of stream) events.push(event);
    return { way, reply: await stream.final, events };
  } catch (error) {
    return { way, error, events };
  }
}

async function callPlain(client: GatewayClient, request: ChatRequest): Promise<Called> {
  try {
    return { way: "chat", reply: await client.chat(request), events: [] };
  } catch (error) {
    return { way: "chat", error, events: [] };
  }
}

/** The answer, or the error thrown again so that a test shows it. */
export function replyOf(called: Called): ChatResponse {
  if (called.reply === undefined) throw called.error;
  return called.reply;
}

/** The class of the attempt itself: what can be waited for arrives as the cause of AllSourcesExhausted. */
export function attemptErrorOf({ error, reply }: Called): PolyGatewayError {
  if (reply !== undefined) throw new Error(`expected a failure, got the answer ${JSON.stringify(reply.content)}`);
  return attemptErrorIn(error);
}

export function attemptErrorIn(error: unknown): PolyGatewayError {
  if (AllSourcesExhausted.isInstance(error) && error.cause !== undefined) return error.cause as PolyGatewayError;
  return error as PolyGatewayError;
}

/** Content that the consumer was handed; usage and finish are told at the very end. */
export function contentEvents(events: readonly ChatEvent[]): ChatEvent[] {
  return events.filter((event) => event.type !== "usage" && event.type !== "finish");
}

export function joinedText(events: readonly ChatEvent[], type: "text-delta" | "thinking-delta"): string {
  return events.map((event) => (event.type === type ? event.text : "")).join("");
}

/** Turns until something has happened; the test's own timeout is the only limit. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}
