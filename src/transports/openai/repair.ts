import type { ErrorCode } from "../../errors.js";
import type { Refusal, Verdict } from "./classify.js";
import type { WireBody } from "./request.js";
import type { SourceWire } from "./source-wire.js";

/** What a refusal says about a field that the gateway chose, and what is done about it. */
export type Repair =
  /** A field that WE added is left out from now on. */
  | { readonly param: string; readonly droppedByUs: true }
  /** A parameter of the caller goes by another name from now on, with the same value. */
  | { readonly param: string; readonly renamedTo: string }
  /** The source doesn't know how it was asked to think: another one may. Never left out, which would change the answer. */
  | { readonly param: "thinking"; readonly translation: true }
  /** The source answers nothing but streams: it is streamed from now on, which changes the delivery alone. */
  | { readonly param: "stream"; readonly streamed: true };

const LIMIT_NAMES = ["max_tokens", "max_completion_tokens"] as const;

const STREAMS_ONLY =
  /non-?stream(?:ing|ed)?\b|(?:only|must) (?:be )?(?:support(?:s|ed)? |used? (?:in|with) )?(?:the )?stream(?:ing|ed)?\b|stream=true/i;

/** How a refusal may name a field of ours otherwise. */
const ALSO_KNOWN_AS: Readonly<Record<string, RegExp>> = { encoding_format: /encoding[ _]?format|\bbase64\b/i };

interface Refused {
  readonly body: WireBody;
  readonly wire: SourceWire;
  readonly ownFields?: readonly string[] | undefined;
}

/** Remembers the repair in the source's wire. undefined = the refusal is about the request itself. */
export function repairOf(verdict: Verdict, refusal: Refusal, { body, wire, ownFields }: Refused): Repair | undefined {
  const { statusCode, embedded, text } = refusal;
  const { code } = verdict;
  if (!embedded && statusCode !== 400 && statusCode !== 422) return undefined;
  if (code !== "bad_request" && code !== "unsupported_param") return undefined;
  const own = body.added.find((param) => ALSO_KNOWN_AS[param]?.test(text) ?? text.includes(param));
  if (own !== undefined) {
    wire.dropped.add(own);
    return { param: own, droppedByUs: true };
  }
  const ofClient = ownFields === undefined ? undefined : namedOf(ownFields, verdict, text);
  if (ofClient !== undefined) return { param: ofClient, droppedByUs: true };
  if (!body.streamed && STREAMS_ONLY.test(text)) {
    wire.mustStream = true;
    return { param: "stream", streamed: true };
  }
  const renamed = renameLimit(code, text, body, wire);
  if (renamed !== undefined) return renamed;
  const refused = body.thinking.some((field) => names(text, field));
  return refused ? { param: "thinking", translation: true } : undefined;
}

/** A body may quote the whole request: what the provider says counts, where it says something. */
function namedOf(fields: readonly string[], { upstreamMessage, details }: Verdict, text: string): string | undefined {
  const said =
    upstreamMessage === null || upstreamMessage === "" ? text : `${upstreamMessage} ${String(details.param ?? "")}`;
  return fields.find((name) => said.toLowerCase().includes(name));
}

/** "Use max_completion_tokens instead", or the other way round. */
function renameLimit(code: ErrorCode, text: string, body: WireBody, wire: SourceWire): Repair | undefined {
  const [used, ...more] = LIMIT_NAMES.filter((name) => body.json.includes(`"${name}":`));
  // Both were sent, or a name that the caller chose: theirs to settle.
  if (used === undefined || more.length > 0 || used !== body.limitName || !names(text, used)) return undefined;
  const other = used === "max_tokens" ? "max_completion_tokens" : "max_tokens";
  if (wire.givenUp.has(other) || (code !== "unsupported_param" && !names(text, other))) return undefined;
  wire.givenUp.add(used);
  wire.names = { ...wire.names, maxTokens: other };
  return { param: used, renamedTo: other };
}

function names(text: string, field: string): boolean {
  return new RegExp(`(?<![a-z0-9_])${field}(?![a-z0-9_])`, "i").test(text);
}
