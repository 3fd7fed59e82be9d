// One client in a process of its own, as it ships: asked one good question first, so that what a process needs anyway
// is there, then the hostile one. Says what came of it and how much memory and processor time it took.
// argv: JSON { baseUrl, way, source }
import { readFileSync } from "node:fs";
import { GatewayClient } from "polygateway";

const { baseUrl, way, source = {}, request = {} } = JSON.parse(process.argv[2]);

async function ask(model) {
  const scope = { scope: "LLM", proxyEnv: {}, retry: { maxAttempts: 1 }, backpressure: { stallWindowMs: 600_000 } };
  const own = { name: "s_1", baseUrl, apiKey: "sk-hostile-0123456789", model, ...source };
  const client = new GatewayClient({ ...scope, sources: [own] });
  const call = { messages: [{ role: "user", content: "hi" }], ...request };
  let events = 0;
  let outcome;
  try {
    let reply;
    if (way === "chat") reply = await client.chat(call);
    else {
      const stream = client.stream(call);
      if (way === "stream") for await (const _ of stream) events += 1;
      reply = await stream.final;
    }
    outcome = { ok: true, units: reply.content.length + reply.thinking.length, calls: reply.toolCalls.length };
  } catch (error) {
    const attempt = error.cause ?? error;
    outcome = { ok: false, name: attempt.name, code: attempt.code, message: String(attempt.message).slice(0, 300) };
  }
  const { inflight } = (await client.snapshot()).sources[0];
  await client.close();
  return { ...outcome, events, inflight };
}

/** Of this program alone: `maxRSS` begins with what the process that started it had. */
function peakKiB() {
  if (process.platform !== "linux") return process.resourceUsage().maxRSS;
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))[1]);
}

for (let round = 0; round < 20; round += 1) await ask("good");
global.gc?.();
const before = peakKiB();
const started = process.cpuUsage();
const outcome = await ask("hostile");
const { user, system } = process.cpuUsage(started);
process.stdout.write(JSON.stringify({ ...outcome, grownKiB: peakKiB() - before, cpuMs: (user + system) / 1_000 }));
