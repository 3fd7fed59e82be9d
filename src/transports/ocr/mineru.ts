import type { OcrLayout, OcrLayoutCompletion, OcrOperation, OcrTextCompletion } from "../../domain/ocr.js";
import type { OcrAttempt, OcrTransport } from "../../ports/transport.js";
import { createHttpClient } from "../http.js";
import type { OpenAiChatTransportOptions } from "../openai/chat.js";
import { transientEnd } from "../openai/judge.js";
import { type Fields, isFields } from "../openai/message-fields.js";
import { createSourceWires } from "../openai/source-wire.js";
import type { WholeBody } from "../openai/whole-answer.js";
import { proxySecrets } from "../pool.js";
import { answerFacts } from "./answer-facts.js";
import { ask } from "./ask.js";
import { layoutBuilder } from "./boxes.js";
import { readContentList } from "./content-list.js";
import { probe } from "./health.js";
import { MAX_OCR_JSON_BYTES, readJsonAnswer } from "./json-answer.js";
import { parseLayoutJson } from "./lenient-json.js";
import { pageNumber } from "./middle-json.js";
import { badLayout, checkedText, failOnErrorText, layoutOfParts } from "./monkey-ocr-answer.js";
import { failureVerdict } from "./monkey-ocr-verdict.js";
import { multipartBody } from "./multipart.js";
import { refinedBy } from "./server-verdict.js";

/** What an answer holds; language, back end and method are the server's own defaults. */
const ASKED: Readonly<Record<OcrOperation, Readonly<Record<string, string>>>> = {
  ocr_text: { return_md: "true", return_middle_json: "false", return_content_list: "true" },
  ocr_layout: { return_md: "false", return_middle_json: "true", return_content_list: "true" },
};
const ALWAYS = { return_model_output: "false", return_images: "false", response_format_zip: "false" };
const refine = refinedBy(failureVerdict);

/** MinerU's `mineru-api` (reference-providers §1.2): one request that waits for its result. */
export function createMinerUTransport(options: OpenAiChatTransportOptions): OcrTransport {
  const http = createHttpClient(options.proxyEnv);
  const secrets = proxySecrets(options.proxyEnv ?? {});
  const wiresOf = (path: string) => createSourceWires({ pathOf: () => path, accept: "application/json" }, secrets);
  const parseWire = wiresOf("/file_parse");
  const healthWire = wiresOf("/health");

  async function parse<T>(
    { source, image, context }: OcrAttempt,
    operation: OcrOperation,
    make: (answer: WholeBody, result: Fields) => T,
  ): Promise<T> {
    const fields = { ...ASKED[operation], ...ALWAYS };
    const { body, contentType } = multipartBody({ fileField: "files", image, fields, id: context.callId });
    return ask({
      http,
      source,
      context,
      operation,
      wire: parseWire(source),
      body,
      contentType,
      maxBytes: MAX_OCR_JSON_BYTES,
      refine,
      read: (answer, refused) => make(answer, resultOf(answer, readJsonAnswer(answer, context, refused))),
    });
  }

  return {
    recognizeText(attempt): Promise<OcrTextCompletion> {
      return parse(attempt, "ocr_text", (answer, { md_content: text, content_list: list }) => ({
        text: checkedText(answer, text),
        ...answerFacts(answer, attempt.context, { pageCount: pagesIn(list) }),
      }));
    },
    parseLayout(attempt): Promise<OcrLayoutCompletion> {
      return parse(attempt, "ocr_layout", (answer, result) => {
        const layout = layoutOf(answer, result);
        return { layout, ...answerFacts(answer, attempt.context, { pageCount: layout.pages.length }) };
      });
    },
    checkHealth: (check) => probe({ http, wireOf: healthWire, path: "/health", describe: describeHealth }, check),
    close: () => http.close(),
  };
}

/** The result of the one file that was sent, whatever the server calls it. */
function resultOf(answer: WholeBody, { results, status }: Fields): Fields {
  const result = isFields(results) ? Object.values(results)[0] : undefined;
  if (isFields(result)) return result;
  const said = typeof status === "string" ? `, its status "${answer.redact(status).slice(0, 40)}"` : "";
  throw transientEnd(answer, "malformed", `${answer.statusCode} with neither results nor an error${said}`);
}

/** Pages that the flat list names; it leaves out empty ones at the end. */
function pagesIn(list: unknown): number {
  const blocks = typeof list === "string" ? parseLayoutJson(list) : list;
  if (!Array.isArray(blocks)) return 1;
  return blocks.reduce<number>((most, block) => Math.max(most, isFields(block) ? (pageNumber(block, 0) ?? 1) : 1), 1);
}

/** Both are JSON as text. The list has the same blocks without the size of their pages. */
function layoutOf(answer: WholeBody, { middle_json: middle, content_list: list }: Fields): OcrLayout {
  if (typeof middle === "string" && middle.trim() !== "") return layoutOfParts(answer, [{ json: middle }]);
  if (typeof list !== "string") throw badLayout(answer, "the answer holds neither middle_json nor content_list");
  const layout = layoutBuilder();
  const problem = readContentList(parseLayoutJson(list), layout, (text) => failOnErrorText(answer, text));
  if (problem !== null) throw badLayout(answer, problem);
  return layout.finish();
}

function describeHealth(answer: unknown): string {
  if (!isFields(answer)) return "reachable";
  const { processing_tasks: processing, queued_tasks: queued } = answer;
  const isCounted = typeof processing === "number" && typeof queued === "number";
  return isCounted ? `ready, ${processing} in progress, ${queued} queued` : "ready";
}
