import type {
  Governor,
  GovernorEvent,
  Grant,
  Refusal,
  Settle,
  TickBatch,
  TickReply,
  Verdict,
  Want,
} from "../../src/ports/governor.js";
import { SimulationKernel } from "../../src/testing/kernel.js";
import { type GovernorKind, type Simulation, type SimulationOptions, simulate, storeFor } from "./harness.js";

/** What a governor with scheduling rules would say, said by a test. */
export interface GovernorScript {
  /** Added to what the engine's own rules grant. */
  readonly grant?: (grant: Grant, want: Want) => Partial<Grant>;
  /** Refused before the engine is asked; null = it decides. */
  readonly refuse?: (want: Want) => Pick<Refusal, "kind" | "waitHintMs"> | null;
}

export interface Heard {
  readonly wants: Want[];
  readonly grants: Grant[];
  readonly settles: Settle[];
  readonly verdicts: (Verdict & { readonly atMs: number })[];
}

export interface Scheduled extends Simulation {
  readonly heard: Heard;
  /** Something that the rules would tell. */
  emit(event: GovernorEvent): void;
}

/** The public client on a governor that fills the scheduling fields as the script says; limits and breakers are real. */
export function simulateScheduled(
  kind: GovernorKind,
  script: GovernorScript,
  setup: Omit<SimulationOptions, "governor"> = {},
): Scheduled {
  const kernel = setup.kernel ?? new SimulationKernel();
  const store = storeFor(kernel, setup);
  const inner = kind === "async" ? store.connect(kernel.runtime()) : store.inner;
  const heard: Heard = { wants: [], grants: [], settles: [], verdicts: [] };
  const listeners = new Set<(event: GovernorEvent) => void>();
  const nowMs = kernel.runtime().now;
  const governor: Governor = {
    ...passing(inner),
    onEvent(listener) {
      listeners.add(listener);
      const stop = inner.onEvent(listener);
      return () => {
        listeners.delete(listener);
        stop();
      };
    },
    tick(batch) {
      // A want is brought up to date whenever it is asked: what counts is what it said then.
      heard.wants.push(...batch.wants.map((want) => ({ ...want })));
      heard.settles.push(...batch.settles);
      heard.verdicts.push(...batch.verdicts.map((verdict) => ({ ...verdict, atMs: nowMs() })));
      const refusals = refusalsOf(batch, script);
      const wants = batch.wants.filter((want) => !refusals.some((refusal) => refusal.leaseId === want.leaseId));
      const complete = (reply: TickReply): TickReply => {
        const grants = reply.grants.map((grant) => completed(grant, batch, script));
        heard.grants.push(...grants);
        return { ...reply, grants, refusals: [...refusals, ...reply.refusals] };
      };
      const reply = inner.tick({ ...batch, wants });
      return reply instanceof Promise ? reply.then(complete) : complete(reply);
    },
  };
  const simulation = simulate({ ...setup, kernel, options: { ...setup.options, governor } });
  return {
    ...simulation,
    heard,
    emit(event) {
      for (const listener of [...listeners]) listener(event);
    },
  };
}

function passing(inner: Governor): Governor {
  return {
    scope: inner.scope,
    tick: (batch) => inner.tick(batch),
    onEvent: (listener) => inner.onEvent(listener),
    snapshot: () => inner.snapshot(),
    progressAgeMs: () => inner.progressAgeMs(),
    close: () => inner.close(),
  };
}

function refusalsOf(batch: TickBatch, { refuse }: GovernorScript): Refusal[] {
  return batch.wants.flatMap((want) => {
    const refusal = refuse?.(want) ?? null;
    return refusal === null ? [] : [{ leaseId: want.leaseId, passedOver: [], ...refusal }];
  });
}

function completed(grant: Grant, batch: TickBatch, { grant: fill }: GovernorScript): Grant {
  const want = batch.wants.find((candidate) => candidate.leaseId === grant.leaseId)!;
  return { ...grant, ...fill?.(grant, want) };
}
