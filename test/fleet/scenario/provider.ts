import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { scenarioOf } from "../../../src/testing/simulation/scenarios.js";
import { type Exchange, SimulatedSource, UPSTREAM_STREAM } from "../../../src/testing/simulation/upstream.js";
import { planWorkload } from "../../../src/testing/simulation/workload.js";
import { type FromProvider, indexOf, type ScenarioPlan, type SeenAttempt, type ToProvider } from "./messages.js";

/**
 * The providers of a scenario over HTTP: the simulator's own ones, draws, buckets and all, told a time that passes `scale`
 * times as fast. The source is the first part of the path.
 */

const tell = (message: FromProvider): void => void process.send?.(message);
const attempts: { -readonly [Name in keyof SeenAttempt]: SeenAttempt[Name] }[] = [];
let startedMs = Number.POSITIVE_INFINITY;

function serve(plan: ScenarioPlan): void {
  const scenario = scenarioOf(plan.scenario, plan.seed);
  const { calls } = planWorkload(scenario, plan.seed);
  const sources = new Map(
    scenario.sources.map(({ upstream }, index) => [
      upstream.name,
      new SimulatedSource(upstream, plan.seed, UPSTREAM_STREAM + index),
    ]),
  );
  const now = (): number => Math.max(0, (performance.now() - startedMs) * plan.scale);

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const name = request.url?.split("/")[1] ?? "";
    const source = sources.get(name)!;
    const { messages } = JSON.parse(await textOf(request)) as { messages: { content: string }[] };
    const call = calls[indexOf(messages[0]!.content)]!;
    const exchange = source.begin(now(), call.inputTokens, call.outputTokens);
    const attempt = { callIndex: call.index, source: name, startMs: exchange.startMs, outcome: "running" as const };
    const seen: (typeof attempts)[number] = attempt;
    attempts.push(seen);
    response.on("close", () => {
      if (seen.outcome !== "running") return;
      seen.outcome = "aborted";
      source.leave(exchange, now(), 0);
    });
    const at = (ms: number, work: () => void): void => {
      setTimeout(() => response.destroyed || work(), (exchange.startMs + ms - now()) / plan.scale);
    };
    if (exchange.refusal !== null) {
      at(exchange.durationMs, () => {
        seen.outcome = exchange.refusal?.statusCode === 429 ? "rate_limited" : "failed";
        refuse(response, exchange, plan.scale);
      });
      return;
    }
    at(exchange.firstTokenMs ?? 0, () => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(event({ choices: [{ index: 0, delta: { role: "assistant", content: "answer" } }] }));
    });
    at(exchange.durationMs, () => {
      seen.outcome = "success";
      response.end(lastEvents(exchange));
    });
  }

  const server = createServer((request, response) => void answer(request, response));
  server.keepAliveTimeout = 60_000;
  server.listen(0, "127.0.0.1", () => tell({ kind: "ready", port: (server.address() as AddressInfo).port }));
}

async function textOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString();
}

function refuse(response: ServerResponse, { refusal }: Exchange, scale: number): void {
  const { statusCode, code, message, retryAfterS } = refusal!;
  const wait = retryAfterS === null ? {} : { "retry-after-ms": String(Math.ceil((retryAfterS * 1_000) / scale)) };
  response.writeHead(statusCode, { "content-type": "application/json", ...wait });
  response.end(JSON.stringify({ error: { message, code, type: code } }));
}

function event(fields: object): string {
  const chunk = { id: "c", object: "chat.completion.chunk", created: 0, model: "simulated", ...fields };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}

function lastEvents({ inputTokens, outputTokens }: Exchange): string {
  const usage = {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
  };
  const end = event({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
  return `${end}${event({ choices: [], usage })}data: [DONE]\n\n`;
}

process.on("disconnect", () => process.exit(0));
process.on("message", (message: ToProvider) => {
  if (message.kind === "plan") serve(message.plan);
  else if (message.kind === "go") startedMs = performance.now();
  else tell({ kind: "report", attempts });
});
