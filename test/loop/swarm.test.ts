import { getEventListeners } from "node:events";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import {
  AllSourcesExhausted,
  GatewayUnavailableError,
  GovernanceBackendError,
  PolyGatewayError,
  RequestRejectedError,
  ResultInvalidError,
  SourceDeadError,
  SourceNotConfiguredError,
  TransientError,
} from "../../src/errors.js";
import type { Governor, TickBatch, TickReply } from "../../src/ports/governor.js";
import { SimulationKernel } from "../../src/testing/kernel.js";
import { failingGovernor } from "./governors.js";
import { limited, type Simulation, simulate, storeFor } from "./harness.js";
import {
  BROKE_A_RULE,
  type PlannedCall,
  type ReplyKind,
  type Scenario,
  scenario,
  scriptedReply,
} from "./swarm-scenario.js";

/** Every stall clock a run makes, with what it was told: the identity is checked from outside. */
const clocks = vi.hoisted(
  () =>
    [] as { startMs: number; intervals: { fromMs: number; toMs: number | null; counted: boolean }[]; clock: unknown }[],
);

vi.mock("../../src/governance/stall-clock.js", async (original) => {
  const real = await original<typeof import("../../src/governance/stall-clock.js")>();
  return {
    createStallClock(startMs: number) {
      const clock = real.createStallClock(startMs);
      const intervals: { fromMs: number; toMs: number | null; counted: boolean }[] = [];
      clocks.push({ startMs, intervals, clock });
      const marks = new Map<number, number>();
      return {
        begin(nowMs: number) {
          const mark = clock.begin(nowMs);
          marks.set(mark, intervals.length);
          intervals.push({ fromMs: nowMs, toMs: null, counted: false });
          return mark;
        },
        end(mark: number, nowMs: number, counted: boolean) {
          const interval = intervals[marks.get(mark)!]!;
          if (interval.toMs === null) Object.assign(interval, { toMs: nowMs, counted });
          clock.end(mark, nowMs, counted);
        },
        stalledMs: (nowMs: number) => clock.stalledMs(nowMs),
      };
    },
  };
});

/** Sends that cost nothing at all: a dead reused socket, a refused parameter of ours. */
const MAX_RESENDS = 5;
const UNSENT = "cancelled: returned unsent: the permit was older than its lease";
/** What the row of an attempt says that was sent away when its source tripped. */
const EVACUATED = /its breaker opened while this attempt had no token/;
const TIMEOUT_MS = 20_000;
const STALL_MS = 30_000;
/** Pauses that a settled call or a closing scope may still need: commits, wires, retries of the store. */
const SLACK_MS = 3_000;

function errorOf(kind: ReplyKind["kind"], retryAfterMs?: number): Error {
  switch (kind) {
    case "limited":
      return limited(retryAfterMs);
    case "dead":
      return new SourceDeadError("dead: 401", { statusCode: 401 });
    case "rejected":
      return new RequestRejectedError("rejected: 400", { statusCode: 400 });
    case "context_length":
      return new RequestRejectedError("too long: 400", { code: "context_length", statusCode: 400 });
    case "param_dropped":
      return new RequestRejectedError("unknown parameter", {
        code: "unsupported_param",
        statusCode: 400,
        details: { param: "stream_options", droppedByUs: true },
      });
    case "invalid":
      return new ResultInvalidError("unusable", { rawText: "{" });
    case "stale_socket":
      return new TransientError("stale", { code: "stale_socket" });
    case "cut":
      return new TransientError("cut", {
        code: "truncated",
        partial: { content: "half an", thinking: "", toolCalls: [], usage: null },
      });
    case "plain_error":
      return new Error("a transport of its own mind");
    default:
      return new TransientError("500", { statusCode: 500 });
  }
}

interface Ending {
  readonly call: PlannedCall;
  readonly startedMs: number;
  readonly endedMs: number;
  readonly signal: AbortSignal;
  readonly reason: Error;
  readonly error: unknown;
  readonly reply: unknown;
}

interface Run extends Simulation {
  readonly scenario: Scenario;
  readonly endings: readonly Ending[];
  /** Leases that were probes. */
  readonly probes: ReadonlySet<string>;
  readonly overshoots: readonly string[];
}

