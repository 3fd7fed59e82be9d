// G1a–d and G2: one governed call against the bare client and the openai SDK.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SqliteRecorder } from "polygateway/sqlite";
import { bareDispatch, bareRequest, bareStream, openaiSdk } from "../baselines.mjs";
import { chatOp, governedClient } from "../gateway.mjs";
import { compare } from "../measure.mjs";

export async function chatCases({ origin, scale }) {
  const folder = mkdtempSync(join(tmpdir(), "pgw-bench-"));
  const rows = [];
  const clients = [];
  const make = (...args) => {
    const client = governedClient(origin, ...args);
    clients.push(client);
    return client;
  };
  try {
    for (const concurrency of [16, 128]) {
      const bare = bareRequest(origin, concurrency);
      const limit = bareDispatch(origin, concurrency);
      const recorder = new SqliteRecorder(join(folder, `async-${concurrency}.db`));
      const journaled = new SqliteRecorder(join(folder, `before-${concurrency}.db`));
      const openai = openaiSdk(origin, "json");
      const results = await compare(
        [
          { name: "undici Pool.request + JSON.parse", op: bare.op },
          { name: "chat(), no-op recorder", op: chatOp(make("json"), false) },
          {
            name: "chat(), SQLite, async journal",
            op: chatOp(make("json", { telemetry: recorder }), false),
            settle: () => recorder.flush(),
          },
          {
            name: "chat(), SQLite, before_send journal",
            op: chatOp(make("json", { telemetry: journaled, telemetryOptions: { journal: "before_send" } }), false),
            settle: () => journaled.flush(),
          },
          { name: "openai SDK", op: openai.op },
          { name: "undici dispatch, hand-written handler", op: limit.op },
        ],
        { count: Math.round(3_000 * scale), concurrency },
      );
      await bare.close();
      await limit.close();
      const [, noop, sqlite, before, sdk, dispatch] = results;
      rows.push(
        {
          id: "—",
          what: `the limit, undici dispatch by hand, c=${concurrency}: CPU × bare undici request`,
          value: dispatch.cpuRatio,
          goal: null,
        },
        {
          id: "G1a",
          what: `governed call, no-op recorder, c=${concurrency}: CPU × bare undici request`,
          value: noop.cpuRatio,
          goal: 1.1,
          must: true,
          stretch: 0.95,
        },
        {
          id: "G1b",
          what: `with SQLite (async journal), c=${concurrency}, all threads`,
          value: sqlite.cpuRatio,
          goal: 1.6,
          must: true,
        },
        {
          id: "G1b",
          what: `with SQLite (async journal), c=${concurrency}, main thread`,
          value: sqlite.mainRatio,
          goal: 1.15,
          must: true,
        },
        {
          id: "G1c",
          what: `with SQLite (before_send journal), c=${concurrency}, all threads`,
          value: before.cpuRatio,
          goal: null,
        },
        {
          id: "G2",
          what: `governed call ÷ openai SDK, c=${concurrency}: CPU`,
          value: noop.cpuUs / sdk.cpuUs,
          goal: 0.25,
          must: true,
          stretch: 1 / 6,
        },
        { id: "—", what: `openai SDK, c=${concurrency}: CPU × bare undici request`, value: sdk.cpuRatio, goal: null },
      );
    }
    rows.push(await streamedChat(origin, make, scale));
    return rows;
  } finally {
    await Promise.all(clients.map((client) => client.close()));
    rmSync(folder, { recursive: true, force: true });
  }
}

async function streamedChat(origin, make, scale) {
  const concurrency = 16;
  const bare = bareStream(origin, concurrency, "sse20");
  const [, ours] = await compare(
    [
      { name: "minimal SSE reader", op: bare.op },
      { name: "chat(), streamed", op: chatOp(make("sse20"), true) },
    ],
    { count: Math.round(3_000 * scale), concurrency },
  );
  await bare.close();
  return {
    id: "G1d",
    what: "default streamed chat() of 20 events, c=16: CPU × minimal SSE reader",
    value: ours.cpuRatio,
    goal: 1.25,
    must: true,
  };
}
