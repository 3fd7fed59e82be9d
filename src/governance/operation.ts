import type { OperationKind } from "../domain/record.js";
import type { SourceConfig } from "../domain/source.js";
import type { UpstreamLimits } from "../domain/upstream-limits.js";
import type { BilledUsage, Usage } from "../domain/usage.js";
import type { PartialReply, RequestRejectedError, SourceReasonDetail } from "../errors.js";
import type { AttemptContext } from "../ports/transport.js";
import type { Cancellation } from "./cancellation.js";

/**
 * What a client tells the one loop about its kind of call (spec 01 "One loop, three kinds of call").
 * `Value` goes to the caller; `Completion` is the whole answer, known when reading has ended.
 */
export interface Operation<Value, Completion> {
  readonly kind: OperationKind;
  /** Sources that can do this call, in the order they were configured. */
  readonly sources: readonly SourceConfig[];
  /** Their names; one array per client and selection, because equal calls are recognised by its identity. */
  readonly candidates: readonly string[];
  /** Sources that were left out because they can't do this call; null = none. */
  readonly incapable?: Incapable | null;
  /** Estimated tokens of the prompt alone. */
  readonly promptTokens: number;
  /** Most tokens the answer may have; undefined = no limit is known. */
  readonly maxTokens?: number | undefined;
  /** Tokens to reserve at admission. */
  readonly estTokens: number;
  /** Images in the request, which some providers are paid for one by one. Default 0. */
  readonly images?: number;
  /** The reader of a broken stream throws away what it has and reads another attempt from the start. Default: it can't. */
  readonly mayRestart?: boolean;
  /** Whether this source is asked to stream, so that a first token is to be expected. Default: it isn't. */
  streams?(source: SourceConfig): boolean;
  /** Resolves with the whole answer, or with an OpenedStream at its commit point. */
  attempt(
    source: SourceConfig,
    context: AttemptContext,
    release: ReleasePermit,
  ): Promise<Completion | OpenedStream<Value, Completion>>;
  /** Why no source can do this call, when that is the request's own fault. */
  noneAble?(): RequestRejectedError | undefined;
  /** Columns 9 and 21 of a telemetry row; `source` null on a row without an attempt. */
  describeRequest(source: SourceConfig | null): { messages: string | null; sampling: string | null };
  describeReply(completion: Completion): ReplyFacts;
  /** What arrived before an attempt failed; null when nothing did. */
  describePartial(partial: PartialReply): PartialFacts;
}

/**
 * Gives the permit back before the attempt is over: the provider has answered, and what remains is to look at the answer,
 * which may take as long as a user's own code does.
 */
export type ReleasePermit = (context: AttemptContext, facts: ReplyFacts) => void;

export interface Incapable {
  readonly reasons: Readonly<Record<string, SourceReasonDetail>>;
  /** What the call ends with when it has no other source; made at that moment. */
  readonly refusal: () => RequestRejectedError;
}

/** A stream that has begun: what the caller gets of it, and the promise of the whole. */
export class OpenedStream<Value, Completion> {
  readonly value: Value;
  readonly done: Promise<Completion>;

  constructor(value: Value, done: Promise<Completion>) {
    this.value = value;
    this.done = done;
  }
}

export interface ReplyFacts {
  /** With the pages that were read, where those are paid for. */
  readonly usage: BilledUsage;
  readonly response: string | null;
  readonly thinking: string | null;
  readonly modelReported: string | null;
  readonly statusCode: number | null;
  readonly finishReason: string | null;
  readonly latencyMs: number;
  readonly ttftMs: number | null;
  /** What the answer's headers said of the account's limits. */
  readonly limits?: UpstreamLimits | undefined;
}

export interface PartialFacts {
  readonly usage: Usage;
  readonly response: string | null;
  readonly thinking: string | null;
}

/** How a call ended well: what the client needs to build its response. */
export interface Answered<Completion> {
  readonly completion: Completion;
  readonly facts: ReplyFacts;
  readonly costNanos: bigint | null;
}

export interface Governed<Value, Completion> {
  /** null for a plain call: the completion is all there is. */
  readonly value: Value | null;
  readonly source: SourceConfig;
  readonly callId: string;
  readonly requestId: string;
  /** Sends of this call, this one included. */
  readonly attempts: number;
  /** Settled for a plain call; for a stream it settles when reading has ended and everything is booked. */
  readonly ended: Answered<Completion> | Promise<Answered<Completion>>;
}

/** Is told what each attempt of a call was booked with, as its row says it. */
export interface Ledger {
  book(usage: Usage, costNanos: bigint | null): void;
}

/** The caller's wishes for one call. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Our own code's way to leave, e.g. when the consumer of a stream does. */
  readonly cancellation?: Cancellation;
  readonly deadlineMs?: number;
  /** What texts call the deadline, where `deadlineMs` is only what is left of one. Default: `deadlineMs`. */
  readonly wholeDeadlineMs?: number;
  readonly priority?: number;
  readonly failover?: "on" | "off";
  readonly sessionId?: string;
  readonly parentCallId?: string;
  /** Calls whose lengths are alike, for token estimates. Default: the kind of operation. */
  readonly tag?: string;
  /** A second attempt beside one that shows no token. Default: what the scope says. */
  readonly hedge?: boolean;
  /** Default: nobody asks. */
  readonly ledger?: Ledger;
}
