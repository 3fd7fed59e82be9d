import type { Runtime } from "../../ports/runtime.js";
import type { PlannedCall } from "./workload.js";

/** How one call ended. */
export interface Answered {
  /** null = answered; else the code of its error. */
  readonly failure: string | null;
  /** From the call's start; null = there was none. */
  readonly firstTokenMs: number | null;
}

/** One process that makes calls, by the gateway or by a baseline. */
export interface Caller {
  readonly runtime: Runtime;
  /** Never rejects; stays pending for ever when its worker dies. */
  call(call: PlannedCall): Promise<Answered>;
  /** The process is killed. */
  drop(): void;
  close(): Promise<void>;
}

export type MakeCaller = (worker: number, name: string) => Caller;
