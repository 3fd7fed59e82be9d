import { resolveScope } from "../../config/resolve.js";
import type { SourceConfig } from "../../domain/source.js";
import { PolyGatewayError, TransientError } from "../../errors.js";
import type { Runtime } from "../../ports/runtime.js";
import type { AttemptContext, ChatTransport } from "../../ports/transport.js";
import { profileFor, profiles } from "../../transports/openai/profiles.js";
import type { Answered, MakeCaller } from "./caller.js";
import { gatewayOptions } from "./gateway-caller.js";
import { createSimulatedTransport } from "./transport.js";
import type { PlannedCall } from "./workload.js";
import type { World } from "./world.js";

/** What people do without a gateway (spec 10 §9): a way to choose a source, and a number of tries. */
export interface BaselineSpec {
  readonly name: string;
  readonly kind: "round_robin" | "least_inflight" | "weighted_shuffle";
  readonly tries: number;
}

export const BASELINES: readonly BaselineSpec[] = [
  { name: "round-robin 6", kind: "round_robin", tries: 6 },
  { name: "round-robin 80", kind: "round_robin", tries: 80 },
  { name: "LiteLLM-like 6", kind: "weighted_shuffle", tries: 6 },
  { name: "LiteLLM-like 80", kind: "weighted_shuffle", tries: 80 },
  { name: "least-inflight 6", kind: "least_inflight", tries: 6 },
];

const BACKOFF_BASE_MS = 1_000;
const BACKOFF_MAX_MS = 30_000;
/** LiteLLM's own: after a 429 without Retry-After, and after more than half of a minute's attempts failed. */
const COOLDOWN_MS = 5_000;
const FAILURE_WINDOW_MS = 60_000;

interface Chooser {
  /** null = none is healthy now. */
  choose(runtime: Runtime): SourceConfig | null;
  begun(source: SourceConfig): void;
  ended(source: SourceConfig, error: unknown): void;
  /** Whether a failure is followed by a pause even while another source is healthy. */
  readonly alwaysPauses: boolean;
}

/** Workers without shared limits; only the weighted shuffle shares its cooldowns, as that library does by its cache. */
export function baselineCallers(world: World, spec: BaselineSpec): MakeCaller {
  const { scheduling: _, ...options } = gatewayOptions(world.scenario);
  const { sources } = resolveScope(options, { profiles, profileFor }).config;
  const shared = weightedShuffle(world, sources);
  return (worker, name) => {
    const runtime = world.kernel.runtime(name);
    const transport = createSimulatedTransport(world, worker, name);
    const chooser = spec.kind === "weighted_shuffle" ? shared : ownChooser(spec.kind, sources, worker);
    return {
      runtime,
      call: (call) => makeCall({ world, runtime, transport, chooser, tries: spec.tries }, call),
      drop: () => transport.drop(),
      async close() {},
    };
  };
}

interface BaselineWorker {
  readonly world: World;
  readonly runtime: Runtime;
  readonly transport: ChatTransport;
  readonly chooser: Chooser;
  readonly tries: number;
}

async function makeCall(
  { world, runtime, transport, chooser, tries }: BaselineWorker,
  call: PlannedCall,
): Promise<Answered> {
  const startMs = runtime.now();
  const deadlineMs = startMs + (world.scenario.deadlineMs ?? Infinity);
  let failure = "no_sources";
  for (let attempt = 1; attempt <= tries; attempt++) {
    if (runtime.now() >= deadlineMs) return { failure: "deadline_exceeded", firstTokenMs: null };
    const source = chooser.choose(runtime);
    let retryAfterMs = 0;
    if (source !== null) {
      const context = contextOf(runtime, deadlineMs);
      const sentMs = runtime.now();
      chooser.begun(source);
      try {
        const { ttftMs } = await transport.complete({
          source,
          request: { messages: [], parentCallId: String(call.index) },
          messagesJson: "[]",
          stream: true,
          context,
        });
        chooser.ended(source, null);
        return { failure: null, firstTokenMs: sentMs - startMs + (ttftMs ?? 0) };
      } catch (error) {
        chooser.ended(source, error);
        failure = PolyGatewayError.isInstance(error) ? error.code : String(error);
        retryAfterMs = TransientError.isInstance(error) ? (error.retryAfterMs ?? 0) : 0;
      } finally {
        context.dispose();
      }
    }
    if (attempt === tries) break;
    if (!chooser.alwaysPauses && source !== null && chooser.choose(runtime) !== null) continue;
    await runtime.sleep(Math.max(retryAfterMs, backoffMs(attempt, runtime)));
  }
  return { failure, firstTokenMs: null };
}

