// 100 texts with vectors of 1,024 floats in base64: a governed embed() against the bare client that parses the same reply.
import { EmbeddingClient } from "polygateway";
import { bareEmbeddings } from "../baselines.mjs";
import { noopRecorder } from "../gateway.mjs";
import { compare } from "../measure.mjs";

const TEXTS = Array.from(
  { length: 100 },
  (_, at) => `Text number ${at}: ${"what a token bucket does with a rate. ".repeat(4)}`,
);
const DIMENSIONS = 1_024;
const CONCURRENCY = 4;

export async function embeddingCases({ origin, scale }) {
  const bare = bareEmbeddings(origin, CONCURRENCY, TEXTS);
  const client = new EmbeddingClient({
    scope: "BENCH",
    sources: [
      {
        name: "bench_1",
        baseUrl: `${origin}/embed`,
        apiKey: "sk-bench-0123456789abcdef",
        model: "m",
        maxConcurrency: 1_000,
        rpm: 100_000_000,
        tpm: 1_000_000_000,
      },
    ],
    batchSize: TEXTS.length,
    telemetry: noopRecorder,
    proxyEnv: {},
  });
  const op = async () => {
    const { vectors, dim } = await client.embed(TEXTS, { vectors: "float32" });
    if (vectors.length !== TEXTS.length || dim !== DIMENSIONS) throw new Error("wrong vectors");
  };
  try {
    const results = await compare(
      [
        { name: "undici Pool.request + JSON.parse + base64", op: bare.op },
        { name: "embed()", op },
      ],
      { count: Math.max(20, Math.round(300 * scale)), concurrency: CONCURRENCY, warmup: 50 },
    );
    const [base, ours] = results;
    const what = "embed() of 100 texts, 1,024 floats each in base64";
    return [
      {
        id: "embed",
        what: `${what}: CPU × undici + JSON.parse + base64`,
        value: ours.cpuRatio,
        goal: 1.3,
        must: true,
      },
      { id: "—", what: `${what}: CPU of a call`, value: ours.cpuUs, goal: null, unit: "µs" },
      { id: "—", what: "the same with undici + JSON.parse + base64", value: base.cpuUs, goal: null, unit: "µs" },
    ];
  } finally {
    await client.close();
    await bare.close();
  }
}
