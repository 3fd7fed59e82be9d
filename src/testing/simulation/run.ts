import { type BaselineSpec, baselineCallers } from "./baselines.js";
import { createCallPool } from "./call-pool.js";
import { drive } from "./drive.js";
import { gatewayCallers, gatewayOptions, scopeConfig } from "./gateway-caller.js";
import { idleTimes } from "./liveness.js";
import { type Metrics, measure } from "./metrics.js";
import type { Scenario } from "./scenario.js";
import { createSharedStore, type Tamper } from "./store.js";
import { createWorld } from "./world.js";

export interface RunOptions {
  readonly seed: number;
  /** Instead of the gateway. */
  readonly baseline?: BaselineSpec;
  readonly keepsTrace?: boolean;
  /** Changes what the store answers; for tests of the observer. */
  readonly tamper?: Tamper;
}

export interface RunResult {
  readonly scenario: Scenario;
  readonly seed: number;
  readonly policy: string;
  readonly metrics: Metrics;
  readonly violations: readonly string[];
  readonly violationCount: number;
  readonly hash: string;
  readonly trace: readonly string[];
}

/** A lease of a dead worker ends after its TTL; nothing else takes longer. */
const LEASE_TTL_MS = 30_000;

/** One scenario, one seed, from the first call to the last check. */
export async function runScenario(scenario: Scenario, options: RunOptions): Promise<RunResult> {
  const world = createWorld(scenario, options.seed, options.keepsTrace ?? false);
  const pool = createCallPool(scenario, world.workload, () => world.kernel.now());
  const { baseline } = options;
  if (baseline === undefined) await runGateway(world, pool, options.tamper);
  else await drive(world, pool, baselineCallers(world, baseline));
  return {
    scenario,
    seed: options.seed,
    policy: baseline?.name ?? "gateway",
    metrics: measure(world, pool.firstEmptyMs()),
    violations: world.observer.violations,
    violationCount: world.observer.violationCount,
    hash: world.kernel.traceHash(),
    trace: world.trace.lines,
  };
}

async function runGateway(
  world: ReturnType<typeof createWorld>,
  pool: ReturnType<typeof createCallPool>,
  tamper: Tamper | undefined,
): Promise<void> {
  const { kernel, observer, scenario } = world;
  const options = gatewayOptions(scenario);
  const config = scopeConfig(options);
  observer.expect({ limits: new Map(config.sources.map((source) => [source.name, source])) });
  const store = createSharedStore(world, config, tamper);
  for (const atMs of scenario.chaos?.restartsMs ?? []) world.runtime.setTimer(atMs, () => store.restartEmpty());
  await drive(world, pool, gatewayCallers(world, options, store));
  const hadLosses = scenario.chaos !== undefined;
  if (hadLosses) await kernel.advance(LEASE_TTL_MS + 1_000);
  observer.finish(world.attempts, world.ends.length, hadLosses, store.snapshot());
  for (const what of idleTimes(world)) observer.violate(what);
}
