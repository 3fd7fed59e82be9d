// Our side of the comparisons: the public client as a user would make it, every gate and the breaker on.
import { GatewayClient } from "polygateway";
import { messages } from "./baselines.mjs";

// Like the built-in recorders it would render rows when it writes them, off the call path; it never writes.
export const noopRecorder = {
  name: "noop",
  recordLate: () => undefined,
  onProblem: () => () => {},
  open: () => undefined,
  record: () => undefined,
  flush: async () => {},
  close: async () => {},
  stats: () => ({ written: 0, queued: 0, dropped: 0 }),
};

export function governedClient(origin, path, options = {}, source = {}) {
  return new GatewayClient({
    scope: "BENCH",
    sources: [
      {
        name: "bench_1",
        baseUrl: `${origin}/${path}`,
        apiKey: "sk-bench-0123456789abcdef",
        model: "m",
        maxConcurrency: 1_000,
        rpm: 100_000_000,
        tpm: 1_000_000_000,
        ...source,
      },
    ],
    global: { maxConcurrency: 2_000, rpm: 100_000_000 },
    telemetry: noopRecorder,
    proxyEnv: {},
    ...options,
  });
}

const sampling = { temperature: 0, maxTokens: 500 };

export const chatOp = (client, stream) => async () => {
  const reply = await client.chat({ messages, sampling, stream });
  if (reply.content.length === 0) throw new Error("empty");
};

export const streamOp = (client) => async () => {
  let text = "";
  for await (const event of client.stream({ messages, sampling })) if (event.type === "text-delta") text += event.text;
  if (text.length === 0) throw new Error("empty");
};

/** What a transport that answers at once answers. */
export const completion = {
  content: "x",
  thinking: "",
  toolCalls: [],
  finishReason: "stop",
  rawFinishReason: "stop",
  usage: {
    promptTokens: 1,
    completionTokens: 1,
    totalTokens: 2,
    reasoningTokens: null,
    cachedPromptTokens: null,
    source: "measured",
  },
  modelReported: "m",
  statusCode: 200,
  latencyMs: 1,
  ttftMs: null,
};

export const nullTransport = {
  complete(attempt) {
    attempt.context.markSent();
    return Promise.resolve(completion);
  },
  close: async () => {},
};
