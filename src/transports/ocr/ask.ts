import type { OcrOperation } from "../../domain/ocr.js";
import type { SourceConfig } from "../../domain/source.js";
import { type ErrorCode, type PartialReply, type PolyGatewayError, ResultInvalidError } from "../../errors.js";
import type { AttemptContext } from "../../ports/transport.js";
import { composeMessage } from "../body-digest.js";
import type { HttpClient } from "../http.js";
import type { Refusal, Verdict } from "../openai/classify.js";
import { shownName } from "../openai/judge.js";
import { refusalError } from "../openai/refuse.js";
import type { WireBody } from "../openai/request.js";
import type { SourceWire } from "../openai/source-wire.js";
import { WholeAnswerExchange, type WholeBody } from "../openai/whole-answer.js";

/** One request of an attempt; an attempt may take several, one after the other. */
export interface OcrAsk<T> {
  readonly http: HttpClient;
  readonly source: SourceConfig;
  readonly context: AttemptContext;
  /** Stands before the label of an error. */
  readonly operation: OcrOperation | "health";
  readonly wire: SourceWire;
  /** Default `POST`. */
  readonly method?: "GET" | "POST";
  readonly body: string | Buffer | null;
  /** Of the body. Default: JSON. */
  readonly contentType?: string;
  /** Cap on the decoded bytes of the answer. */
  readonly maxBytes: number;
  /** The answer is an archive. */
  readonly isBinary?: boolean;
  /** What is left of TIMEOUT_S for this request, in ms. Default: all of it. */
  readonly timeoutMs?: number;
  /** Fields of a JSON body that are ours: a refusal that names one is remembered, and the next attempt leaves it out. */
  readonly added?: readonly string[];
  /** What the wording of this server's refusals says beyond the common table. */
  readonly refine?: (verdict: Verdict, refusal: Refusal) => Verdict;
  /** Makes the result of a 2xx body, or throws the typed error that it is; `refused` = of an error that a 2xx tells. */
  read(body: WholeBody, refused: (refusal: Refusal) => PolyGatewayError): T;
}

/** Nothing more of these requests is the gateway's own choice, so nothing else can be left out after a refusal. */
const WIRE_BODY: WireBody = { json: "", added: [], streamed: true, limitName: undefined, thinking: [] };

/** Resolves with what `read` makes of a 2xx body; rejects with a typed error or with exactly the context's abort reason. */
export function ask<T>(request: OcrAsk<T>): Promise<T> {
  const { http, source, context, operation, wire, contentType, refine, added } = request;
  return new Promise((resolve, reject) => {
    if (context.aborted) {
      reject(context.abortReason);
      return;
    }
    const sent = contentType === undefined ? wire : { ...wire, headers: withContentType(wire.headers, contentType) };
    const refused = (refusal: Refusal) =>
      refusalError(refusal, {
        source,
        context,
        wire,
        body: added === undefined ? WIRE_BODY : { ...WIRE_BODY, added },
        operation,
        ...(refine === undefined ? {} : { refine }),
      });
    const read = (answer: WholeBody) => request.read(answer, refused);
    const { method, body, maxBytes, isBinary, timeoutMs } = request;
    const optional = {
      ...(method === undefined ? {} : { method }),
      ...(isBinary === undefined ? {} : { isBinary }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    };
    const send = { source, context, wire: sent, body, maxBytes, operation, read, refused, ...optional };
    new WholeAnswerExchange(send, resolve, reject).start(http);
  });
}

/** Header lists are name, value, name, value…; names are lower case. */
function withContentType(headers: readonly string[], contentType: string): string[] {
  const changed = [...headers];
  const at = changed.indexOf("content-type");
  changed[at + 1] = contentType;
  return changed;
}

const NO_TEXT: PartialReply = { content: "", thinking: "", toolCalls: [], usage: null };

/** A healthy service whose answer can't be used (spec 02: breaker success, not sent again elsewhere by default). */
export function invalidAnswer(
  answer: Pick<WholeBody, "sourceName" | "statusCode" | "redact" | "operation">,
  code: ErrorCode,
  what: string,
  details: Record<string, unknown> = {},
): ResultInvalidError {
  const { sourceName, statusCode, redact } = answer;
  return new ResultInvalidError(composeMessage(shownName(answer), "unusable result", redact(what)), {
    code,
    sourceName,
    statusCode,
    details,
    partial: NO_TEXT,
  });
}
