import type { GatewayOptions, SourceOptions } from "../../src/config/options.js";
import { GatewayClient } from "../../src/gateway.js";
import { SimulationKernel } from "../../src/testing/kernel.js";
import { createMemoryRecorder, type MemoryRecorder } from "../../src/testing/memory-recorder.js";
import { createScriptedTransport, type Script, type ScriptedTransport } from "../../src/testing/scripted-transport.js";

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
}

export const hi = { messages: [{ role: "user", content: "hi" }] };

/** The public client on virtual time: only the provider and the clock are not real. */
export function simulate(setup: SimulationOptions = {}): Simulation {
  const kernel = setup.kernel ?? new SimulationKernel();
  const transport = createScriptedTransport(setup.script ?? (() => ({ afterMs: 100 })));
  const { commit } = setup;
  const recorder = createMemoryRecorder(commit === undefined ? undefined : () => commit(kernel));
  const client = new GatewayClient({
    scope: "LLM",
    sources: (setup.sources ?? [{}]).map((source, index) => ({
      name: `s_${index + 1}`,
      baseUrl: "http://127.0.0.1:9/v1",
      apiKey: "sk-simulated-key",
      model: "m",
      ...source,
    })),
    runtime: kernel.runtime(),
    transport,
    telemetry: recorder,
    ...setup.options,
  });
  return { kernel, client, transport, recorder };
}

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
