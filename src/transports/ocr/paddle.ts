import type { OcrImage, OcrLayout, OcrLayoutCompletion, OcrOperation, OcrTextCompletion } from "../../domain/ocr.js";
import type { SourceConfig } from "../../domain/source.js";
import type { OcrAttempt, OcrTransport } from "../../ports/transport.js";
import { createHttpClient } from "../http.js";
import type { OpenAiChatTransportOptions } from "../openai/chat.js";
import { type Fields, isFields } from "../openai/message-fields.js";
import { createSourceWires, type WireTarget } from "../openai/source-wire.js";
import type { WholeBody } from "../openai/whole-answer.js";
import { proxySecrets } from "../pool.js";
import { answerFacts } from "./answer-facts.js";
import { ask, invalidAnswer } from "./ask.js";
import { layoutBuilder } from "./boxes.js";
import { addContent } from "./element-content.js";
import { paddleType } from "./element-types.js";
import { probe } from "./health.js";
import { MAX_OCR_JSON_BYTES, objectsOf, readJsonAnswer } from "./json-answer.js";
import { notFoundIsAddress } from "./server-verdict.js";

const PATH = "/layout-parsing";
/** Hosted services give out the whole address, so a base URL may end with the path already. */
const ENDS_WITH_PATH = /\/layout-parsing\/*$/;
const TARGET: WireTarget = {
  pathOf: ({ baseUrl }) => (ENDS_WITH_PATH.test(pathnameOf(baseUrl)) ? "" : PATH),
  accept: "application/json",
};
const HEALTH: WireTarget = { pathOf: () => "/health", accept: "application/json" };

/**
 * PaddleX serving: PaddleOCR-VL and PP-StructureV3 (spec reference-providers §1.2). One request answers both: Markdown of
 * each page, and its blocks in pixels. Corrections that would move boxes away from the picture are switched off.
 */
export function createPaddleOcrTransport(options: OpenAiChatTransportOptions): OcrTransport {
  const http = createHttpClient(options.proxyEnv);
  const secrets = proxySecrets(options.proxyEnv ?? {});
  const wireOf = createSourceWires(TARGET, secrets);
  const healthWireOf = createSourceWires(HEALTH, secrets);

  async function parse<T>(
    { source, image, context }: OcrAttempt,
    operation: OcrOperation,
    make: (answer: WholeBody, pages: readonly Fields[], result: Fields) => T,
  ): Promise<T> {
    return ask({
      http,
      source,
      context,
      operation,
      wire: wireOf(source),
      body: bodyOf(image),
      maxBytes: MAX_OCR_JSON_BYTES,
      refine: notFoundIsAddress,
      read(answer, refused) {
        const { result } = readJsonAnswer(answer, context, refused);
        const pages = isFields(result) ? objectsOf(result.layoutParsingResults).objects : [];
        if (!isFields(result) || pages.length === 0) throw invalidAnswer(answer, "empty", "the answer holds no page");
        return make(answer, pages, result);
      },
    });
  }

  return {
    recognizeText(attempt): Promise<OcrTextCompletion> {
      return parse(attempt, "ocr_text", (answer, pages) => {
        const text = pages.map(textOf).filter(Boolean).join("\n\n");
        if (text === "") throw invalidAnswer(answer, "empty", "no text was found");
        return { text, ...answerFacts(answer, attempt.context, { pageCount: pages.length }) };
      });
    },
    parseLayout(attempt): Promise<OcrLayoutCompletion> {
      return parse(attempt, "ocr_layout", (answer, pages, result) => {
        const layout = layoutOf(answer, pages, result.dataInfo);
        return { layout, ...answerFacts(answer, attempt.context, { pageCount: pages.length }) };
      });
    },
    checkHealth: (check) =>
      probe(
        { http, wireOf: (source) => healthWireOf(serverOf(source)), path: "/health", describe: () => "ready" },
        check,
      ),
    close: () => http.close(),
  };
}

function pathnameOf(address: string): string {
  return URL.canParse(address) ? new URL(address).pathname : "";
}

/** The server itself, which a base URL may name with the path. */
function serverOf(source: SourceConfig): SourceConfig {
  if (!ENDS_WITH_PATH.test(pathnameOf(source.baseUrl))) return source;
  const url = new URL(source.baseUrl);
  url.pathname = url.pathname.replace(ENDS_WITH_PATH, "");
  return { ...source, baseUrl: url.href };
}

function bodyOf({ bytes, mediaType }: OcrImage): string {
  const fileType = mediaType === "application/pdf" ? 0 : 1;
  const switches =
    '"useLayoutDetection":true,"useDocUnwarping":false,"useDocOrientationClassify":false,"visualize":false';
  return `{"file":"${bytes.toString("base64")}","fileType":${fileType},${switches}}`;
}

function blocksOf(page: Fields) {
  return objectsOf(isFields(page.prunedResult) ? page.prunedResult.parsing_res_list : undefined);
}

/** Markdown of a page; without any, what its blocks hold. */
function textOf({ markdown, ...page }: Fields): string {
  if (isFields(markdown) && typeof markdown.text === "string") return markdown.text.trim();
  const texts = blocksOf(page).objects.map(({ block_content }) => block_content);
  return texts.filter((text) => typeof text === "string" && text.trim() !== "").join("\n\n");
}

function layoutOf(answer: WholeBody, pages: readonly Fields[], dataInfo: unknown): OcrLayout {
  const layout = layoutBuilder();
  for (const [index, page] of pages.entries()) {
    const number = index + 1;
    const { width, height } = sizeOf(page.prunedResult, dataInfo, index);
    const builder = layout.page({ page: number, width, height, unit: "pixel" });
    if (builder === null) throw invalidAnswer(answer, "bad_layout", `page ${number} has no usable size`);
    const { objects, others } = blocksOf(page);
    layout.drop(others);
    for (const { block_label, block_bbox, block_content } of objects) {
      addContent(builder, paddleType(block_label), block_bbox, block_content);
    }
  }
  return layout.finish();
}

interface Size {
  readonly width: number;
  readonly height: number;
}

/** The page's own size, else what is said of the file. 0 = neither. */
function sizeOf(page: unknown, dataInfo: unknown, index: number): Size {
  const ofFile = isFields(dataInfo) && Array.isArray(dataInfo.pages) ? dataInfo.pages[index] : dataInfo;
  const found = [page, ofFile].find((size) => isFields(size) && Number(size.width) > 0 && Number(size.height) > 0);
  return found === undefined ? { width: 0, height: 0 } : { width: Number(found.width), height: Number(found.height) };
}
