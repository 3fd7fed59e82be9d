import type { SourceConfig } from "../../domain/source.js";
import type { PartialReply, PolyGatewayError } from "../../errors.js";
import type { AttemptContext } from "../../ports/transport.js";
import { classify, errorOf, type Refusal } from "./classify.js";
import type { SourceWire } from "./source-wire.js";

/**
 * The typed error of a refusal. A field that WE added and the source refuses by name is remembered for that source: the
 * next attempt leaves it out. A caller's own field is never dropped.
 *
 * @param added names of the fields of ours in the refused body
 */
export function refusalError(
  refusal: Refusal,
  { source, context }: { readonly source: SourceConfig; readonly context: AttemptContext },
  wire: SourceWire,
  added: readonly string[],
  partial?: PartialReply,
): PolyGatewayError {
  const verdict = classify(refusal, source, context.runtime.wallNow());
  const own = refusedOwnParam(verdict.code, refusal, added);
  if (own === undefined) return errorOf(verdict, refusal, source, wire.redact, partial);
  wire.dropped.add(own);
  const details = { ...verdict.details, param: own, droppedByUs: true };
  return errorOf({ ...verdict, code: "unsupported_param", details }, refusal, source, wire.redact);
}

function refusedOwnParam(code: string, { statusCode, text }: Refusal, added: readonly string[]): string | undefined {
  if (statusCode !== 400 && statusCode !== 422) return undefined;
  if (code !== "bad_request" && code !== "unsupported_param") return undefined;
  return added.find((param) => text.includes(param));
}
