import type { SimulationKernel } from "../kernel.js";

/** What happened, in order: always part of the run's fingerprint, kept as lines only where somebody will read them. */
export interface Trace {
  readonly lines: string[];
  add(what: string, worker: string, source: string, callIndex: number): void;
}

export function createTrace(kernel: SimulationKernel, keepsLines: boolean): Trace {
  const lines: string[] = [];
  return {
    lines,
    add(what, worker, source, callIndex) {
      kernel.trace(what);
      kernel.trace(source);
      kernel.trace(callIndex);
      if (keepsLines) lines.push(`${kernel.now().toFixed(3)} ${worker} ${what} ${source} call ${callIndex}`);
    },
  };
}
