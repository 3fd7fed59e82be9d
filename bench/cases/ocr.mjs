// The layout of a document of about 250 pages in one reply of 3.5 MB: parseLayout() against the bare client that parses
// the same reply, and how long the event loop is held at most while such replies are read.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { OcrClient } from "polygateway";
import { bareLayout } from "../baselines.mjs";
import { noopRecorder } from "../gateway.mjs";
import { compare } from "../measure.mjs";

/** Told by its first bytes; of a document so short no more pages would be believed. */
const DOCUMENT = Buffer.from(`%PDF-1.7\n${" ".repeat(8_192)}`);

export async function ocrCases({ origin, scale }) {
  const bare = bareLayout(origin, DOCUMENT);
  const client = new OcrClient({
    scope: "BENCH",
    sources: [
      {
        name: "bench_1",
        baseUrl: `${origin}/ocr`,
        apiKey: "sk-bench-0123456789abcdef",
        model: "m",
        transport: "mineru",
        maxConcurrency: 1_000,
        rpm: 100_000_000,
      },
    ],
    telemetry: noopRecorder,
    proxyEnv: {},
  });
  const op = async () => {
    const { elements, droppedElements } = await client.parseLayout(DOCUMENT);
    if (elements.length === 0 || droppedElements > 0) throw new Error("wrong layout");
  };
  const held = monitorEventLoopDelay({ resolution: 1 });
  try {
    const results = await compare(
      [
        { name: "undici Pool.request + JSON.parse", op: bare.op },
        { name: "parseLayout()", op },
      ],
      { count: Math.max(5, Math.round(30 * scale)), concurrency: 1, warmup: 5 },
    );
    held.enable();
    for (let calls = 0; calls < 10; calls += 1) await op();
    held.disable();
    const [base, ours] = results;
    const what = "parseLayout() of a reply of 3.5 MB";
    return [
      { id: "ocr", what: `${what}: CPU × undici + JSON.parse`, value: ours.cpuRatio, goal: 3 },
      { id: "—", what: `${what}: CPU of a call`, value: ours.cpuUs / 1_000, goal: null, unit: "ms" },
      { id: "—", what: "the same with undici + JSON.parse", value: base.cpuUs / 1_000, goal: null, unit: "ms" },
      { id: "—", what: `${what}: the event loop is held at most`, value: held.max / 1e6, goal: null, unit: "ms" },
    ];
  } finally {
    await client.close();
    await bare.close();
  }
}
