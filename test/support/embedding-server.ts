import type { ServerResponse } from "node:http";
import { EmbeddingClient, type EmbeddingOptions, type SourceOptions } from "../../src/index.js";
import { createMemoryRecorder, type MemoryRecorder } from "../../src/testing/memory-recorder.js";
import { type RecordingServer, type SeenRequest, sendJson, startRecordingServer } from "./recording-server.js";

/** An embedding server for tests: the vector of a text is told by the text, so that a mix-up is seen. */

export const CANARY_KEY = "sk-canary-embedding-77aa";

/** Width 3; every text of digits has a vector of its own. */
export const vectorOf = (text: string): number[] => [Number(text.replace(/\D/g, "") || 0), text.length, 0.5];

export function base64Of(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [at, number] of vector.entries()) bytes.writeFloatLE(number, at * 4);
  return bytes.toString("base64");
}

export const inputOf = ({ body }: SeenRequest): string[] => body.input as string[];

export interface AnswerForm {
  readonly vectorOf?: (text: string) => unknown;
  readonly usage?: unknown;
  readonly order?: (items: unknown[]) => unknown[];
}

export function embeddingBody(texts: readonly string[], form: AnswerForm = {}): string {
  const { vectorOf: make = vectorOf, order = (items) => items } = form;
  const usage = "usage" in form ? form.usage : { prompt_tokens: texts.length, total_tokens: texts.length };
  const data = texts.map((text, index) => ({ object: "embedding", index, embedding: make(text) }));
  return JSON.stringify({ object: "list", model: "e-reported", data: order(data), usage });
}

export const embeds =
  (form: AnswerForm = {}) =>
  (response: ServerResponse, request: SeenRequest): void =>
    sendJson(response, 200, embeddingBody(inputOf(request), form));

export const answers =
  (body: string, status = 200) =>
  (response: ServerResponse) =>
    sendJson(response, status, body);

export interface Bench {
  readonly server: RecordingServer;
  readonly client: EmbeddingClient;
  readonly recorder: MemoryRecorder;
  [Symbol.asyncDispose](): Promise<void>;
}

export type BenchOptions = Partial<EmbeddingOptions> & { readonly source?: Partial<SourceOptions> };

export async function bench(
  respond: Parameters<typeof startRecordingServer>[0] = embeds(),
  { source, ...options }: BenchOptions = {},
): Promise<Bench> {
  const server = await startRecordingServer(respond);
  const recorder = createMemoryRecorder();
  const client = new EmbeddingClient({
    scope: "EMBED",
    sources: [{ name: "e_1", baseUrl: server.baseUrl, apiKey: CANARY_KEY, model: "e-test", ...source }],
    batchSize: 100,
    telemetry: recorder,
    retry: { maxAttempts: 1 },
    proxyEnv: {},
    ...options,
  });
  return {
    server,
    client,
    recorder,
    async [Symbol.asyncDispose]() {
      await client.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** The error a promise rejects with; fails when it resolves. */
export async function failureOf(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
  } catch (error) {
    return error;
  }
  throw new Error("expected a rejection");
}