function faultOf(plan: Scenario): (tick: number) => { error: Error; lost: boolean } | null {
  return (tick) => {
    const fault = plan.storeFaults.find((candidate) => candidate.tick === tick);
    if (fault === undefined) return null;
    // After a lost reply a misconfiguration hides what was granted; the lease then ends by its TTL.
    const mayHide = plan.storeFaults.some((other) => other.kind === "lost");
    if (fault.kind === "not_configured" && !mayHide)
      return { error: new SourceNotConfiguredError("no such source"), lost: false };
    if (fault.kind === "backend")
      return { error: new GovernanceBackendError("store is away", { scope: "LLM" }), lost: false };
    return { error: new Error("socket hang up"), lost: fault.kind === "lost" && plan.wire !== null };
  };
}

async function play(plan: Scenario): Promise<Run> {
  clocks.length = 0;
  const kernel = new SimulationKernel({ seed: plan.seed, maxEvents: 300_000 });
  const runtime = kernel.runtime();
  const sources = plan.sources.map((source) => ({
    ...source,
    timeoutMs: TIMEOUT_MS,
    ttftTimeoutMs: 10_000,
    interTokenTimeoutMs: 10_000,
  }));
  const options = {
    runtime,
    retry: { ...plan.retry, backoffBaseMs: 200, backoffMaxMs: 3_000 },
    breaker: { failThreshold: plan.breakerThreshold, minSamples: 1_000, cooldownMs: 500, cooldownMaxMs: 4_000 },
    backpressure: {
      stallWindowMs: STALL_MS,
      quotaFull: plan.quotaFull,
      whenOpen: plan.whenOpen,
      backendGraceMs: plan.backendGraceMs,
    },
    global: { maxConcurrency: plan.globalConcurrency },
    failover: plan.failover,
    telemetryOptions: { journal: plan.journal, durability: plan.durability },
    ...(plan.userSelector ? { selector: { order: (names: readonly string[]) => [...names].reverse() } } : {}),
  };
  const probes = new Set<string>();
  const store = storeFor(kernel, { sources, options: { ...options, selector: "least_inflight" } });
  const governor = watched(governorOf(plan, store, runtime), probes);
  const overshoots: string[] = [];
  const simulation = simulate({
    kernel,
    sources,
    options: { ...options, governor },
    commit: (k) => k.runtime().sleep(plan.commitMs),
    script: ({ source }, sendNumber) => {
      const { transport } = simulation;
      const cap = source.maxConcurrency;
      if (cap > 0 && transport.inflight(source.name) > cap) overshoots.push(`${source.name} at ${kernel.now()}`);
      if (plan.globalConcurrency > 0 && transport.inflight() > plan.globalConcurrency)
        overshoots.push(`global at ${kernel.now()}`);
      return scriptedReply(plan.replies[(sendNumber * 7) % plan.replies.length]!, errorOf);
    },
  });
  const endings = await kernel.run(Promise.all(plan.calls.map((call) => makeCall(call, simulation))));
  // Accounts that failed are sent again after at most 2 s each time.
  await kernel.advance(SLACK_MS + 2_000 * plan.storeFaults.length);
  return { ...simulation, scenario: plan, endings, probes, overshoots };
}

function governorOf(plan: Scenario, store: ReturnType<typeof storeFor>, runtime: Parameters<typeof store.connect>[0]) {
  const fault = faultOf(plan);
  let tick = 0;
  if (plan.wire === null) return failingGovernor(store.inner, () => fault(tick++)?.error ?? null);
  const { thereMs, backMs } = plan.wire;
  return store.connect(runtime, {
    thereMs: () => thereMs,
    backMs: () => backMs,
    fault: () => {
      const failure = fault(tick++);
      if (failure === null) return null;
      return failure.lost ? { loseReply: failure.error } : { refuse: failure.error };
    },
  });
}

function watched(governor: Governor, probes: Set<string>): Governor {
  const note = (reply: TickReply): TickReply => {
    for (const grant of reply.grants) if (grant.probe) probes.add(grant.leaseId);
    return reply;
  };
  return {
    ...governor,
    tick(batch: TickBatch) {
      const reply = governor.tick(batch);
      return reply instanceof Promise ? reply.then(note) : note(reply);
    },
  };
}

