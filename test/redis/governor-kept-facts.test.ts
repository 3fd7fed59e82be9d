import fc from "fast-check";
import { test } from "vitest";
import { MemoryGovernor, type MemoryGovernorOptions } from "../../src/backends/memory/governor.js";
import { describeScope, describeSource } from "../../src/domain/description.js";
import { MemoryLeases } from "../../src/domain/memory-leases.js";
import { priceFactors } from "../../src/domain/price-factors.js";
import { BREAKER_DEFAULTS, SCHEDULING_DEFAULTS } from "../../src/domain/scope.js";
import { newScopeState } from "../../src/domain/scope-state.js";
import { reclaimExpired } from "../../src/domain/settlement.js";
import { NO_LIMITS } from "../../src/domain/source.js";
import { runTick } from "../../src/domain/tick-rules.js";
import type { Governor, GovernorEvent } from "../../src/ports/governor.js";
import type { Runtime } from "../../src/ports/runtime.js";
import { sourceConfig } from "../../src/testing/contracts/governor/bench.js";
import { randomRuns } from "../support/random-runs.js";
import { playOnBoth } from "./differential.js";
import { type DifferentialScript, differentialScript } from "./differential-script.js";

/** The same rules on a state that keeps nothing from one call of a tick to the next: each is judged from scratch. */
function forgetfulGovernor(options: MemoryGovernorOptions): Governor {
  const { scope, sources, runtime } = options;
  const global = { ...NO_LIMITS, ...options.global };
  const setup = {
    sources,
    global,
    breaker: { ...BREAKER_DEFAULTS, ...options.breaker },
    selector: options.selector ?? "health_aware",
    scheduling: { ...SCHEDULING_DEFAULTS, ...options.scheduling },
    priceFactors: priceFactors(sources, options.prices, options.scheduling?.priceWeight),
    leaseTtlMs: options.leaseTtlMs ?? 30_000,
  };
  const state = newScopeState(setup, runtime.now(), new MemoryLeases());
  Object.defineProperty(state, "keepsFacts", { get: () => false, set: () => {} });
  const clock = () => ({ nowMs: runtime.now(), wallMs: runtime.wallNow() });
  const listeners = new Set<(event: GovernorEvent) => void>();
  return {
    scope,
    tick(batch) {
      const { reply, events } = runTick(state, batch, clock());
      for (const event of events) for (const listener of listeners) listener(event);
      return reply;
    },
    onEvent(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    snapshot() {
      const { pool } = state;
      reclaimExpired(state, clock());
      const described = [...state.sources.values()].map((source) => describeSource(state, source, clock()));
      state.pool = pool;
      return { scope, ...describeScope(state), sources: described, backend: { kind: "memory", ok: true } };
    },
    progressAgeMs: () => runtime.now() - state.lastProgressMs,
    close: async () => {},
  };
}

const body = async ({ sources, steps, ...setup }: DifferentialScript) => {
  let nowMs = 1_700_000_000_123.456;
  const options = {
    ...setup,
    scope: "kept-facts",
    sources: sources.map((source, index) => sourceConfig(`s${index}`, source)),
    runtime: { now: () => nowMs, wallNow: () => nowMs } as Runtime,
  };
  const advance = (ms: number) => {
    nowMs += ms;
  };
  const pair = { memory: forgetfulGovernor(options), redis: new MemoryGovernor(options), advance };
  await playOnBoth(pair, { sources, steps, ...setup });
};

test("what a tick keeps from call to call changes no answer", async () => {
  await fc.assert(fc.asyncProperty(differentialScript, body), { numRuns: randomRuns(400) });
}, 120_000);
