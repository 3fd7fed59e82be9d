import { expect } from "vitest";
import { resolveScope } from "../../src/config/resolve.js";
import {
  type BreakerOptions,
  type CallRecord,
  type GatewayClient,
  MemoryCache,
  MemoryGovernor,
  type RetryOptions,
  type Runtime,
  type SchedulingOptions,
  type SourceOptions,
} from "../../src/index.js";
import { type SimulatedProvider, startSimulatedProvider, type UpstreamScript } from "../../src/testing/index.js";
import { type Called, call, type Way } from "./calls.js";
import { checkHit, checkOutcome, checkRows } from "./case-check.js";
import { caseClient, requestOf, sourceOf, timeoutsOf } from "./case-client.js";
import type { CaseExpectation, CaseOptions, CaseStep, SequenceCase } from "./case-records.js";
import { createScaledRuntime } from "./scaled-runtime.js";

/** Plays a record of several steps: one governor, one provider per source, the scripts changed from step to step. */

/** What a record presupposes without saying it. */
interface Presupposed {
  readonly retry?: RetryOptions;
  readonly breaker?: BreakerOptions;
  readonly scheduling?: SchedulingOptions;
}

const PRESUPPOSED: Readonly<Record<string, Presupposed>> = {
  // With the default breaker the sixth of 200 failing answers would not be sent at all.
  "sock-error-body-unread": {
    retry: { maxAttempts: 1 },
    breaker: { failThreshold: 1_000, minSamples: 1_000 },
    scheduling: { evidence: false },
  },
  // "Open for 1,100 ms" can only be the cooldown, which is jittered by 10 %.
  "rt-half-open-stuck": { breaker: { failThreshold: 1, cooldownMs: 900 } },
};

/** Waits of seconds run ten times as fast; socket matters keep real time. */
const SPEED: Readonly<Record<string, number>> = { router: 10 };

const FAILING: UpstreamScript = { status: 500, chunks: [{ utf8: "{}" }], end: "close" };

interface StepCall {
  readonly called: Called;
  readonly left: Error;
  readonly expect: CaseExpectation | undefined;
  readonly rows: readonly CallRecord[];
  readonly sends: number;
}