function backoffMs(attempt: number, runtime: Runtime): number {
  return Math.min(BACKOFF_MAX_MS, BACKOFF_BASE_MS * 2 ** (attempt - 1)) * (0.5 + runtime.random() / 2);
}

/** What a transport needs of its caller, with the deadline as the only way to be cancelled. */
function contextOf(runtime: Runtime, deadlineMs: number): AttemptContext & { dispose(): void } {
  let listener: ((reason: unknown) => void) | null = null;
  const reason = new Error("deadline_exceeded");
  const cancel =
    deadlineMs === Infinity ? () => {} : runtime.setTimer(deadlineMs - runtime.now(), () => listener?.(reason));
  return {
    callId: runtime.uuid(),
    requestId: "",
    operation: "chat",
    runtime,
    aborted: false,
    abortReason: undefined,
    onAbort(added) {
      listener = added;
      return () => {
        listener = null;
      };
    },
    markSent() {},
    markFirstToken() {},
    partialSoFar: null,
    dispose: cancel,
  };
}

function ownChooser(kind: BaselineSpec["kind"], sources: readonly SourceConfig[], worker: number): Chooser {
  const inflight = new Map(sources.map((source) => [source, 0]));
  const add = (source: SourceConfig, by: number): void => {
    inflight.set(source, inflight.get(source)! + by);
  };
  let turn = worker;
  const next = (): SourceConfig => sources[turn++ % sources.length]!;
  /** Ties in turn, or every process would begin with the same source. */
  const least = (): SourceConfig => {
    let best = next();
    for (const source of sources) if (inflight.get(source)! < inflight.get(best)!) best = source;
    return best;
  };
  return {
    alwaysPauses: true,
    choose: kind === "least_inflight" ? least : next,
    begun: (source) => add(source, 1),
    ended: (source) => add(source, -1),
  };
}

function weightedShuffle({ kernel }: World, sources: readonly SourceConfig[]): Chooser {
  const health = new Map(
    sources.map((source) => [source, { coolUntilMs: 0, ends: [] as { atMs: number; failed: boolean }[] }]),
  );
  const cool = (source: SourceConfig, forMs: number): void => {
    const own = health.get(source)!;
    own.coolUntilMs = Math.max(own.coolUntilMs, kernel.now() + forMs);
  };
  return {
    alwaysPauses: false,
    choose(runtime) {
      const healthy = sources.filter((source) => health.get(source)!.coolUntilMs <= kernel.now());
      let left = runtime.random() * healthy.reduce((sum, source) => sum + weightOf(source), 0);
      for (const source of healthy) {
        left -= weightOf(source);
        if (left < 0) return source;
      }
      return healthy.at(-1) ?? null;
    },
    begun() {},
    ended(source, error) {
      const own = health.get(source)!;
      const nowMs = kernel.now();
      own.ends = own.ends.filter(({ atMs }) => atMs > nowMs - FAILURE_WINDOW_MS);
      own.ends.push({ atMs: nowMs, failed: error !== null });
      if (error === null) return;
      if (TransientError.isInstance(error) && error.rateLimited === true)
        return cool(source, error.retryAfterMs ?? COOLDOWN_MS);
      const failures = own.ends.filter(({ failed }) => failed).length;
      // Its first failure is let pass.
      if (own.ends.length > 1 && failures > own.ends.length / 2) cool(source, COOLDOWN_MS);
    },
  };
}

function weightOf(source: SourceConfig): number {
  return source.rpm > 0 ? source.rpm : 100;
}
