import { createSystemRuntime, type Runtime } from "../../src/index.js";

/** Real time that runs `factor` times as fast, so that waits of seconds can be tested over real HTTP. Logs nothing. */
export function createScaledRuntime(factor = 1): Runtime {
  const system = createSystemRuntime({ log: () => {} });
  if (factor === 1) return system;
  const startedAt = system.now();
  const startedWall = system.wallNow();
  const elapsedMs = (): number => (system.now() - startedAt) * factor;
  return {
    ...system,
    now: elapsedMs,
    wallNow: () => startedWall + elapsedMs(),
    sleep: (delayMs, signal) => system.sleep(delayMs / factor, signal),
    setTimer: (delayMs, callback) => system.setTimer(delayMs / factor, callback),
  };
}