export interface PlayedSequence {
  readonly calls: readonly StepCall[];
  readonly providers: ReadonlyMap<string, SimulatedProvider>;
  readonly client: GatewayClient;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Sources in the order the record names them; a record with one unnamed source calls it `a`. */
function sourceNames(steps: readonly CaseStep[]): string[] {
  const names = new Set<string>();
  for (const step of steps) {
    if (step.deployment !== undefined) names.add(step.deployment);
    for (const name of Object.keys(step.upstreams ?? {})) names.add(name);
  }
  return names.size === 0 ? ["a"] : [...names];
}

function settingsOf({ id, steps }: SequenceCase) {
  const config = Object.assign({}, ...steps.map((step) => step.config ?? {})) as NonNullable<CaseStep["config"]>;
  const options = Object.assign({}, ...steps.map((step) => step.request?.clientOptions ?? {})) as CaseOptions;
  const presupposed = PRESUPPOSED[id] ?? {};
  const retries = config.retries ?? options.retries;
  const retry: RetryOptions = {
    ...(retries === undefined ? {} : { maxAttempts: retries + 1 }),
    ...(options.maxRateLimited === undefined ? {} : { maxRateLimited: options.maxRateLimited }),
    ...presupposed.retry,
  };
  const breaker: BreakerOptions = {
    ...(config.threshold === undefined ? {} : { failThreshold: config.threshold }),
    ...(config.cooldownMs === undefined ? {} : { cooldownMs: config.cooldownMs }),
    ...presupposed.breaker,
  };
  const { scheduling = {} } = presupposed;
  const failover = config.failover === false ? "off" : "on";
  return { retry, breaker, scheduling, failover, timeouts: timeoutsOf(options) } as const;
}

function setScripts(step: CaseStep, providers: ReadonlyMap<string, SimulatedProvider>): void {
  for (const [name, provider] of providers) {
    provider.clearScripts();
    const isMeant = step.deployment === undefined || step.deployment === name;
    const script = step.upstreams?.[name] ?? (isMeant ? step.upstream : undefined);
    if (script !== undefined) provider.script(script, "always");
  }
}

/** Two clients of one governor: the record's own, and one that sends once, to bring about a state. */
function clientsOf(record: SequenceCase, sources: readonly SourceOptions[], preferred: () => string, runtime: Runtime) {
  const { retry, breaker, scheduling, failover } = settingsOf(record);
  const { config } = resolveScope({ scope: "LLM", sources, breaker, scheduling });
  const governor = new MemoryGovernor({ ...config, runtime });
  const selector = {
    order: (names: readonly string[]) =>
      [...names].sort((a, b) => Number(b === preferred()) - Number(a === preferred())),
  };
  const cache = record.family === "cache" ? { cache: new MemoryCache({ runtime }) } : {};
  const shared = { runtime, governor, breaker, scheduling, selector, failover, ...cache } as const;
  return {
    main: caseClient(sources, { ...shared, retry }),
    once: caseClient(sources, { ...shared, retry: { maxAttempts: 1 } }),
  };
}

export async function runSequence(record: SequenceCase, way: Way): Promise<PlayedSequence> {
  const { steps } = record;
  const runtime = createScaledRuntime(SPEED[record.family]);
  const names = sourceNames(steps);
  const providers = new Map<string, SimulatedProvider>();
  for (const name of names) providers.set(name, await startSimulatedProvider({ name, clock: runtime }));
  // Another model for each, so that "another model" can take what one can't.
  const sources = names.map((name, index) =>
    sourceOf(name, providers.get(name)!.baseUrl, { model: `m-test-${index}`, ...settingsOf(record).timeouts }),
  );
  let preferred = names[0]!;
  const { main, once } = clientsOf(record, sources, () => preferred, runtime);
  const calls: StepCall[] = [];
  const arrivals = (): number => [...providers.values()].reduce((sum, provider) => sum + provider.stats().arrived, 0);

  async function callOnce(step: CaseStep): Promise<void> {
    // A step that expects nothing only brings about a state: one send does.
    const { client, recorder } = step.expect === undefined && steps.length > 1 ? once : main;
    const controller = new AbortController();
    const left = new Error("the caller left");
    const request = step.request!;
    const abortAfterMs = request.clientOptions?.abortAfterMs;
    const cancel = abortAfterMs === undefined ? () => {} : runtime.setTimer(abortAfterMs, () => controller.abort(left));
    const rowsBefore = recorder.rows.length;
    const sendsBefore = arrivals();
    const called = await call(client, way, { ...requestOf(request), signal: controller.signal });
    cancel();
    const rows = recorder.rows.slice(rowsBefore);
    calls.push({ called, left, expect: step.expect, rows, sends: arrivals() - sendsBefore });
  }

  for (const step of steps) {
    preferred = step.deployment ?? names[0]!;
    if (step.state === "open") {
      providers.get(preferred)!.script(FAILING);
      await call(once.client, way, { messages: [{ role: "user", content: "hi" }] });
      const { sources: standing } = await once.client.snapshot();
      expect(standing.find((source) => source.name === preferred)?.state).toBe("open");
    }
    if (step.waitMs !== undefined) await runtime.sleep(step.waitMs);
    setScripts(step, providers);
    for (let turn = 0; step.request !== undefined && turn < (step.repeat ?? step.times ?? 1); turn += 1) {
      if (step.everyMs !== undefined) await runtime.sleep(step.everyMs);
      await callOnce(step);
    }
  }
  return {
    calls,
    providers,
    client: main.client,
    async [Symbol.asyncDispose]() {
      await Promise.all([main.client.close(), once.client.close()]);
      await Promise.all([...providers.values()].map((provider) => provider.stop()));
    },
  };
}

function retryAfterMsOf(record: SequenceCase): number | null {
  const match = /"retry-after":"(\d+)"/.exec(JSON.stringify(record.steps));
  return match === null ? null : Number(match[1]) * 1_000;
}

/** A source that asked for a pause is left alone that long: never early, whoever calls. */
function checkPauses(provider: SimulatedProvider, retryAfterMs: number): void {
  const arrived = [...provider.ledger()].sort((a, b) => a.arrivedAtMs - b.arrivedAtMs);
  arrived.slice(1).forEach((entry, index) => {
    const before = arrived[index]!;
    if (before.status === 429) expect(entry.arrivedAtMs - before.endedAtMs!).toBeGreaterThanOrEqual(retryAfterMs - 1);
  });
}

export async function checkSequence(record: SequenceCase, played: PlayedSequence): Promise<void> {
  const { calls, providers, client } = played;
  for (const { called, left, expect: expected, rows, sends } of calls) {
    if (expected === undefined) continue;
    checkOutcome(called, expected, left);
    if (called.reply?.cacheHit === true) checkHit(rows, sends);
    else checkRows(rows, sends, expected);
  }
  const last = calls.at(-1)!;
  // What the record says of the whole adds to what its last step says.
  const expected = { ...last.expect, ...record.expect };
  checkOutcome(last.called, expected, last.left);
  if (last.called.reply?.cacheHit === true) checkHit(last.rows, last.sends);
  else checkRows(last.rows, last.sends, expected);
  const ledgers = [...providers.values()].flatMap((provider) => [...provider.ledger()]);
  if (expected.upstreamRequests !== undefined) expect(ledgers.length).toBe(expected.upstreamRequests);
  for (const [name, count] of Object.entries(expected.upstreamRequestsTo ?? {})) {
    expect(providers.get(name)!.stats().arrived).toBe(count);
  }
  if (expected.minWallMs !== undefined) {
    const moments = ledgers.map((entry) => entry.arrivedAtMs).sort((a, b) => a - b);
    expect(moments.at(-1)! - moments[0]!).toBeGreaterThanOrEqual(expected.minWallMs);
  }
  const retryAfterMs = retryAfterMsOf(record);
  if (retryAfterMs !== null) for (const provider of providers.values()) checkPauses(provider, retryAfterMs);
  const { sources, leases, waiting } = await client.snapshot();
  expect(sources.map(({ name, inflight }) => [name, inflight])).toEqual([...providers.keys()].map((name) => [name, 0]));
  expect([leases.live, leases.lost, waiting.count]).toEqual([0, 0, 0]);
  const state = expected.breakerState ?? (expected.outcome === "ok" ? "closed" : undefined);
  if (state !== undefined) for (const source of sources) expect(source.state).toBe(state);
  for (const provider of providers.values()) expect(provider.stats().connections).toBeLessThanOrEqual(2);
}
