import { readFileSync } from "node:fs";
import type { UpstreamScript } from "../../src/testing/index.js";

/** The records of test/data/cases.jsonl: upstream misbehaviours with what must come of them. */

export type Fields = Record<string, unknown>;

export interface CaseOptions {
  readonly idleTimeoutMs?: number;
  readonly firstTokenTimeoutMs?: number;
  readonly totalTimeoutMs?: number;
  readonly abortAfterMs?: number;
  readonly transient400?: "relay";
  /** maxAttempts − 1. */
  readonly retries?: number;
  readonly maxRateLimited?: number;
}

export interface CaseRequest {
  readonly path: string;
  readonly body: Fields & {
    readonly messages: { readonly role: string; readonly content: string }[];
    /** Of a record about embeddings, in place of the messages. */
    readonly input?: readonly string[];
    readonly dimensions?: number;
  };
  readonly clientOptions?: CaseOptions;
}

/** Expected usage; null = unknown. */
export interface CaseUsage {
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
  readonly totalTokens: number | null;
  readonly cachedTokens: number | null;
  readonly reasoningTokens: number | null;
}

export interface CaseExpectation {
  readonly outcome: "ok" | "transient" | "dead" | "rejected" | "invalid" | "aborted";
  readonly reason?: string;
  readonly content?: string;
  readonly embeddings?: readonly (readonly number[])[];
  readonly parsed?: unknown;
  readonly reasoning?: string;
  readonly toolCalls?: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
  readonly finishReason?: string | null;
  readonly rawFinishReason?: string;
  readonly choices?: readonly { readonly content: string; readonly finishReason: string }[];
  readonly usage?: CaseUsage | null;
  readonly retryAfterS?: number | null;
  readonly toleranceS?: number;
  readonly message?: string;
  readonly param?: string;
  readonly limit?: number;
  readonly affordableTokens?: number;
  readonly partialContent?: string;
  readonly upstreamRequests?: number;
  readonly upstreamClosedWithinMs?: number;
  readonly maxWallMs?: number;
  readonly minWallMs?: number;
  /** The failed source may be asked again by the same call. */
  readonly retrySame?: boolean;
  /** Another source may take the call. */
  readonly failover?: boolean;
  readonly telemetry?: { readonly partialContent: string; readonly usage: { readonly estimated: boolean } };
  readonly scaled?: string;
  readonly breakerState?: string;
  readonly cacheHit?: boolean;
  readonly cacheable?: boolean;
  /** `structured()` asks again, and its message names these. */
  readonly reask?: boolean;
  readonly reaskMentions?: readonly string[];
  readonly schemaOut?: { readonly noRefSiblings?: boolean; readonly noSpacesInRefs?: boolean };
  readonly upstreamRequestsTo?: Readonly<Record<string, number>>;
  readonly note?: string;
}

export interface CaseStep {
  readonly request?: CaseRequest;
  /** Source that the step is about. */
  readonly deployment?: string;
  readonly state?: "open";
  readonly config?: {
    readonly threshold?: number;
    readonly retries?: number;
    readonly cooldownMs?: number;
    readonly failover?: boolean;
  };
  readonly upstream?: UpstreamScript;
  /** One script per source. */
  readonly upstreams?: Readonly<Record<string, UpstreamScript>>;
  readonly repeat?: number;
  readonly times?: number;
  readonly everyMs?: number;
  readonly waitMs?: number;
  readonly expect?: CaseExpectation;
}

interface CaseHead {
  readonly id: string;
  readonly family: string;
  readonly title: string;
  readonly expect: CaseExpectation;
}

export interface UpstreamCase extends CaseHead {
  readonly kind: "upstream";
  readonly upstream: UpstreamScript;
  readonly request: CaseRequest;
}

export interface SequenceCase extends CaseHead {
  readonly kind: "sequence";
  readonly steps: readonly CaseStep[];
}

export interface LocalCase extends CaseHead {
  readonly kind: "local";
  readonly scenario: { readonly schemaIn?: Fields };
}

export interface OtherCase extends CaseHead {
  readonly kind: "server" | "store";
}

export type CaseRecord = UpstreamCase | SequenceCase | LocalCase | OtherCase;

export const caseRecords: readonly CaseRecord[] = readFileSync(new URL("../data/cases.jsonl", import.meta.url), "utf8")
  .split("\n")
  .filter((line) => line.trim() !== "")
  .map((line) => JSON.parse(line) as CaseRecord);
