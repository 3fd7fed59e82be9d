// G4: a consumer that iterates the events of a stream of 202, whole body at once and one event per read.
import { bareStream, openaiSdk } from "../baselines.mjs";
import { governedClient, streamOp } from "../gateway.mjs";
import { compare } from "../measure.mjs";

export async function streamCases({ origin, scale }) {
  const rows = [];
  const shapes = [
    { path: "burst", concurrency: 1, count: 600, goal: 1.5, stretch: 1.2 },
    { path: "burst", concurrency: 16, count: 1_000, goal: 1.5, stretch: 1.2 },
    { path: "paced", concurrency: 64, count: 192, goal: 1.2, stretch: 1.05, rounds: 5 },
  ];
  for (const { path, concurrency, count, goal, stretch, rounds } of shapes) {
    const bare = bareStream(origin, concurrency, path);
    const client = governedClient(origin, path);
    const openai = openaiSdk(origin, path);
    const [, ours, sdk] = await compare(
      [
        { name: "undici + line split + JSON.parse", op: bare.op },
        { name: "stream()", op: streamOp(client) },
        { name: "openai SDK stream", op: openai.streamOp },
      ],
      { count: Math.round(count * scale), concurrency, warmup: Math.min(64, count), ...(rounds ? { rounds } : {}) },
    );
    await bare.close();
    await client.close();
    rows.push(
      {
        id: "G4",
        what: `stream of 202 events, ${path}, c=${concurrency}: CPU × undici + line split + JSON.parse`,
        value: ours.cpuRatio,
        goal,
        must: true,
        stretch,
      },
      {
        id: "—",
        what: `openai SDK stream, ${path}, c=${concurrency}: CPU × the same`,
        value: sdk.cpuRatio,
        goal: null,
      },
    );
  }
  return rows;
}
