import type { LimitOptions } from "../../config/options.js";
import type { SchedulingConfig } from "../../domain/scope.js";
import type { Fault } from "./faults.js";

/** What a simulated provider really does, whatever its client believes. */
export interface UpstreamSpec {
  readonly name: string;
  /** Enforced by buckets; 0 = not enforced. */
  readonly rpm: number;
  readonly tpm: number;
  /** Requests in progress; 0 = not enforced. */
  readonly concurrency: number;
  /** Seconds of the rate a full bucket holds. */
  readonly bucketS: number;
  /** Medians; each attempt draws its own. */
  readonly ttftMs: number;
  readonly tpotMs: number;
  /** A 429 says when to come back, in whole seconds. */
  readonly retryAfter: boolean;
  /** Every answer tells limits and remainders. */
  readonly headers: boolean;
  /** A refused request is charged against the request limit, as some providers do. */
  readonly chargesRejected: boolean;
  /** Limits begin at a share and reach the whole after a while. */
  readonly ramp?: { readonly fromShare: number; readonly overMs: number };
  /** Self-hosted: beyond this many requests in progress all of them get slower, and nothing is refused. */
  readonly knee?: number;
  /** Share of attempts whose first token takes `factor` times as long. */
  readonly slowStart?: { readonly share: number; readonly factor: number };
  readonly faults: readonly Fault[];
}

export interface SourceSpec {
  readonly upstream: UpstreamSpec;
  /** What the client was told of the limits. */
  readonly configured: LimitOptions;
}

/** What happens to workers and store, for the runs that look for broken invariants. */
export interface ChaosSpec {
  /** A worker dies at these moments; another one takes its place and its calls 2 s later. */
  readonly deathsMs: readonly number[];
  readonly freezes: readonly { readonly atMs: number; readonly forMs: number }[];
  /** Share of ticks whose reply is lost after they ran. */
  readonly lostReplyShare: number;
  /** The store forgets everything at these moments. */
  readonly restartsMs: readonly number[];
  /** The store answers nothing meanwhile. */
  readonly pauses: readonly { readonly atMs: number; readonly forMs: number }[];
}

export interface Scenario {
  readonly id: string;
  readonly title: string;
  readonly sources: readonly SourceSpec[];
  readonly calls: number;
  /** Waiting callers of each worker: each makes the next call when its last one has ended. */
  readonly callers: readonly number[];
  /** Calls of one worker alone, in shares; absent = all workers draw from one pool. */
  readonly shares?: readonly number[];
  /** Open loop instead: calls come at random, at this share of the nominal capacity. */
  readonly offeredLoad?: number;
  readonly deadlineMs?: number;
  /** This share of the calls belongs to the class that goes first. */
  readonly highShare?: number;
  readonly scheduling?: Partial<SchedulingConfig>;
  readonly chaos?: ChaosSpec;
  /** One way between a worker and the store. Default 0.5 ms. */
  readonly storeDelayMs?: number;
  /** The one worker keeps its governor in its own process: every tick is answered in the same turn. */
  readonly ownGovernor?: boolean;
  /** Calls may wait so long while no attempt is on its way; absent = that is not judged. */
  readonly idlesAtMostMs?: number;
  /** The source and the time whose isolation and recovery are measured; `*` = all sources together. */
  readonly watched?: { readonly source: string; readonly fromMs: number; readonly toMs: number };
  /** The source whose calls are counted over the first ten minutes. */
  readonly deadSource?: string;
  /** Results of these scenarios, same seed, that its goals compare with. */
  readonly comparesWith?: readonly string[];
}
