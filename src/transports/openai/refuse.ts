import type { SourceConfig } from "../../domain/source.js";
import type { PartialReply, PolyGatewayError } from "../../errors.js";
import type { AttemptContext } from "../../ports/transport.js";
import { classify, errorOf, type Refusal, type Verdict } from "./classify.js";
import { repairOf } from "./repair.js";
import type { WireBody } from "./request.js";
import type { SourceWire } from "./source-wire.js";

export interface RefusedSend {
  readonly source: SourceConfig;
  readonly context: AttemptContext;
  readonly wire: SourceWire;
  readonly body: WireBody;
  /** Words by which a refusal may name what the client added. */
  readonly ownFields?: readonly string[] | undefined;
  /** What had arrived before. */
  readonly partial?: PartialReply | undefined;
  /** Stands before the label of the error. */
  readonly operation?: string | undefined;
  /** What this kind of call reads besides in a refusal. */
  readonly refine?: (verdict: Verdict, refusal: Refusal) => Verdict;
}

/** The typed error of a refusal; what can be mended is remembered for the source, so that the next attempt does it. */
export function refusalError(refusal: Refusal, send: RefusedSend): PolyGatewayError {
  const { source, context, wire, partial, refine, operation } = send;
  const seen = classify(refusal, source, context.runtime.wallNow());
  // Within an answer that has begun, nothing can be asked again.
  const repair = partial === undefined ? repairOf(seen, refusal, send) : undefined;
  if (repair === undefined) {
    const verdict = refine === undefined ? seen : refine(seen, refusal);
    return errorOf(verdict, refusal, source, wire.redact, partial, operation);
  }
  const details = { ...seen.details, ...repair };
  return errorOf({ ...seen, code: "unsupported_param", details }, refusal, source, wire.redact, undefined, operation);
}
