import type { LimitOptions, SourceOptions } from "polygateway";

export interface TelemetryPlan {
  readonly kind: "postgres" | "sqlite";
  readonly place: string;
  /** Absent: the recorder's default, which no fault here lasts long enough to fill. */
  readonly queueSize?: number;
}

/** What a worker is to do; plain data, for it goes to another process. */
export interface WorkerPlan {
  readonly scope: string;
  readonly sources: readonly SourceOptions[];
  readonly global: LimitOptions;
  readonly redisUrl: string;
  readonly telemetry: TelemetryPlan;
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

/** What a process gave its recorder, and what the recorder says became of it. */
export interface RowCount {
  readonly given: number;
  readonly written: number;
  readonly dropped: number;
}

/** Ends of calls, by how they ended. */
export interface Tally {
  readonly answered: number;
  /** By class; only those of the taxonomy. */
  readonly failed: Readonly<Record<string, number>>;
  readonly rows: RowCount;
}

export type FromWorker =
  | { readonly kind: "grants"; readonly atMs: number; readonly grants: readonly GrantNote[] }
  /** Permits were asked for, and no answer came: nobody knows whether they were given. */
  | { readonly kind: "doubts"; readonly atMs: number; readonly ids: readonly string[] }
  /** Attempts that may be sent although their row in the journal is not committed. */
  | { readonly kind: "unwritten"; readonly ids: readonly string[] }
  | { readonly kind: "tally"; readonly tally: Tally }
  /** Everything that an error told, however deep. */
  | { readonly kind: "error"; readonly text: string }
  /** What should never happen in a worker: an error out of the taxonomy, a rejection that nobody handles. */
  | { readonly kind: "trouble"; readonly text: string };

export type ToWorker =
  | { readonly kind: "start"; readonly plan: WorkerPlan }
  /** From now on its wall clock is off by so much. */
  | { readonly kind: "clock"; readonly offsetMs: number }
  | { readonly kind: "stop" };
