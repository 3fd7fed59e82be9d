import type { SourceConfig } from "../domain/source.js";
import type { Grant } from "../domain/tick.js";
import type { PartialReply } from "../errors.js";
import type { Runtime } from "../ports/runtime.js";
import type { AttemptContext } from "../ports/transport.js";
import type { Call } from "./call.js";
import type { Interruption } from "./interrupt.js";
import type { AttemptMark } from "./stall-clock.js";

type AbortListener = (reason: unknown) => void;

/**
 * One send to one source, as its transport sees it and as the books need it.
 * A class for its hot path: ten thousand in flight share one set of methods.
 */
export class Attempt implements AttemptContext {
  readonly call: Call;
  readonly source: SourceConfig;
  readonly grant: Grant;
  readonly waitedMs: number;
  /** 1-based within the call. */
  readonly number: number;
  readonly startedMs: number;
  readonly mark: AttemptMark;
  aborted = false;
  abortReason: unknown = undefined;
  interruption: Interruption | null = null;
  sent = false;
  firstTokenMs: number | null = null;
  partialSoFar: (() => PartialReply) | null = null;
  /** The permit has been given back. */
  settled = false;
  /** The transport's own listener, nearly always the only one. */
  #listener: AbortListener | null = null;
  #furtherListeners: Set<AbortListener> | null = null;

  constructor(call: Call, source: SourceConfig, grant: Grant, waitedMs: number) {
    this.call = call;
    this.source = source;
    this.grant = grant;
    this.waitedMs = waitedMs;
    this.startedMs = this.runtime.now();
    this.mark = call.clock.begin(this.startedMs);
    call.attempts += 1;
    this.number = call.attempts;
  }

  get callId(): string {
    return this.grant.leaseId;
  }

  get requestId(): string {
    return this.call.requestId;
  }

  get operation(): string {
    return this.call.kind;
  }

  get runtime(): Runtime {
    return this.call.environment.runtime;
  }

  onAbort(listener: AbortListener): () => void {
    if (this.aborted) {
      listener(this.abortReason);
      return () => {};
    }
    if (this.#listener === null) {
      this.#listener = listener;
    } else {
      this.#furtherListeners ??= new Set();
      this.#furtherListeners.add(listener);
    }
    return () => {
      if (this.#listener === listener) this.#listener = null;
      else this.#furtherListeners?.delete(listener);
    };
  }

  markSent(): void {
    this.sent = true;
  }

  markFirstToken(): void {
    if (this.firstTokenMs !== null) return;
    this.firstTokenMs = this.runtime.now() - this.startedMs;
    const { grant } = this;
    this.call.environment.dispatcher.verdict({
      leaseId: grant.leaseId,
      source: grant.source,
      epoch: grant.epoch,
      probe: grant.probe,
      kind: "first_token",
      ttftMs: this.firstTokenMs,
    });
  }

  /** Ends the attempt from outside; the transport closes its socket and rejects with `reason`. */
  abort(interruption: Interruption, reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.abortReason = reason;
    this.interruption = interruption;
    const first = this.#listener;
    const further = this.#furtherListeners;
    this.#listener = null;
    this.#furtherListeners = null;
    first?.(reason);
    for (const listener of further ?? []) listener(reason);
  }
}
