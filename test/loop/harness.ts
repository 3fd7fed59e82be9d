import { getEventListeners } from "node:events";
import { expect } from "vitest";
import type { GatewayOptions, SourceOptions } from "../../src/config/options.js";
import { RequestRejectedError, SourceDeadError, TransientError } from "../../src/errors.js";
import { GatewayClient } from "../../src/gateway.js";
import { SimulationKernel } from "../../src/testing/kernel.js";
import { createMemoryRecorder, type MemoryRecorder } from "../../src/testing/memory-recorder.js";
import { createScriptedTransport, type Script, type ScriptedTransport } from "../../src/testing/scripted-transport.js";
import type { LoopOperation, OperationClient } from "../support/operations.js";
import { createStore, type Store } from "./governors.js";

export interface Simulation {
  readonly kernel: SimulationKernel;
  readonly client: GatewayClient;
  readonly transport: ScriptedTransport;
  readonly recorder: MemoryRecorder;
}

export interface SimulationOptions {
  readonly sources?: readonly Partial<SourceOptions>[];
  readonly script?: Script;
  readonly options?: Partial<GatewayOptions>;
  readonly kernel?: SimulationKernel;
  readonly commit?: (kernel: SimulationKernel) => Promise<void>;
  /** `async`: the same rules behind promises, as a store behind a network answers. Default `sync`. */
  readonly governor?: GovernorKind;
}

export type GovernorKind = "sync" | "async";

/** For `describe.each`: every scenario on a governor that answers in the same turn and on one that answers later. */
export const GOVERNOR_KINDS: readonly GovernorKind[] = ["sync", "async"];

export const hi = { messages: [{ role: "user", content: "hi" }] };

/** Breakers out of the way, for tests of a call's own budgets. */
export const noBreaker = { failThreshold: 1_000, minSamples: 1_000 };

/** For tests that name the source which is asked first: equal ones go by their order, not by chance. */
export const inOrder = { selector: "least_inflight" } as const;

/** For tests of the configured limits alone. */
export const noPacer = { scheduling: { pacer: false } };

/** A source that may take its time, so that only the rule under test ends a call. */
export const patient = { timeoutMs: 3_000_000, ttftTimeoutMs: 5_000, interTokenTimeoutMs: 5_000, stream: false };

export const serverError = (statusCode = 500): TransientError =>
  new TransientError(`s_1 transient failure: ${statusCode}`, { statusCode });

export const limited = (retryAfterMs?: number): TransientError =>
  new TransientError("s_1 rate limited: 429", {
    code: "rate_limit",
    statusCode: 429,
    rateLimited: true,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });

export const deadKey = (retryAfterMs?: number): SourceDeadError =>
  new SourceDeadError("s_1 dead: 401", {
    code: "auth",
    statusCode: 401,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });

export const rejected = (): RequestRejectedError =>
  new RequestRejectedError("s_1 request rejected: 400", { statusCode: 400 });

export function sourceOptions(sources: readonly Partial<SourceOptions>[] = [{}]): SourceOptions[] {
  return sources.map((source, index) => ({
    name: `s_${index + 1}`,
    baseUrl: "http://127.0.0.1:9/v1",
    apiKey: "sk-simulated-key",
    model: "m",
    ...source,
  }));
}

/** A store with the limits and breakers of these sources, for clients that share it. */
export function storeFor(kernel: SimulationKernel, setup: Pick<SimulationOptions, "sources" | "options"> = {}): Store {
  return createStore(kernel, { scope: "LLM", ...setup.options, sources: sourceOptions(setup.sources) });
}

/** The public client on virtual time: only the provider and the clock are not real. */
export function simulate(setup: SimulationOptions = {}): Simulation {
  return assemble((options) => new GatewayClient(options), setup);
}

function assemble<Client>(
  open: (options: GatewayOptions) => Client,
  setup: SimulationOptions,
): Omit<Simulation, "client"> & { readonly client: Client } {
  const kernel = setup.kernel ?? new SimulationKernel();
  const transport = createScriptedTransport(setup.script ?? (() => ({ afterMs: 100 })));
  const { commit } = setup;
  const recorder = createMemoryRecorder(commit === undefined ? undefined : () => commit(kernel));
  const runtime = setup.options?.runtime ?? kernel.runtime();
  const governor = setup.governor === "async" ? { governor: storeFor(kernel, setup).connect(runtime) } : {};
  const client = open({
    scope: "LLM",
    sources: sourceOptions(setup.sources),
    runtime,
    transport,
    telemetry: recorder,
    ...governor,
    ...setup.options,
  });
  return { kernel, client, transport, recorder };
}

export interface OperationSimulation extends Omit<Simulation, "client">, OperationClient {}

/** The same with the client of any kind of call. */
export function simulateOperation(open: LoopOperation["open"], setup: SimulationOptions = {}): OperationSimulation {
  const { client, ...parts } = assemble(open, setup);
  return { ...parts, ...client };
}

/** `simulate` on one kind of governor, for `describe.each(GOVERNOR_KINDS)`. */
export const simulateOn =
  (governor: GovernorKind) =>
  (setup: SimulationOptions = {}): Simulation =>
    simulate({ governor, ...setup });

/** The error a promise rejects with; fails when it resolves. */
export async function failureOf(kernel: SimulationKernel, work: Promise<unknown>): Promise<unknown> {
  return kernel.run(
    work.then(
      () => {
        throw new Error("expected a rejection");
      },
      (error: unknown) => error,
    ),
  );
}

/** Settles every promise without failing. */
export function settled<T>(work: readonly Promise<T>[]): Promise<PromiseSettledResult<T>[]> {
  return Promise.allSettled(work);
}

/** Nothing of any call is left: permits, probes, places in the queue, sockets, timers, listeners. */
export async function expectNothingLeft(
  { kernel, client, transport }: Pick<Simulation, "kernel" | "client" | "transport">,
  ...signals: readonly AbortSignal[]
): Promise<void> {
  const snapshot = await kernel.run(client.snapshot());
  for (const source of snapshot.sources) expect(source).toMatchObject({ inflight: 0, probeInFlight: false });
  expect(snapshot.waiting.count).toBe(0);
  expect(snapshot.leases.live).toBe(0);
  expect(transport.inflight()).toBe(0);
  expect(kernel.pendingTimers()).toBe(0);
  for (const signal of signals) expect(getEventListeners(signal, "abort")).toHaveLength(0);
}

/** Reads a stream to its end. */
export async function readAll<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const events: T[] = [];
  for await (const event of stream) events.push(event);
  return events;
}
