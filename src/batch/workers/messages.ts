import type { LineAnswer, LineCall } from "../kinds/kinds.js";
import type { BatchSnapshot } from "../types.js";
import type { WireError } from "./wire-error.js";

/** What the process of a batch and its workers say to each other: lists of these, as JSON. */

/** How a worker finds its configuration; everything else is in the environment that it inherits. */
export interface WorkerSetup {
  readonly scope: string;
  readonly config?: string;
  readonly env?: string;
  readonly db?: string;
}

export type ToWorker =
  | { readonly kind: "setup"; readonly setup: WorkerSetup }
  | { readonly kind: "call"; readonly id: number; readonly call: LineCall }
  | { readonly kind: "cancel"; readonly id: number }
  | { readonly kind: "ask" }
  /** Nothing comes any more: close the client and end. */
  | { readonly kind: "end" };

export interface ToldState {
  /** null: the governor can't say. */
  readonly snapshot: BatchSnapshot | null;
  /** Why it can't. */
  readonly trouble?: WireError;
  /** Permits of this worker. */
  readonly live: number;
}

export type FromWorker =
  | { readonly kind: "ready" }
  /** It can't work with this configuration: another start would end the same way. */
  | { readonly kind: "refused"; readonly reason: string }
  | { readonly kind: "answer"; readonly id: number; readonly answer: LineAnswer }
  | { readonly kind: "failure"; readonly id: number; readonly error: WireError }
  | ({ readonly kind: "state" } & ToldState)
  /** `topic`: other workers say the same of it, perhaps in other words. */
  | { readonly kind: "note"; readonly text: string; readonly topic?: string };
