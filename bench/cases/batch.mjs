// The batch engine on a large file against an instant provider: RSS over the file, and calls/s next to plain chat().
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SqliteRecorder } from "polygateway/sqlite";
import { chatOp, governedClient } from "../gateway.mjs";
import { median } from "../measure.mjs";

const CONCURRENCY = 64;

async function writeInput(path, lines) {
  const file = createWriteStream(path);
  for (let i = 0; i < lines; i += 1) {
    const line = JSON.stringify({
      custom_id: `line-${i}`,
      body: { messages: [{ role: "user", content: `Question number ${i}: how many?` }] },
    });
    if (!file.write(`${line}\n`)) await once(file, "drain");
  }
  file.end();
  await once(file, "finish");
}

function rssMb(pid) {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1_024;
  } catch {
    return 0;
  }
}

async function runBatch(cli, folder, origin, lines) {
  const input = join(folder, "in.jsonl");
  const output = join(folder, "out.jsonl");
  await writeInput(input, lines);
  const env = {
    ...process.env,
    LLM__BENCH__1__BASE_URL: `${origin}/json`,
    LLM__BENCH__1__API_KEY: "sk-bench-0123456789abcdef",
    LLM__BENCH__1__MODEL: "m",
    LLM__BENCH__1__STREAM: "off",
    PGW_JOURNAL: "off",
    PGW_TELEMETRY_DURABILITY: "async",
    PGW_TELEMETRY_SQLITE_PATH: join(folder, "batch.db"),
  };
  const start = performance.now();
  const child = spawn(
    process.execPath,
    [cli, "batch", input, "-o", output, "--concurrency", String(CONCURRENCY), "--quiet"],
    { env, stdio: ["ignore", "ignore", "inherit"] },
  );
  const samples = [];
  const timer = setInterval(() => samples.push(rssMb(child.pid)), 250);
  const [code] = await once(child, "exit");
  clearInterval(timer);
  if (code !== 0) throw new Error(`polygateway batch ended with ${code}`);
  const seconds = (performance.now() - start) / 1_000;
  return { perSecond: lines / seconds, samples: samples.filter((mb) => mb > 0) };
}

async function plainChat(folder, origin, count) {
  const recorder = new SqliteRecorder(join(folder, "chat.db"));
  const client = governedClient(origin, "json", { telemetry: recorder, telemetryOptions: { journal: "off" } });
  const op = chatOp(client, false);
  const run = async (total) => {
    let left = total;
    await Promise.all(
      Array.from({ length: CONCURRENCY }, async () => {
        while (left-- > 0) await op();
      }),
    );
  };
  await run(2_000);
  const start = performance.now();
  await run(count);
  const perSecond = (count / (performance.now() - start)) * 1_000;
  await client.close();
  return perSecond;
}

export async function batchCases({ origin, scale, cli }) {
  const folder = mkdtempSync(join(tmpdir(), "pgw-bench-batch-"));
  const lines = Math.round(100_000 * scale);
  try {
    const chatBefore = await plainChat(folder, origin, Math.round(20_000 * scale));
    const { perSecond, samples } = await runBatch(cli, folder, origin, lines);
    const chatAfter = await plainChat(folder, origin, Math.round(20_000 * scale));
    // The first fifth is start-up: heap and caches grow to their working size.
    const steady = samples.slice(Math.floor(samples.length / 5));
    const third = Math.max(1, Math.floor(steady.length / 3));
    const growthMb = median(steady.slice(-third)) - median(steady.slice(0, third));
    return [
      {
        id: "batch",
        what: `${lines} lines: RSS growth over the file, MB (last third − first third)`,
        value: growthMb,
        goal: 50,
        unit: "MB",
        must: true,
      },
      { id: "batch", what: `${lines} lines: peak RSS, MB`, value: Math.max(...samples), goal: null, unit: "MB" },
      {
        id: "batch",
        what: "calls/s ÷ chat() with the same recorder, journal off",
        value: perSecond / median([chatBefore, chatAfter]),
        goal: 0.6,
        atLeast: true,
        must: true,
      },
      { id: "batch", what: "calls/s", value: perSecond, goal: null, unit: "/s" },
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
