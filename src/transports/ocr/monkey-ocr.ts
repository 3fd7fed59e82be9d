import type { OcrLayoutCompletion, OcrMediaType, OcrOperation, OcrTextCompletion } from "../../domain/ocr.js";
import { RequestRejectedError, TransientError } from "../../errors.js";
import type { OcrAttempt, OcrTransport } from "../../ports/transport.js";
import { composeMessage } from "../body-digest.js";
import { createHttpClient } from "../http.js";
import type { OpenAiChatTransportOptions } from "../openai/chat.js";
import { type Fields, isFields } from "../openai/message-fields.js";
import { createSourceWires, type SourceWire } from "../openai/source-wire.js";
import type { WholeBody } from "../openai/whole-answer.js";
import { proxySecrets } from "../pool.js";
import { answerFacts } from "./answer-facts.js";
import { ask, invalidAnswer } from "./ask.js";
import { probe } from "./health.js";
import { MAX_OCR_JSON_BYTES, readJsonAnswer } from "./json-answer.js";
import { checkedText, readParse } from "./monkey-ocr-answer.js";
import { archivePath, fetchLayout } from "./monkey-ocr-archive.js";
import { failureVerdict } from "./monkey-ocr-verdict.js";
import { multipartBody } from "./multipart.js";
import { refinedBy } from "./server-verdict.js";
import { type TimeLeft, timeLeft } from "./timeout-left.js";

const ACCEPTED: ReadonlySet<OcrMediaType> = new Set(["image/png", "image/jpeg", "application/pdf"]);
const PARSE_PATH = "/parse";
const refine = refinedBy(failureVerdict);

/**
 * A MonkeyOCR API server (reference-providers §1.1): text by `/ocr/text`, layouts by `/parse`, from the answer itself or,
 * with older servers, from an archive that a second request fetches.
 */
export function createMonkeyOcrTransport(options: OpenAiChatTransportOptions): OcrTransport {
  const http = createHttpClient(options.proxyEnv);
  const secrets = proxySecrets(options.proxyEnv ?? {});
  const wiresOf = (path: string) => createSourceWires({ pathOf: () => path, accept: "application/json" }, secrets);
  const textWire = wiresOf("/ocr/text");
  const parseWire = wiresOf(PARSE_PATH);
  const healthWire = wiresOf("/health");
  const lost = new WeakSet<object>();

  function upload<T>(
    { source, image, context }: OcrAttempt,
    operation: OcrOperation,
    wire: SourceWire,
    make: (answer: WholeBody, fields: Fields) => T,
  ): Promise<T> {
    const { body, contentType } = multipartBody({ fileField: "file", image, id: context.callId });
    return ask({
      http,
      source,
      context,
      operation,
      wire,
      body,
      contentType,
      maxBytes: MAX_OCR_JSON_BYTES,
      refine,
      read: (answer, refused) => make(answer, readJsonAnswer(answer, context, refused)),
    });
  }

  return {
    async recognizeText(attempt): Promise<OcrTextCompletion> {
      checkMediaType(attempt, "ocr_text");
      return upload(attempt, "ocr_text", textWire(attempt.source), (answer, { content }) => ({
        text: checkedText(answer, content),
        // A document's pages come as one text without marks between them: how many there were nobody tells.
        ...answerFacts(answer, attempt.context, {
          pageCount: attempt.image.mediaType === "application/pdf" ? null : 1,
        }),
      }));
    },

    async parseLayout(attempt): Promise<OcrLayoutCompletion> {
      checkMediaType(attempt, "ocr_layout");
      const { source, context } = attempt;
      const wire = parseWire(source);
      const asked = { ...wire, path: withReturnType(wire.path) };
      const parsed = await upload(attempt, "ocr_layout", asked, (answer, fields) => {
        const read = readParse(answer, fields);
        if ("layout" in read) {
          const { layout } = read;
          return { layout, ...answerFacts(answer, context, { pageCount: layout.pages.length }) };
        }
        return archiveOf(answer, read.downloadUrl, wire, timeLeft(answer, source.timeoutMs, context));
      });
      return "layout" in parsed ? parsed : fetchLayout({ http, attempt, wire, lost, ...parsed });
    },

    checkHealth: (check) => {
      const { name } = check.source;
      const describe = (answer: unknown) => describeHealth(answer, name);
      return probe({ http, wireOf: healthWire, path: "/health", describe }, check);
    },

    close: () => http.close(),
  };
}

/** Known before anything is sent: the server judges by the name alone, and these have no name that it takes. */
function checkMediaType({ source, image }: OcrAttempt, operation: OcrOperation): void {
  if (ACCEPTED.has(image.mediaType)) return;
  const what = `MonkeyOCR takes PNG, JPEG and PDF, not ${image.mediaType}: convert it first, or name a source of another kind; nothing was sent`;
  throw new RequestRejectedError(composeMessage(`${source.name} ${operation}`, "request rejected", what), {
    code: "unsupported_modality",
    sourceName: source.name,
    details: { param: "image" },
  });
}

/** The base URL may have a query of its own. */
function withReturnType(path: string): string {
  return `${path}${path.includes("?") ? "&" : "?"}return_type=middle_json`;
}

/** Where the archive is, and how long it may take; throws when its address leads elsewhere. */
function archiveOf(answer: WholeBody, downloadUrl: string, wire: SourceWire, left: TimeLeft) {
  const queryAt = wire.path.includes("?") ? wire.path.indexOf("?") : wire.path.length;
  const path = archivePath(downloadUrl, wire, wire.path.slice(0, queryAt - PARSE_PATH.length));
  // What the base URL asks with, this request does too.
  if (path !== null) return { path: path + wire.path.slice(queryAt), left };
  const what = `the archive's address leads away from the server's own /static/: ${downloadUrl.slice(0, 200)}; it was not fetched`;
  throw invalidAnswer(answer, "bad_archive", what);
}

/** `status` is always "healthy"; only `model_loaded` says whether it can read. */
function describeHealth(answer: unknown, sourceName: string): string {
  if (!isFields(answer) || answer.model_loaded === undefined)
    return "reachable; it doesn't say whether its model is loaded";
  if (answer.model_loaded === true) return "ready, its model is loaded";
  throw new TransientError(`${sourceName} is up, but its model isn't loaded yet`, { code: "overloaded", sourceName });
}
