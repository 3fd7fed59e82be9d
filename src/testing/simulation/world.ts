import type { Runtime } from "../../ports/runtime.js";
import { SimulationKernel } from "../kernel.js";
import { createObserver, type Observer } from "./observer.js";
import type { AttemptRecord, CallEnd } from "./records.js";
import type { Scenario } from "./scenario.js";
import { SharedServer } from "./shared-server.js";
import { createTrace, type Trace } from "./trace.js";
import { SimulatedSource, UPSTREAM_STREAM } from "./upstream.js";
import { planWorkload, type Workload } from "./workload.js";

/** Everything of one run, whoever makes the calls. */
export interface World {
  readonly kernel: SimulationKernel;
  /** Nobody's own: the scenario's driver, the providers. Never dies or freezes. */
  readonly runtime: Runtime;
  readonly scenario: Scenario;
  readonly seed: number;
  readonly workload: Workload;
  readonly sources: ReadonlyMap<string, SimulatedSource>;
  readonly servers: ReadonlyMap<string, SharedServer>;
  readonly attempts: AttemptRecord[];
  readonly ends: CallEnd[];
  readonly observer: Observer;
  readonly trace: Trace;
}

export function createWorld(scenario: Scenario, seed: number, keepsTrace: boolean): World {
  const kernel = new SimulationKernel({ seed, maxEvents: 100_000_000 });
  const runtime = kernel.runtime("world");
  const sources = new Map<string, SimulatedSource>();
  const servers = new Map<string, SharedServer>();
  scenario.sources.forEach(({ upstream }, index) => {
    sources.set(upstream.name, new SimulatedSource(upstream, seed, UPSTREAM_STREAM + index));
    if (upstream.knee !== undefined) servers.set(upstream.name, new SharedServer(runtime, upstream.knee));
  });
  return {
    kernel,
    runtime,
    scenario,
    seed,
    workload: planWorkload(scenario, seed),
    sources,
    servers,
    attempts: [],
    ends: [],
    observer: createObserver(kernel),
    trace: createTrace(kernel, keepsTrace),
  };
}
