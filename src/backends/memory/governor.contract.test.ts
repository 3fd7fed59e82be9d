import { describe, test } from "vitest";
import { SCHEDULING_OFF } from "../../domain/scope.js";
import type { Runtime } from "../../ports/runtime.js";
import { type GovernorBackend, type GovernorSetup, governorContract } from "../../testing/contracts/governor.js";
import { governorProperties } from "../../testing/contracts/governor-properties.js";
import { MemoryGovernor } from "./governor.js";

/** A clock that only moves when told; its two faces differ, so that mixing them up shows. */
class ManualClock {
  #elapsedMs = 0;

  readonly runtime: Runtime = {
    now: () => 12_345.678 + this.#elapsedMs,
    wallNow: () => 1_700_000_000_123 + this.#elapsedMs,
    random: () => refuse("random"),
    sleep: () => refuse("sleep"),
    setTimer: () => refuse("setTimer"),
    uuid: () => refuse("uuid"),
    log: () => {},
  };

  advance(ms: number): void {
    this.#elapsedMs += ms;
  }
}

/** Rules take their randomness from the tick and never wait by themselves. */
function refuse(what: string): never {
  throw new Error(`a governor's decisions don't use runtime.${what}`);
}

async function makeBackend(setup: GovernorSetup): Promise<GovernorBackend> {
  const clock = new ManualClock();
  const governor = new MemoryGovernor({
    ...setup,
    scheduling: { ...SCHEDULING_OFF, ...setup.scheduling },
    runtime: clock.runtime,
  });
  return {
    governor,
    advance: async (ms) => clock.advance(ms),
    now: () => clock.runtime.wallNow(),
    close: () => governor.close(),
  };
}

describe("MemoryGovernor keeps the governor contract", () => {
  governorContract({ test, makeBackend });
  governorProperties({ test, makeBackend });
});
