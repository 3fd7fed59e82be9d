import { readFileSync } from "node:fs";
import type { SimulatedProvider } from "../../src/testing/provider/server.js";

/** What `polygateway embed` writes, and what belongs there. */

export interface VectorLine {
  readonly id: string;
  readonly index: number;
  readonly embedding: number[] | string | null;
  readonly call_id?: string;
  readonly error?: { readonly code: string; readonly message: string; readonly class: string };
}

/** Every line of OUT; a torn last line is an error here. */
export function readVectorLines(path: string): VectorLine[] {
  const lines = readFileSync(path, "utf8").split("\n");
  if (lines.pop() !== "") throw new Error(`${path} ends within a line`);
  return lines.map((line) => JSON.parse(line) as VectorLine);
}

/** The vectors of the simulated provider, asked for without the gateway; again where it answers with one of its faults. */
export async function vectorsOf(
  provider: Pick<SimulatedProvider, "baseUrl">,
  texts: readonly string[],
  dimensions?: number,
): Promise<number[][]> {
  const response = await fetch(`${provider.baseUrl}/embeddings`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "m", input: texts, ...(dimensions === undefined ? {} : { dimensions }) }),
  });
  if (!response.ok) {
    await response.body?.cancel();
    return vectorsOf(provider, texts, dimensions);
  }
  const { data } = (await response.json()) as { data: { embedding: number[] }[] };
  return data.map(({ embedding }) => embedding);
}

/** The keys of a scope for embeddings with one source. */
export function embeddingEnv(baseUrl: string, more: Record<string, string> = {}): Record<string, string> {
  return {
    EMBED__BATCH_SIZE: "10",
    EMBED__SIM__1__BASE_URL: baseUrl,
    EMBED__SIM__1__API_KEY: "sk-test-0123456789abcdef",
    EMBED__SIM__1__MODEL: "sim-embed",
    ...more,
  };
}
