import {
  type ChatRequest,
  GatewayClient,
  type GatewayOptions,
  type Runtime,
  type SourceOptions,
} from "../../src/index.js";
import { createMemoryRecorder, type MemoryRecorder } from "../../src/testing/memory-recorder.js";
import type { CaseOptions, CaseRequest, Fields } from "./case-records.js";

/** How a record's words map to the public options (see the README beside the records). */

const DEFAULT_TIMEOUT_MS = 120_000;
/** For records that bound the wall time: no timer may end the attempt, so only the event itself can. */
const OUT_OF_REACH_MS = 3_600_000;

export function timeoutsOf(options: CaseOptions, outOfReach = false) {
  if (outOfReach) {
    return { timeoutMs: OUT_OF_REACH_MS, ttftTimeoutMs: OUT_OF_REACH_MS, interTokenTimeoutMs: OUT_OF_REACH_MS };
  }
  const { idleTimeoutMs = 30_000, firstTokenTimeoutMs = 60_000, totalTimeoutMs } = options;
  const timeoutMs = totalTimeoutMs ?? Math.max(DEFAULT_TIMEOUT_MS, idleTimeoutMs, firstTokenTimeoutMs);
  return {
    timeoutMs,
    ttftTimeoutMs: Math.min(firstTokenTimeoutMs, timeoutMs),
    interTokenTimeoutMs: Math.min(idleTimeoutMs, timeoutMs),
  };
}

/** Fields that have an option of their own; everything else of a record's body passes through as it stands. */
const OWN_FIELDS = new Set([
  "model",
  "messages",
  "stream",
  "tools",
  "tool_choice",
  "response_format",
  "n",
  "max_tokens",
]);

export function requestOf({ body }: CaseRequest): ChatRequest {
  const extraBody: Fields = Object.fromEntries(Object.entries(body).filter(([name]) => !OWN_FIELDS.has(name)));
  const sampling = {
    ...(body.n === undefined ? {} : { n: body.n as number }),
    ...(body.max_tokens === undefined ? {} : { maxTokens: body.max_tokens as number }),
  };
  return {
    messages: body.messages,
    stream: body.stream === true,
    ...(Object.keys(sampling).length === 0 ? {} : { sampling }),
    ...(body.tools === undefined ? {} : { tools: body.tools as unknown[] }),
    ...(body.response_format === undefined ? {} : { responseFormat: body.response_format }),
    ...(Object.keys(extraBody).length === 0 ? {} : { extraBody }),
  };
}

export interface CaseClient {
  readonly client: GatewayClient;
  readonly recorder: MemoryRecorder;
}

export const CANARY_KEY = "sk-canary-1f7c0d2e9b";

export function sourceOf(name: string, baseUrl: string, more: Partial<SourceOptions> = {}): SourceOptions {
  return { name, baseUrl, apiKey: CANARY_KEY, model: "m-test", ...more };
}

export function caseClient(
  sources: readonly SourceOptions[],
  options: Partial<GatewayOptions> & { readonly runtime?: Runtime } = {},
): CaseClient {
  const recorder = createMemoryRecorder();
  const longestTtftMs = Math.max(...sources.map((source) => source.ttftTimeoutMs ?? 60_000));
  const client = new GatewayClient({
    scope: "LLM",
    sources,
    telemetry: recorder,
    proxyEnv: {},
    backpressure: { stallWindowMs: Math.max(300_000, longestTtftMs) },
    ...options,
  });
  return { client, recorder };
}
