import type { PolyGatewayError } from "../errors.js";
import type { UpstreamLimits } from "./upstream-limits.js";
import type { Usage } from "./usage.js";

/** How one embedding client works, every default filled in. */
export interface EmbeddingConfig {
  /** Texts per request; ≥ 1. */
  readonly batchSize: number;
  /** Width every vector must have; undefined = whatever comes. */
  readonly expectedDim: number | undefined;
  /** Scale every vector to length 1. */
  readonly normalize: boolean;
  /** Batches of one call in flight at once; ≥ 1. */
  readonly concurrency: number;
}

/** What messages call the text at this place of a call's list. */
export const textName = (index: number): string => `texts[${index}]`;

/** One text's vector: what a source sent, exact. */
export type Vector = Float32Array | readonly number[];

/** One batch of texts, embedded. */
export interface EmbeddingCompletion {
  /** In the order of the texts, all of one width. */
  readonly vectors: readonly Vector[];
  /** Width of every vector; ≥ 1. */
  readonly dim: number;
  /** null = the provider reported none. */
  readonly usage: Usage | null;
  readonly modelReported: string | null;
  readonly statusCode: number;
  readonly latencyMs: number;
  /** What the answer's headers said of the account's limits. */
  readonly limits?: UpstreamLimits | undefined;
}

/** What one call of `embed()` may say beside its texts. */
export interface EmbedOptions {
  /** Only sources with this model. */
  readonly model?: string;
  /** Ask for vectors of this width; a source that can't is an error, never another width. */
  readonly dimensions?: number;
  /** Width that every vector must have; not sent. Default: that of the client. */
  readonly expectedDim?: number;
  /** `float32`: `Float32Array` rows, a quarter of the memory. Default `number`: plain arrays. */
  readonly vectors?: "number" | "float32";
  /**
   * What becomes of a call with a text that can't be embedded. `fail`: it fails, and the error's `details.index` names the
   * text. `skip`: the others are embedded, its vector is null and its error stands in `failed`. Default `fail`.
   */
  readonly onBadItem?: "fail" | "skip";
  readonly sessionId?: string;
  readonly parentCallId?: string;
  /** A name for calls whose lengths are alike, for token estimates. Not sent. Default: the kind of operation. */
  readonly tag?: string;
  readonly signal?: AbortSignal;
  /** Higher goes first. Default 0. */
  readonly priority?: number;
  readonly failover?: "on" | "off";
  /** Longest time for all batches together, queue and retries included, in ms. */
  readonly deadlineMs?: number;
}

/** One batch of a result. */
export interface EmbeddedBatch {
  /** Place of its first text in the list. */
  readonly from: number;
  /** How many texts it has; they stand one after the other. */
  readonly count: number;
  /** Also the id of its telemetry row. */
  readonly callId: string;
  readonly sourceName: string;
  /** In the price table's currency; null = unknown. */
  readonly cost: number | null;
  readonly promptTokens: number;
  /** Sends it took, failed ones included. */
  readonly attempts: number;
}

/** A text without a vector. */
export interface FailedText {
  /** Its place in the list. */
  readonly index: number;
  /** RequestRejectedError or ResultInvalidError. */
  readonly error: PolyGatewayError;
}

/** Vectors in the order of the texts, and what they took; fields are only ever added. */
export interface EmbedResult<Row = number[]> {
  readonly vectors: Row[];
  /** The texts whose vector is null, in their order; only with `onBadItem: "skip"`. */
  readonly failed?: readonly FailedText[];
  /** Width of every vector; 0 without texts. */
  readonly dim: number;
  /** Summed over the batches. */
  readonly promptTokens: number;
  /** `estimated` when any batch was. */
  readonly usageSource: Usage["source"];
  /** Summed; null when the cost of any batch is unknown. */
  readonly cost: number | null;
  /** Of the first batch; "" without texts. */
  readonly callId: string;
  readonly batches: readonly EmbeddedBatch[];
  /** Configured model of the first batch's source; absent, like the fields below, when there was nothing to send. */
  readonly model?: string;
  readonly provider?: string;
  readonly sourceName?: string;
  /** Summed over the batches, so above the real time when they run side by side. */
  readonly latencyMs?: number;
}
