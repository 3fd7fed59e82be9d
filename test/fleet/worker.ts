import { setTimeout as sleep } from "node:timers/promises";
import { type ChatRequest, GatewayClient, PolyGatewayError } from "polygateway";
import { PostgresRecorder } from "polygateway/postgres";
import { RedisGovernor } from "polygateway/redis";
import { SqliteRecorder } from "polygateway/sqlite";
import type { FromWorker, Tally, ToWorker, WorkerPlan } from "./messages.js";

/** One process of the fleet: the built package as a user has it, and callers that never stop asking. */

const TALLY_EVERY_MS = 250;
const AFTER_A_FAILURE_MS = 200;

const tell = (message: FromWorker): void => void process.send?.(message);
const tally = { answered: 0, failed: {} as Record<string, number> } satisfies Tally;
let stopping = false;

/** What permits were given is told before anything is sent with them, so that it is known even of a process that dies. */
function witnessGrants(): void {
  const { tick } = RedisGovernor.prototype;
  RedisGovernor.prototype.tick = async function told(batch) {
    const reply = await tick.call(this, batch);
    if (reply.grants.length > 0) {
      const grants = reply.grants.map(({ leaseId, source, probe, reservedTokens }) => ({
        id: leaseId,
        source,
        probe,
        tokens: reservedTokens,
      }));
      tell({ kind: "grants", atMs: Date.now(), grants });
    }
    return reply;
  };
}

function clientOf({ scope, sources, global, redisUrl, telemetry, leaseTtlMs }: WorkerPlan): GatewayClient {
  const { kind, place } = telemetry;
  return new GatewayClient({
    scope,
    sources,
    global,
    limiterBackend: "redis",
    redis: { url: redisUrl },
    leaseTtlMs,
    telemetry: kind === "postgres" ? new PostgresRecorder(place) : new SqliteRecorder(place),
    // An attempt of a process that is killed is known by its journal row, so that is committed before the first byte.
    telemetryOptions: { journal: "before_send", capture: "none" },
    breaker: { cooldownMs: 1_000, failThreshold: 4 },
    backpressure: { backendGraceMs: 3_000 },
    retry: { maxAttempts: 4, backoffBaseMs: 50, backoffMaxMs: 500 },
    deadlineMs: 30_000,
  });
}

async function call(client: GatewayClient, number: number): Promise<void> {
  const request: ChatRequest = {
    messages: [{ role: "user", content: `question ${number} of ${process.pid}` }],
    stream: number % 2 === 0,
  };
  try {
    await client.chat(request);
    tally.answered += 1;
  } catch (error) {
    const name = error instanceof Error ? error.name : typeof error;
    tally.failed[name] = (tally.failed[name] ?? 0) + 1;
    if (!PolyGatewayError.isInstance(error)) tell({ kind: "trouble", text: `a call ended with ${String(error)}` });
    await sleep(AFTER_A_FAILURE_MS);
  }
}

async function keepAsking(client: GatewayClient, caller: number, { callers, cycleMs }: WorkerPlan): Promise<void> {
  await sleep((caller * cycleMs) / callers);
  for (let number = caller; !stopping; number += callers) {
    const beganMs = performance.now();
    await call(client, number);
    const leftMs = cycleMs - (performance.now() - beganMs);
    if (leftMs > 0 && !stopping) await sleep(leftMs);
  }
}

async function work(plan: WorkerPlan): Promise<void> {
  const client = clientOf(plan);
  const telling = setInterval(() => tell({ kind: "tally", tally }), TALLY_EVERY_MS);
  await Promise.all(Array.from({ length: plan.callers }, (_, caller) => keepAsking(client, caller, plan)));
  await client.close();
  clearInterval(telling);
  tell({ kind: "tally", tally });
  process.disconnect?.();
}

process.on("unhandledRejection", (reason) => tell({ kind: "trouble", text: `unhandled: ${String(reason)}` }));
process.on("uncaughtException", (error) => tell({ kind: "trouble", text: `uncaught: ${String(error)}` }));
process.on("warning", ({ name, message }) => tell({ kind: "trouble", text: `${name}: ${message}` }));
// Without the process that started it, it has nobody to work for.
process.on("disconnect", () => stopping || process.exit(1));
process.on("message", (message: ToWorker) => {
  if (message.kind === "stop") stopping = true;
  else void work(message.plan);
});
witnessGrants();
