import type { EnvInspection } from "../config/env.js";
import type { ScopeConfig } from "../domain/scope.js";
import { GatewayUnavailableError, PolyGatewayError, ResultInvalidError } from "../errors.js";
import { GatewayClient } from "../gateway.js";

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
  { options }: EnvInspection,
  config: ScopeConfig,
  signal: AbortSignal,
): Promise<LiveAnswer[]> {
  return Promise.all(config.sources.map(({ name }) => askSource(options, name, signal)));
}

async function askSource(options: EnvInspection["options"], name: string, signal: AbortSignal): Promise<LiveAnswer> {
  const client = new GatewayClient({
    ...options,
    sources: options.sources.filter((source) => source.name === name),
    retry: { ...options.retry, maxAttempts: 1 },
    telemetry: "none",
  });
  try {
    const request = { messages: QUESTION, sampling: { maxTokens: MAX_TOKENS }, deadlineMs: LONGEST_MS, signal };
    const { modelReported, latencyMs } = await client.chat(request);
    return { source: name, ok: true, modelReported, latencyMs, remark: null };
  } catch (error) {
    if (signal.aborted) throw error;
    return unanswered(name, error);
  } finally {
    await client.close();
  }
}

function unanswered(source: string, error: unknown): LiveAnswer {
  const blank = { source, modelReported: null, latencyMs: null };
  const isCutShort = error instanceof ResultInvalidError && error.code === "truncated";
  if (isCutShort) return { ...blank, ok: true, remark: "answers, but spent the few tokens of this check on thinking" };
  const reason = error instanceof GatewayUnavailableError && error.cause !== undefined ? error.cause : error;
  if (!(reason instanceof PolyGatewayError) && !(error instanceof PolyGatewayError)) throw error;
  return { ...blank, ok: false, remark: reason instanceof Error ? reason.message : String(reason) };
}
