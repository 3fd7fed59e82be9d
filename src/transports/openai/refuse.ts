import type { SourceConfig } from "../../domain/source.js";
import type { PartialReply, PolyGatewayError } from "../../errors.js";
import type { AttemptContext } from "../../ports/transport.js";
import { classify, errorOf, type Refusal, type Verdict } from "./classify.js";
import type { SourceWire } from "./source-wire.js";

export interface RefusedSend {
  readonly source: SourceConfig;
  readonly context: AttemptContext;
  readonly wire: SourceWire;
  /** Names of the fields of ours in the refused body. */
  readonly added: readonly string[];
  /** Words by which a refusal may name what the client added. */
  readonly ownFields?: readonly string[] | undefined;
  /** What had arrived before. */
  readonly partial?: PartialReply | undefined;
  /** What this kind of call reads besides in a refusal. */
  readonly refine?: (verdict: Verdict, refusal: Refusal) => Verdict;
}

/**
 * The typed error of a refusal. A field that WE added and the source refuses by name is remembered for that source: the
 * next attempt leaves it out. A caller's own field is never dropped.
 */
export function refusalError(refusal: Refusal, send: RefusedSend): PolyGatewayError {
  const { source, context, wire, partial, refine } = send;
  const seen = classify(refusal, source, context.runtime.wallNow());
  // Within an answer that has begun, nothing can be asked again.
  const own = partial === undefined ? refusedOwnParam(seen, refusal, send) : undefined;
  if (own === undefined) {
    const verdict = refine === undefined ? seen : refine(seen, refusal);
    return errorOf(verdict, refusal, source, wire.redact, partial);
  }
  wire.dropped.add(own);
  const details = { ...seen.details, param: own, droppedByUs: true };
  return errorOf({ ...seen, code: "unsupported_param", details }, refusal, source, wire.redact);
}

/** How a refusal may name a field of ours otherwise. */
const ALSO_KNOWN_AS: Readonly<Record<string, RegExp>> = { encoding_format: /encoding[ _]?format|\bbase64\b/i };

function refusedOwnParam(
  { code, upstreamMessage, details }: Verdict,
  { statusCode, embedded, text }: Refusal,
  { added, ownFields }: RefusedSend,
): string | undefined {
  if (!embedded && statusCode !== 400 && statusCode !== 422) return undefined;
  if (code !== "bad_request" && code !== "unsupported_param") return undefined;
  const own = added.find((param) => ALSO_KNOWN_AS[param]?.test(text) ?? text.includes(param));
  if (own !== undefined || ownFields === undefined) return own;
  // A body may quote the whole request: what the provider says counts, where it says something.
  const said = upstreamMessage === "" ? text : `${upstreamMessage} ${String(details.param ?? "")}`;
  return ownFields.find((name) => said.toLowerCase().includes(name));
}
