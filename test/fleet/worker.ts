import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";
import { type ChatRequest, GatewayClient, type Grant, PolyGatewayError } from "polygateway";
import { PostgresRecorder } from "polygateway/postgres";
import { RedisGovernor } from "polygateway/redis";
import { SqliteRecorder } from "polygateway/sqlite";
import type { FromWorker, GrantNote, RowCount, TelemetryPlan, ToWorker, WorkerPlan } from "./messages.js";

/** One process of the fleet: the built package as a user has it, and callers that never stop asking. */

const TALLY_EVERY_MS = 250;
const AFTER_A_FAILURE_MS = 200;

const tell = (message: FromWorker): void => void process.send?.(message);
const tally = { answered: 0, failed: {} as Record<string, number> };
let rowsGiven = 0;
let stopping = false;

/** The time of the machine, whatever the process is made to believe. */
const machineNow = Date.now.bind(Date);
let clockOffsetMs = 0;
Date.now = () => machineNow() + clockOffsetMs;

/** What permits were given is told before anything is sent with them, so that it is known even of a process that dies. */
function witnessGrants(): void {
  const { tick } = RedisGovernor.prototype;
  RedisGovernor.prototype.tick = async function told(batch) {
    const reply = await tick.call(this, batch).catch((error: unknown) => {
      const ids = batch.wants.map(({ leaseId }) => leaseId);
      if (ids.length > 0 && mayHaveRun(error)) tell({ kind: "doubts", atMs: machineNow(), ids });
      throw error;
    });
    if (reply.grants.length > 0) tell({ kind: "grants", atMs: machineNow(), grants: reply.grants.map(noteOf) });
    return reply;
  };
}

/** Where nothing was sent, nothing is in doubt. */
function mayHaveRun(error: unknown): boolean {
  return (error as { cause?: { mayHaveRun?: boolean } }).cause?.mayHaveRun !== false;
}

function noteOf({ leaseId, source, probe, reservedTokens }: Grant): GrantNote {
  return { id: leaseId, source, probe, tokens: reservedTokens };
}

type FleetRecorder = PostgresRecorder | SqliteRecorder;

/** Statements are given up before a frozen server goes on. */
const STATEMENT_TIMEOUT_MS = 1_000;

function recorderOf({ kind, place, queueSize }: TelemetryPlan): FleetRecorder {
  const size = queueSize === undefined ? {} : { queueSize };
  const recorder =
    kind === "postgres"
      ? new PostgresRecorder({ dsn: place, statementTimeoutMs: STATEMENT_TIMEOUT_MS, ...size })
      : new SqliteRecorder({ path: place, ...size });
  const { recordLate } = recorder;
  recorder.recordLate = (...args) => {
    rowsGiven += 1;
    return recordLate.apply(recorder, args);
  };
  witnessJournal(recorder);
  return recorder;
}

/** Sooner than a send gives up waiting for the commit of its row. */
const LATE_COMMIT_MS = 800;

/** Which attempts may be sent before their row is committed is told before they are, as what was given is. */
function witnessJournal(recorder: FleetRecorder): void {
  const { open } = recorder;
  const pending = new Set<string>();
  let isHeldUp = false;
  const tellUnwritten = (ids: readonly string[]): void => tell({ kind: "unwritten", ids });
  recorder.open = (entry, commit) => {
    const { callId } = entry;
    const committed = open.call(recorder, entry, commit);
    if (committed === undefined) {
      tellUnwritten([callId]);
      return undefined;
    }
    if (isHeldUp) tellUnwritten([callId]);
    pending.add(callId);
    const late = setTimeout(() => {
      isHeldUp = true;
      tellUnwritten([...pending]);
    }, LATE_COMMIT_MS);
    const end = (): void => {
      pending.delete(callId);
      clearTimeout(late);
    };
    committed.then(
      (how: unknown) => {
        end();
        // A symbol: not written, for its record came.
        if (typeof how !== "symbol") isHeldUp = false;
      },
      () => {
        end();
        tellUnwritten([callId]);
      },
    );
    return committed;
  };
}

function tellTally(recorder: FleetRecorder): void {
  const { written, dropped } = recorder.stats();
  const rows: RowCount = { given: rowsGiven, written, dropped };
  tell({ kind: "tally", tally: { ...tally, rows } });
}

function clientOf(plan: WorkerPlan, telemetry: FleetRecorder): GatewayClient {
  const { scope, sources, global, redisUrl, leaseTtlMs } = plan;
  return new GatewayClient({
    scope,
    sources,
    global,
    limiterBackend: "redis",
    redis: { url: redisUrl },
    leaseTtlMs,
    telemetry,
    // An attempt of a process that is killed is known by its journal row, so that is committed before the first byte.
    telemetryOptions: { journal: "before_send", capture: "full" },
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
    tell({ kind: "error", text: everythingIn(error) });
    if (!PolyGatewayError.isInstance(error)) tell({ kind: "trouble", text: `a call ended with ${String(error)}` });
    await sleep(AFTER_A_FAILURE_MS);
  }
}

/** As a log that spares nothing would show it. */
function everythingIn(error: unknown): string {
  const said = error instanceof Error ? `${error.message}\n${error.stack}` : "";
  return `${said}\n${inspect(error, { depth: 8, showHidden: true, maxStringLength: null })}\n${JSON.stringify(error)}`;
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

/** A call that must fail, so that there is an error to look into however well all others go. */
async function failOnce(plan: WorkerPlan): Promise<void> {
  const nowhere = new URL(plan.redisUrl);
  nowhere.port = "1";
  const client = new GatewayClient({
    scope: `${plan.scope}_NOWHERE`,
    sources: plan.sources,
    limiterBackend: "redis",
    redis: { url: nowhere.href },
  });
  await client.chat({ messages: [{ role: "user", content: "nobody" }] }).catch((error: unknown) => {
    tell({ kind: "error", text: everythingIn(error) });
  });
  await client.close();
}

async function work(plan: WorkerPlan): Promise<void> {
  const recorder = recorderOf(plan.telemetry);
  const client = clientOf(plan, recorder);
  void failOnce(plan);
  const telling = setInterval(() => tellTally(recorder), TALLY_EVERY_MS);
  await Promise.all(Array.from({ length: plan.callers }, (_, caller) => keepAsking(client, caller, plan)));
  await client.close();
  clearInterval(telling);
  tellTally(recorder);
  process.disconnect?.();
}

process.on("unhandledRejection", (reason) => tell({ kind: "trouble", text: `unhandled: ${String(reason)}` }));
process.on("uncaughtException", (error) => tell({ kind: "trouble", text: `uncaught: ${String(error)}` }));
process.on("warning", ({ name, message }) => tell({ kind: "trouble", text: `${name}: ${message}` }));
// Without the process that started it, it has nobody to work for.
process.on("disconnect", () => stopping || process.exit(1));
process.on("message", (message: ToWorker) => {
  if (message.kind === "stop") stopping = true;
  else if (message.kind === "clock") clockOffsetMs = message.offsetMs;
  else void work(message.plan);
});
witnessGrants();
