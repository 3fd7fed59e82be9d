import type { EmbeddingCompletion, Vector } from "../../domain/embedding.js";
import type { Usage } from "../../domain/usage.js";
import { type PolyGatewayError, ResultInvalidError } from "../../errors.js";
import type { EmbeddingAttempt, EmbeddingTransport } from "../../ports/transport.js";
import { composeMessage } from "../body-digest.js";
import { createHttpClient } from "../http.js";
import { parseJson } from "../json-weight.js";
import { proxySecrets } from "../pool.js";
import type { OpenAiChatTransportOptions } from "./chat.js";
import type { Refusal } from "./classify.js";
import { refineVerdict } from "./embedding-refusal.js";
import { takeSpans } from "./embedding-spans.js";
import { decodeBase64, readSpans, readVectors, type VectorProblem } from "./embedding-vectors.js";
import { parseAnswer } from "./failures.js";
import { findEmbeddedFault } from "./fault.js";
import { transientEnd } from "./judge.js";
import { refusalError } from "./refuse.js";
import type { WireBody } from "./request.js";
import { createSourceWires, type SourceWire, type WireTarget } from "./source-wire.js";
import { normaliseInputUsage } from "./usage.js";
import { WholeAnswerExchange, type WholeBody } from "./whole-answer.js";

/** Decoded bytes of one embedding answer (spec 03 "Request"). */
export const MAX_EMBEDDING_BYTES = 64 * 1_024 * 1_024;

type Fields = Record<string, unknown>;

const TARGET: WireTarget = { pathOf: () => "/embeddings", accept: "application/json" };

/**
 * Embeddings on the OpenAI-compatible wire (spec 06). Vectors are asked for as base64 where the profile says so, and
 * read as whatever they come; a source that refuses `encoding_format` is asked again without it.
 */
export function createOpenAiEmbeddingTransport(options: OpenAiChatTransportOptions): EmbeddingTransport {
  const http = createHttpClient(options.proxyEnv);
  const wireOf = createSourceWires(TARGET, proxySecrets(options.proxyEnv ?? {}));
  return {
    embed(attempt) {
      const { context, source } = attempt;
      return new Promise((resolve, reject) => {
        if (context.aborted) {
          reject(context.abortReason);
          return;
        }
        const wire = wireOf(source);
        const body = bodyOf(attempt, wire);
        const refused = (refusal: Refusal) =>
          refusalError(refusal, { source, context, wire, body, refine: refineVerdict });
        const read = (answer: WholeBody) => readAnswer(answer, attempt, refused);
        const send = {
          source,
          context,
          wire,
          body: body.json,
          maxBytes: MAX_EMBEDDING_BYTES,
          dropsBytes: true,
          read,
          refused,
        };
        new WholeAnswerExchange(send, resolve, reject).start(http);
      });
    },
    close: () => http.close(),
  };
}

const ENCODING_ADDED: readonly string[] = ["encoding_format"];
const NONE: readonly string[] = [];

/** The body of one attempt; the caller's `dimensions` are never left out. */
function bodyOf({ source, inputJson, dimensions }: EmbeddingAttempt, { dropped }: SourceWire): WireBody {
  const asksBase64 = source.profile.embeddingBase64 && !dropped.has("encoding_format");
  let json = `{"model":${JSON.stringify(source.model)},"input":${inputJson}`;
  if (dimensions !== undefined) json += `,"dimensions":${dimensions}`;
  if (asksBase64) json += ',"encoding_format":"base64"';
  const added = asksBase64 ? ENCODING_ADDED : NONE;
  // Nothing else of it is the gateway's own choice.
  return { json: `${json}}`, added, streamed: true, limitName: undefined, thinking: NONE };
}

function readAnswer(
  answer: WholeBody,
  attempt: EmbeddingAttempt,
  refused: (refusal: Refusal) => PolyGatewayError,
): EmbeddingCompletion {
  return readQuickly(answer, attempt) ?? readPlainly(answer, attempt, refused);
}

/** Of a large answer as it should be; undefined for any other. */
function readQuickly(answer: WholeBody, attempt: EmbeddingAttempt): EmbeddingCompletion | undefined {
  const spans = takeSpans(answer.bytes, decodeBase64);
  if (spans === undefined || findEmbeddedFault(spans.value) !== undefined) return undefined;
  const fields = fieldsOf(spans.value);
  const vectors = Array.isArray(fields.data) ? readSpans(fields.data, spans, attempt) : undefined;
  return vectors && completionOf(answer, attempt, fields, vectors);
}

function fieldsOf(parsed: unknown): Fields {
  return (typeof parsed === "object" && parsed !== null ? parsed : {}) as Fields;
}

function readPlainly(
  answer: WholeBody,
  attempt: EmbeddingAttempt,
  refused: (refusal: Refusal) => PolyGatewayError,
): EmbeddingCompletion {
  const parsed = parseWhole(answer);
  const fault = findEmbeddedFault(parsed);
  if (fault !== undefined) {
    const { text, statusCode, headers } = answer;
    const limits = headers.limits(attempt.context.runtime);
    throw refused({ statusCode, embedded: true, text, fault, header: (name) => headers.get(name), limits });
  }
  const fields = fieldsOf(parsed);
  if (!Array.isArray(fields.data)) {
    throw transientEnd(answer, "malformed", `${answer.statusCode} with neither embeddings nor an error`);
  }
  const vectors = readVectors(fields.data, attempt);
  if (!Array.isArray(vectors)) throw invalidVectors(answer, vectors, normaliseInputUsage(fields.usage));
  return completionOf(answer, attempt, fields, vectors);
}

function completionOf(
  answer: WholeBody,
  attempt: EmbeddingAttempt,
  fields: Fields,
  vectors: readonly Vector[],
): EmbeddingCompletion {
  return {
    vectors,
    dim: vectors[0]?.length ?? 0,
    usage: normaliseInputUsage(fields.usage),
    modelReported: typeof fields.model === "string" ? fields.model : null,
    statusCode: answer.statusCode,
    latencyMs: answer.latencyMs,
    limits: answer.headers.limits(attempt.context.runtime),
  };
}

const NOT_FINITE = /([[,:]\s*)[-+]?(?:NaN|Infinity|inf)(?=\s*[\],}])/gi;
const FIRST_FRAME = /^data: ?(\{.*)$/m;

/** The JSON of an answer, also of the two forms that are none: numbers that JSON hasn't got, and an event stream. */
function parseWhole(answer: WholeBody): unknown {
  try {
    return parseAnswer(answer, answer.text);
  } catch (error) {
    const { text } = answer;
    const withoutNumbers = text.replace(NOT_FINITE, "$1null");
    const parsed = withoutNumbers === text ? undefined : parseJson(withoutNumbers);
    const frame = parsed ?? parseJson(FIRST_FRAME.exec(text.slice(0, MAX_FRAME_UNITS))?.[1] ?? "");
    if (parsed !== undefined || findEmbeddedFault(frame) !== undefined) return frame;
    throw error;
  }
}

/** Errors are short; a longer first line of a stream is none. */
const MAX_FRAME_UNITS = 65_536;

/** The service is healthy, its result can't be used. What it reported as used is booked. */
function invalidVectors(
  { sourceName, statusCode, redact }: WholeBody,
  { code, what, details }: VectorProblem,
  usage: Usage | null,
): ResultInvalidError {
  return new ResultInvalidError(composeMessage(sourceName, "unusable result", redact(what)), {
    code,
    sourceName,
    statusCode,
    details: { ...details },
    partial: { content: "", thinking: "", toolCalls: [], usage },
  });
}