async function makeCall(call: PlannedCall, { kernel, client }: Simulation): Promise<Ending> {
  const runtime = kernel.runtime();
  const controller = new AbortController();
  const reason = new Error("the caller left");
  await runtime.sleep(call.startMs);
  const startedMs = kernel.now();
  const stopTimer =
    call.abortMs === undefined ? () => {} : runtime.setTimer(call.abortMs, () => controller.abort(reason));
  const request = {
    messages: [{ role: "user", content: "hi" }],
    sampling: { maxTokens: call.maxTokens },
    priority: call.priority,
    signal: controller.signal,
    ...(call.model === undefined ? {} : { model: call.model }),
    ...(call.deadlineMs === undefined ? {} : { deadlineMs: call.deadlineMs }),
  };
  let error: unknown = null;
  let reply: unknown = null;
  try {
    reply = call.stream ? await readStream(client.stream(request), call.leavesAfter) : await client.chat(request);
  } catch (thrown) {
    error = thrown;
  }
  stopTimer();
  return { call, startedMs, endedMs: kernel.now(), signal: controller.signal, reason, error, reply };
}

async function readStream(stream: ReturnType<Simulation["client"]["stream"]>, leavesAfter = Infinity) {
  let read = 0;
  if (leavesAfter > 0) {
    for await (const _ of stream) {
      read += 1;
      if (read >= leavesAfter) return await stream.final.catch((error: unknown) => ({ left: error }));
    }
  }
  return stream.final;
}

const REASONS = new Set(
  "breaker_open half_open cooling dead concurrency rpm tpm global_concurrency global_rpm global_tpm rate_limited timeout transient incapable failed_in_call".split(
    " ",
  ),
);

function checkEnding({ call, error, reply, reason, signal, startedMs, endedMs }: Ending, plan: Scenario): void {
  if (call.deadlineMs !== undefined) expect(endedMs - startedMs).toBeLessThanOrEqual(call.deadlineMs + SLACK_MS);
  if (call.abortMs !== undefined && signal.aborted)
    expect(endedMs - startedMs).toBeLessThanOrEqual(call.abortMs + SLACK_MS);
  if (error === null) {
    expect(reply).not.toBeNull();
    return;
  }
  if (error === reason) {
    expect(signal.aborted).toBe(true);
    return;
  }
  expect(PolyGatewayError.isInstance(error)).toBe(true);
  const failure = error as PolyGatewayError;
  // An unknown source name passes as the very error of the governor, which may have told several calls at once.
  const isOwn = !SourceNotConfiguredError.isInstance(error);
  if (isOwn && (call.model === undefined || plan.sources.some((source) => source.model === call.model)))
    expect(failure.operation).toBe(call.stream ? "chat_stream" : "chat");
  // Only a stream that had already begun may end with the class of its one attempt.
  if (!call.stream) expect(TransientError.isInstance(error) || SourceDeadError.isInstance(error)).toBe(false);
  if (GatewayUnavailableError.isInstance(error)) {
    expect(Number.isFinite(error.retryAfterMs) && error.retryAfterMs >= 0).toBe(true);
    for (const detail of Object.values(error.perSourceReasons)) expect(REASONS).toContain(detail.reason);
    expect(error.bodyText).toBe("");
  }
  if (AllSourcesExhausted.isInstance(error) && error.reason === "deadline_exceeded")
    expect(call.deadlineMs).toBeDefined();
  if (GovernanceBackendError.isInstance(error) || SourceNotConfiguredError.isInstance(error))
    expect(plan.storeFaults.length).toBeGreaterThan(0);
}

function rowsByCall({ rows }: Simulation["recorder"]): Map<string, (typeof rows)[number][]> {
  const byCall = new Map<string, (typeof rows)[number][]>();
  for (const row of rows) byCall.set(row.requestId, [...(byCall.get(row.requestId) ?? []), row]);
  return byCall;
}

function checkRows({ recorder, transport, scenario: plan, endings }: Run): void {
  const byCall = rowsByCall(recorder);
  const started = endings.filter(
    // Told before the loop: no source has this model, or the whole call is refused as a mistake.
    ({ call }) => call.model === undefined || plan.sources.some((source) => source.model === call.model),
  );
  expect(byCall.size).toBe(started.length);
  for (const rows of byCall.values()) {
    expect(rows.filter((row) => row.final)).toHaveLength(1);
    expect(rows.at(-1)?.final).toBe(true);
    const numbers = rows.flatMap((row) => (row.attempt === null ? [] : [row.attempt]));
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
  }
  const attempts = recorder.rows.filter((row) => row.attempt !== null).map((row) => row.callId);
  const sent = transport.sends.map((send) => send.callId);
  expect(new Set(attempts).size).toBe(attempts.length);
  expect(new Set(sent).size).toBe(sent.length);
  for (const callId of sent) expect(attempts).toContain(callId);
  // Left between the journal's commit and the send: a row, but nothing was sent.
  if (plan.journal !== "before_send") expect(attempts).toHaveLength(sent.length);
  expect([...recorder.openAttempts.keys()]).toEqual([]);
}

