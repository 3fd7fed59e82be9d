import { countOf } from "../../domain/count-of.js";
import { msText } from "../../domain/ms-text.js";
import { PolyGatewayError, RequestRejectedError, SourceDeadError, TransientError } from "../../errors.js";
import { composeMessage } from "../body-digest.js";
import type { HttpFailure } from "../http.js";
import type { WatchdogTimer } from "../watchdog.js";
import { type FailureInput, shownName, transientEnd } from "./judge.js";
import { looksCut } from "./looks-cut.js";

/** The errors of an answer that never became one: cut, late, broken on the wire, or no answer at all. */

const BYTE_ORDER_MARK = 0xfeff;

function received({ assembler }: FailureInput): string {
  const { deltas } = assembler;
  return deltas === 0 ? "" : ` after ${countOf(deltas, "chunk")}`;
}

export function cutStream(input: FailureInput): TransientError {
  const nothing = !input.assembler.hasChoices;
  const what = nothing ? "the stream ended without a word" : "the stream was cut before its end";
  return transientEnd(input, nothing ? "empty" : "truncated", `${what}${received(input)}`);
}

/** More than the limits allow (answer-limits.ts, json-weight.ts): nothing of it is used. */
export function tooMuch(input: FailureInput, what: string): TransientError {
  return transientEnd(input, "malformed", what);
}

/** Says which timer, after how long, and how much had arrived. */
export function timedOut(input: FailureInput, timer: WatchdogTimer, limitMs: number): TransientError {
  const code = timer === "end" ? "timeout" : timer;
  const what = {
    timeout: `no complete answer within ${msText(limitMs)} (TIMEOUT_S)`,
    ttft_timeout: `no first token within ${msText(limitMs)} (TTFT_TIMEOUT_S)`,
    idle_timeout: `no further token for ${msText(limitMs)} (INTER_TOKEN_TIMEOUT_S)`,
  }[code];
  return transientEnd(input, code, `${what}${received(input)}`);
}

export function htmlPage(input: FailureInput, chunk: Buffer): SourceDeadError {
  const { sourceName, statusCode, redact } = input;
  const page = redact(chunk.toString("utf8"));
  const title = /<title[^>]{0,80}>([^<]{0,200})</i.exec(page.slice(0, 4_096))?.[1]?.trim();
  const what = `${statusCode} with an HTML page instead of an answer: a wrong BASE_URL, or a portal in between`;
  return new SourceDeadError(composeMessage(shownName(input), "model or endpoint not found", what), {
    code: "endpoint_not_found",
    sourceName,
    statusCode,
    ...(title === undefined || title === "" ? {} : { upstreamMessage: title }),
  });
}

export function brokenConnection(input: FailureInput, { code, message, cause }: HttpFailure): PolyGatewayError {
  const { sourceName, statusCode, redact, assembler } = input;
  const what = redact(message);
  if (code === "refused") {
    return new RequestRejectedError(composeMessage(shownName(input), "request rejected", what), { sourceName });
  }
  const partial = assembler.partial();
  return new TransientError(composeMessage(shownName(input), "transient failure", `${what}${received(input)}`), {
    code,
    sourceName,
    ...(statusCode === 0 ? {} : { statusCode }),
    ...(partial === undefined ? {} : { partial }),
    ...(cause === undefined ? {} : { cause: plainCause(cause, redact) }),
  });
}

/** The JSON of a 2xx body. Throws TransientError when it is cut or none at all. */
export function parseAnswer(input: FailureInput, text: string): unknown {
  try {
    return JSON.parse(text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text);
  } catch {
    if (looksCut(text)) throw transientEnd(input, "truncated", "the JSON answer stops in the middle");
    throw transientEnd(input, "malformed", `${input.statusCode} with a body that is no JSON`);
  }
}

/** The library's errors carry pieces of the answer (`data` of a parser's error): name, message and code are all we pass on. */
function plainCause(cause: unknown, redact: (text: string) => string): Error {
  const { name, message, code } = cause as Partial<NodeJS.ErrnoException>;
  const plain = new Error(redact(String(message ?? cause)));
  if (typeof name === "string") Object.defineProperty(plain, "name", { value: name, configurable: true });
  return code === undefined ? plain : Object.assign(plain, { code });
}

/** Whatever an answer holds, the failure stays inside the taxonomy. */
export function unreadable(input: FailureInput, error: unknown): PolyGatewayError {
  if (PolyGatewayError.isInstance(error)) return error;
  const { sourceName, statusCode, redact } = input;
  const what = `the answer can't be read: ${redact(error instanceof Error ? error.message : String(error))}`;
  return new TransientError(composeMessage(shownName(input), "transient failure", what), {
    code: "malformed",
    sourceName,
    statusCode,
    cause: plainCause(error, redact),
  });
}
