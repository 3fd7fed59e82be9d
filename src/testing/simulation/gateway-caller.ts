import type { GatewayOptions } from "../../config/options.js";
import { resolveScope } from "../../config/resolve.js";
import type { ChatRequest } from "../../domain/chat.js";
import { SCHEDULING_DEFAULTS, type SchedulingConfig, type ScopeConfig } from "../../domain/scope.js";
import { PolyGatewayError } from "../../errors.js";
import { GatewayClient } from "../../gateway.js";
import type { Recorder } from "../../ports/recorder.js";
import { profileFor, profiles } from "../../transports/openai/profiles.js";
import type { Answered, Caller, MakeCaller } from "./caller.js";
import type { Observer } from "./observer.js";
import type { Scenario } from "./scenario.js";
import type { SharedStore } from "./store.js";
import { createSimulatedTransport } from "./transport.js";
import { MAX_OUTPUT_TOKENS, type PlannedCall, promptOf } from "./workload.js";
import type { World } from "./world.js";

const SCOPE = "SIM";
/** What batch and serve use; spec 10 simulates nothing else. */
const PREFETCH_MS = 1_000;
const CHAOS_GRACE_MS = 60_000;

export type SimulatedOptions = GatewayOptions & { readonly scheduling: SchedulingConfig };

/** The defaults of spec 07 with WHEN_OPEN = wait, `strict` on and scheduled grants (spec 10). */
export function gatewayOptions(scenario: Scenario): SimulatedOptions {
  return {
    scope: SCOPE,
    sources: scenario.sources.map(({ upstream, configured }) => ({
      name: upstream.name,
      baseUrl: "http://127.0.0.1:9/v1",
      apiKey: "sk-simulated-key",
      model: "simulated",
      ...configured,
    })),
    backpressure: { whenOpen: "wait", ...(scenario.chaos === undefined ? {} : { backendGraceMs: CHAOS_GRACE_MS }) },
    scheduling: { ...SCHEDULING_DEFAULTS, prefetchMs: PREFETCH_MS, ...scenario.scheduling },
  };
}

/** Everything a governor of that scope must know. */
export function scopeConfig(options: SimulatedOptions): ScopeConfig {
  return resolveScope(options, { profiles, profileFor }).config;
}

/** Counts rows instead of keeping them: thousands of calls with their texts would be a lot of memory. */
function countingRecorder(observer: Observer): Recorder {
  return {
    name: "counting",
    open: () => undefined,
    record(record) {
      observer.row(record.requestId, record.final);
      return undefined;
    },
    async flush() {},
    async close() {},
    stats: () => ({ written: 0, queued: 0, dropped: 0 }),
  };
}

/** Workers that use the gateway as an application does; only providers, clock and the way to the store are simulated. */
export function gatewayCallers(world: World, options: SimulatedOptions, store: SharedStore): MakeCaller {
  const recorder = countingRecorder(world.observer);
  return (worker, name) => {
    const runtime = world.kernel.runtime(name);
    const transport = createSimulatedTransport(world, worker, name);
    const client = new GatewayClient({
      ...options,
      runtime,
      transport,
      governor: store.connect(runtime, name),
      telemetry: recorder,
      proxyEnv: {},
    });
    const caller: Caller = {
      runtime,
      call: (call) => makeCall(world, client, call),
      drop: () => transport.drop(),
      close: () => client.close(),
    };
    return caller;
  };
}

async function makeCall(world: World, client: GatewayClient, call: PlannedCall): Promise<Answered> {
  const startMs = world.kernel.now();
  const request: ChatRequest = {
    messages: [{ role: "user", content: promptOf(call) }],
    sampling: { maxTokens: MAX_OUTPUT_TOKENS },
    parentCallId: String(call.index),
    priority: call.priority,
    ...(world.scenario.deadlineMs === undefined ? {} : { deadlineMs: world.scenario.deadlineMs }),
  };
  try {
    const reply = await client.chat(request);
    const sentMs = world.kernel.now() - reply.latencyMs;
    return { failure: null, firstTokenMs: sentMs + (reply.ttftMs ?? reply.latencyMs) - startMs };
  } catch (error) {
    return { failure: PolyGatewayError.isInstance(error) ? error.code : String(error), firstTokenMs: null };
  }
}
