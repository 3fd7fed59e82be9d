import { expect } from "vitest";
import { EmbeddingClient, type EmbedResult, type SourceOptions } from "../../src/index.js";
import { createMemoryRecorder, type MemoryRecorder } from "../../src/testing/memory-recorder.js";
import { checkFailure } from "./case-check.js";
import type { CaseExpectation, UpstreamCase } from "./case-records.js";

/** Records of the family `embeddings`, through the public client. */

export const isEmbeddingCase = ({ request }: UpstreamCase): boolean => request.path.endsWith("/embeddings");

export interface EmbeddingCase {
  readonly client: EmbeddingClient;
  readonly recorder: MemoryRecorder;
}

export function embeddingClient(record: UpstreamCase, source: SourceOptions): EmbeddingCase {
  const { body, clientOptions = {} } = record.request;
  const recorder = createMemoryRecorder();
  const client = new EmbeddingClient({
    scope: "EMBED",
    sources: [{ ...source, model: String(body.model) }],
    batchSize: body.input!.length,
    telemetry: recorder,
    proxyEnv: {},
    retry: { maxAttempts: (clientOptions.retries ?? 0) + 1 },
  });
  return { client, recorder };
}

export interface Embedded {
  readonly result?: EmbedResult;
  readonly error?: unknown;
}

export async function embedCase(client: EmbeddingClient, { request }: UpstreamCase): Promise<Embedded> {
  const { input, dimensions } = request.body;
  try {
    return { result: await client.embed(input!, dimensions === undefined ? {} : { dimensions }) };
  } catch (error) {
    return { error };
  }
}

export function checkEmbedded({ result, error }: Embedded, expected: CaseExpectation): void {
  if (expected.outcome !== "ok") {
    expect(result).toBeUndefined();
    checkFailure({ way: "chat", error, events: [] }, expected);
    return;
  }
  if (result === undefined) throw error;
  expect(result.vectors).toEqual(expected.embeddings);
  expect(result.dim).toBe(expected.embeddings![0]!.length);
  expect(result).toMatchObject({ promptTokens: 3, usageSource: "measured", sourceName: "s_1" });
}