function checkBudgets({ recorder, scenario: plan, probes }: Run): void {
  const { maxAttempts, maxRateLimited } = plan.retry;
  for (const rows of rowsByCall(recorder).values()) {
    // A failed probe costs its call nothing, nor does the one attempt that may leave a source which tripped: only the
    // other sends are bounded by the call's own budgets.
    const asked = rows.filter((row) => row.attempt !== null && row.error !== UNSENT && !probes.has(row.callId));
    const sent = asked.filter((row) => !EVACUATED.test(row.error ?? ""));
    expect(asked.length - sent.length).toBeLessThanOrEqual(maxAttempts === 1 ? 0 : 1);
    const count = (outcome: string) => sent.filter((row) => row.outcome === outcome).length;
    const resends = sent.filter(
      (row) => row.outcome === "stale_socket" || row.errorCode === "unsupported_param",
    ).length;
    expect(count("transient")).toBeLessThanOrEqual(maxAttempts);
    expect(count("rate_limited")).toBeLessThanOrEqual(maxRateLimited + 1);
    expect(count("source_dead")).toBeLessThanOrEqual(plan.sources.length);
    expect(resends).toBeLessThanOrEqual(MAX_RESENDS + maxAttempts);
    if (maxAttempts === 1) expect(sent.length - Math.min(resends, MAX_RESENDS)).toBeLessThanOrEqual(1);
  }
}

/** The `smooth` rule as a provider sees it: no half-open 60 s, wherever it starts, holds more than the limit. */
function checkRates({ transport, scenario: plan }: Run): void {
  plan.sources.forEach(({ rpm = 0, limitRule }, index) => {
    if (rpm === 0 || limitRule !== "smooth") return;
    const sends = transport.sends.filter((send) => send.source === `s_${index + 1}`).map((send) => send.atMs);
    for (let i = rpm; i < sends.length; i += 1) expect(sends[i]! - sends[i - rpm]!).toBeGreaterThanOrEqual(60_000);
  });
}

function checkClocks(endMs: number): void {
  for (const { startMs, intervals, clock } of clocks) {
    let countedMs = 0;
    for (const { fromMs, toMs, counted } of intervals) {
      expect(toMs).not.toBeNull();
      if (counted) countedMs += toMs! - fromMs;
    }
    const { stalledMs } = clock as { stalledMs(nowMs: number): number };
    expect(countedMs + stalledMs.call(clock, endMs)).toBeCloseTo(endMs - startMs, 6);
  }
}

async function checkNothingLeft({ kernel, client, transport, endings }: Run): Promise<void> {
  const snapshot = await kernel.run(client.snapshot());
  for (const source of snapshot.sources) expect(source).toMatchObject({ inflight: 0, probeInFlight: false });
  expect(snapshot.waiting.count).toBe(0);
  expect(snapshot.leases.live).toBe(0);
  expect(snapshot.leases.lost).toBe(0);
  expect(transport.inflight()).toBe(0);
  expect(kernel.pendingTimers()).toBe(0);
  for (const { signal } of endings) expect(getEventListeners(signal, "abort")).toHaveLength(0);
}

/** More or other lives: `LOOP_RUNS=20000 LOOP_SEED=1 npx vitest run test/loop/swarm.test.ts`. */
describe("any life of a client", () => {
  it("ends every call once and inside the taxonomy, keeps every limit and budget, and leaves nothing behind", async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async (plan) => {
        const run = await play(plan);
        for (const ending of run.endings) checkEnding(ending, plan);
        checkRows(run);
        checkBudgets(run);
        checkRates(run);
        checkClocks(run.kernel.now());
        expect(run.overshoots).toEqual([]);
        await checkNothingLeft(run);
      }),
      {
        examples: BROKE_A_RULE.map((plan): [Scenario] => [plan]),
        numRuns: Number(process.env.LOOP_RUNS ?? 300),
        ...(process.env.LOOP_SEED ? { seed: Number(process.env.LOOP_SEED) } : {}),
      },
    );
  }, 600_000);
});
