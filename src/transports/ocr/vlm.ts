import type { ChatCompletion } from "../../domain/chat.js";
import type { OcrAnswerFacts, OcrLayoutCompletion, OcrOperation, OcrTextCompletion } from "../../domain/ocr.js";
import type { SourceConfig } from "../../domain/source.js";
import { mustStream } from "../../domain/thinking.js";
import { type ErrorCode, RequestRejectedError } from "../../errors.js";
import type { OcrAttempt, OcrTransport } from "../../ports/transport.js";
import { composeMessage } from "../body-digest.js";
import { createHttpClient } from "../http.js";
import { createOpenAiChatTransport, type OpenAiChatTransportOptions } from "../openai/chat.js";
import { shownName } from "../openai/judge.js";
import { createSourceWires } from "../openai/source-wire.js";
import { proxySecrets } from "../pool.js";
import { probe } from "./health.js";
import { describeModels, MODELS_PATH, MODELS_TARGET } from "./models-list.js";
import { type AnswerPlace, answerTrouble, unusable } from "./vlm-answer.js";
import type { VlmQuestion, VlmReader } from "./vlm-reader.js";
import { readerOf } from "./vlm-readers.js";
import { repaired } from "./vlm-repair.js";
import { inWords, vlmRequest, vlmTrouble } from "./vlm-request.js";

interface Answered {
  readonly completion: ChatCompletion;
  readonly place: AnswerPlace;
  readonly facts: OcrAnswerFacts;
}

/**
 * Any chat source that takes pictures reads them, too: the chat transport asks it, with its timers, its profile and its
 * classification. What to ask and how to read the answer is the model's reader's; it is paid by tokens like chat.
 */
export function createVlmOcrTransport(options: OpenAiChatTransportOptions): OcrTransport {
  const chat = createOpenAiChatTransport(options);
  const http = createHttpClient(options.proxyEnv);
  const wireOf = createSourceWires(MODELS_TARGET, proxySecrets(options.proxyEnv ?? {}));
  const refusedFields = new WeakMap<SourceConfig, Set<string>>();

  function droppedOf(source: SourceConfig): Set<string> {
    let dropped = refusedFields.get(source);
    if (dropped === undefined) {
      dropped = new Set();
      refusedFields.set(source, dropped);
    }
    return dropped;
  }

  async function askModel(attempt: OcrAttempt, operation: OcrOperation, reader: VlmReader): Promise<Answered> {
    const { source, image, context } = attempt;
    const question = questionFor(attempt, operation, reader);
    const dropped = droppedOf(source);
    const { request, choices } = vlmRequest(source, reader, question, image, dropped);
    const trouble = vlmTrouble(source, request);
    if (trouble !== undefined) throw rejected(source, operation, trouble.code, trouble.text);
    const stream = source.stream || mustStream(source, request.thinking ?? source.thinking);
    const messagesJson = JSON.stringify(request.messages);
    const { ownFields } = choices;
    let completion: ChatCompletion;
    try {
      completion = await chat.complete({ source, request, messagesJson, stream, ownFields, operation, context });
    } catch (error) {
      throw repaired(error, choices, dropped);
    }
    const place = { sourceName: source.name, operation, redact: wireOf(source).redact, reader };
    const failure = answerTrouble(place, completion);
    if (failure !== undefined) throw failure;
    return { completion, place, facts: factsOf(completion) };
  }

  return {
    async recognizeText(attempt): Promise<OcrTextCompletion> {
      const reader = readerOf(attempt.source);
      const { completion, place, facts } = await askModel(attempt, "ocr_text", reader);
      const text = reader.readText(completion.content);
      if (text === "") throw unusable(place, completion, "empty", "the answer holds no text");
      return { text, ...facts };
    },
    async parseLayout(attempt): Promise<OcrLayoutCompletion> {
      const reader = readerOf(attempt.source);
      const { completion, place, facts } = await askModel(attempt, "ocr_layout", reader);
      const layout = reader.readLayout?.(completion.content, attempt.image) ?? `${reader.name} reads no layouts`;
      if (typeof layout === "string") throw unusable(place, completion, "bad_layout", layout);
      return { layout, ...facts };
    },
    checkHealth: (check) => probe({ http, wireOf, path: MODELS_PATH, describe: describeModels(check.source) }, check),
    async close() {
      await Promise.all([chat.close(), http.close()]);
    },
  };
}

function questionFor({ source, image }: OcrAttempt, operation: OcrOperation, reader: VlmReader): VlmQuestion {
  const unsupported = (what: string) => rejected(source, operation, "unsupported_modality", what);
  if (image.mediaType === "application/pdf") {
    throw unsupported("a chat model reads pictures, no PDF; render its pages first, as `polygateway ocr` does");
  }
  if (operation === "ocr_text") return inWords(reader.text, source.ocrPrompt);
  if (typeof reader.layout === "string") throw unsupported(reader.layout);
  const trouble = reader.layoutTrouble?.(image);
  if (trouble !== undefined)
    throw unsupported(`${reader.name} can't tell where things are on this picture: ${trouble}`);
  return inWords(reader.layout, source.ocrLayoutPrompt);
}

/** Before anything was sent. */
function rejected(source: SourceConfig, operation: OcrOperation, code: ErrorCode, what: string): RequestRejectedError {
  const message = composeMessage(shownName({ sourceName: source.name, operation }), "request rejected", what);
  return new RequestRejectedError(message, { code, sourceName: source.name });
}

function factsOf({ usage, modelReported, statusCode, latencyMs, limits }: ChatCompletion): OcrAnswerFacts {
  return { pageCount: 1, usage, modelReported, statusCode, latencyMs, limits };
}
