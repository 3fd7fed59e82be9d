import type { ClientKind } from "../config/client-kind.js";
import type { EnvInspection } from "../config/env.js";
import type { EmbeddingOptions, GatewayOptions, OcrOptions } from "../config/options.js";
import type { ScopeConfig } from "../domain/scope.js";
import { GatewayUnavailableError, PolyGatewayError, ResultInvalidError } from "../errors.js";
import { OcrClient } from "../gateway/ocr-client.js";
import { EmbeddingClient, GatewayClient } from "../gateway.js";
import { formatDuration } from "./format.js";

/** What one source said to one tiny question. */
export interface LiveAnswer {
  readonly source: string;
  readonly ok: boolean;
  /** The model the provider says it used; null = it didn't say. */
  readonly modelReported: string | null;
  readonly latencyMs: number | null;
  /** Why it didn't answer, or what was odd about the answer. */
  readonly remark: string | null;
}

const QUESTION = [{ role: "user", content: "Reply with the word ok." }];
/** Room for a short thought: reasoning models spend tokens before the first visible word. */
const MAX_TOKENS = 64;
const LONGEST_MS = 60_000;

/** Asks each enabled source once, side by side, each through a client that knows this source alone. */
export async function askSources(
  { options, client }: EnvInspection,
  config: ScopeConfig,
  signal: AbortSignal,
): Promise<LiveAnswer[]> {
  const ask = QUESTIONS[client];
  const of = (name: string): EnvInspection["options"] => ({
    ...options,
    sources: options.sources.filter((source) => source.name === name),
    retry: { ...options.retry, maxAttempts: 1 },
    telemetry: "none",
  });
  return Promise.all(config.sources.map(({ name }) => askSource(name, () => ask(of(name), name, signal), signal)));
}

type Ask = (options: GatewayOptions, source: string, signal: AbortSignal) => Promise<LiveAnswer>;

const QUESTIONS: Readonly<Record<ClientKind, Ask>> = {
  chat: askForText,
  embedding: askForVector,
  ocr: askForHealth,
};

async function askSource(name: string, ask: () => Promise<LiveAnswer>, signal: AbortSignal): Promise<LiveAnswer> {
  try {
    return await ask();
  } catch (error) {
    if (signal.aborted) throw error;
    return unanswered(name, error);
  }
}

async function askForText(options: GatewayOptions, source: string, signal: AbortSignal): Promise<LiveAnswer> {
  await using client = new GatewayClient(options);
  const request = { messages: QUESTION, sampling: { maxTokens: MAX_TOKENS }, deadlineMs: LONGEST_MS, signal };
  const { modelReported, latencyMs } = await client.chat(request);
  return { source, ok: true, modelReported, latencyMs, remark: null };
}

async function askForVector(options: GatewayOptions, source: string, signal: AbortSignal): Promise<LiveAnswer> {
  // Read as the options of an embedding client, so they have its fields too.
  await using client = new EmbeddingClient(options as GatewayOptions & EmbeddingOptions);
  const { dim, latencyMs = 0 } = await client.embed(["ok"], { deadlineMs: LONGEST_MS, signal });
  const remark = `answered in ${formatDuration(latencyMs)} with a vector of ${dim} dimensions`;
  return { source, ok: true, modelReported: null, latencyMs, remark };
}

/** A page takes an OCR server long: it is asked how it is, and reads nothing (spec 08). */
async function askForHealth(options: GatewayOptions, source: string, signal: AbortSignal): Promise<LiveAnswer> {
  await using client = new OcrClient(options as GatewayOptions & OcrOptions);
  const health = (await client.checkHealth({ signal }))[source];
  const { ok = false, latencyMs = null, detail = "did not answer" } = health ?? {};
  signal.throwIfAborted();
  return { source, ok, modelReported: null, latencyMs, remark: detail };
}

function unanswered(source: string, error: unknown): LiveAnswer {
  const blank = { source, modelReported: null, latencyMs: null };
  const isCutShort = error instanceof ResultInvalidError && error.code === "truncated";
  if (isCutShort) return { ...blank, ok: true, remark: "answers, but spent the few tokens of this check on thinking" };
  const reason = error instanceof GatewayUnavailableError && error.cause !== undefined ? error.cause : error;
  if (!(reason instanceof PolyGatewayError) && !(error instanceof PolyGatewayError)) throw error;
  return { ...blank, ok: false, remark: reason instanceof Error ? reason.message : String(reason) };
}
