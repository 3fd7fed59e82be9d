import type { LimitOptions, SourceOptions } from "polygateway";

/** What a worker is to do; plain data, for it goes to another process. */
export interface WorkerPlan {
  readonly scope: string;
  readonly sources: readonly SourceOptions[];
  readonly global: LimitOptions;
  readonly redisUrl: string;
  readonly telemetry: { readonly kind: "postgres" | "sqlite"; readonly place: string };
  readonly callers: number;
  /** A caller begins a call no sooner than this after its last one. */
  readonly cycleMs: number;
  readonly leaseTtlMs: number;
}

/** A permit as the worker was told of it, before anything is sent with it. */
export interface GrantNote {
  /** The lease, the call_id of the attempt's row, and the id in the provider's ledger. */
  readonly id: string;
  readonly source: string;
  readonly probe: boolean;
  readonly tokens: number;
}

/** Ends of calls, by how they ended. */
export interface Tally {
  readonly answered: number;
  /** By class; only those of the taxonomy. */
  readonly failed: Readonly<Record<string, number>>;
}

export type FromWorker =
  | { readonly kind: "grants"; readonly atMs: number; readonly grants: readonly GrantNote[] }
  | { readonly kind: "tally"; readonly tally: Tally }
  /** What should never happen in a worker: an error out of the taxonomy, a rejection that nobody handles. */
  | { readonly kind: "trouble"; readonly text: string };

export type ToWorker = { readonly kind: "start"; readonly plan: WorkerPlan } | { readonly kind: "stop" };
