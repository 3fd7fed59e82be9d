import type { OcrImage, OcrLayout, OcrLayoutCompletion, OcrOperation, OcrTextCompletion } from "../../domain/ocr.js";
import type { OcrAttempt, OcrTransport } from "../../ports/transport.js";
import { createHttpClient } from "../http.js";
import type { OpenAiChatTransportOptions } from "../openai/chat.js";
import { type Fields, isFields } from "../openai/message-fields.js";
import { createSourceWires, type SourceWire, type WireTarget } from "../openai/source-wire.js";
import type { WholeBody } from "../openai/whole-answer.js";
import { proxySecrets } from "../pool.js";
import { answerFacts } from "./answer-facts.js";
import { ask, invalidAnswer } from "./ask.js";
import { layoutBuilder, type PageBuilder } from "./boxes.js";
import { addContent } from "./element-content.js";
import { mistralType } from "./element-types.js";
import { probe } from "./health.js";
import { MAX_OCR_JSON_BYTES, objectsOf, readJsonAnswer } from "./json-answer.js";
import { describeModels, MODELS_PATH, MODELS_TARGET } from "./models-list.js";

const TARGET: WireTarget = { pathOf: () => "/ocr", accept: "application/json" };

/** What a layout is asked for with; models and resellers of the API that know neither are asked without. */
const LAYOUT_FIELDS: Readonly<Record<string, unknown>> = { include_blocks: true, table_format: "html" };

/**
 * Mistral OCR, which is paid by pages (spec reference-providers §1.2). Its layout is what `include_blocks` brings; of a
 * model without it, the boxes of pictures alone. Text is asked for without those fields, so that tables stay in the text.
 */
export function createMistralOcrTransport(options: OpenAiChatTransportOptions): OcrTransport {
  const http = createHttpClient(options.proxyEnv);
  const secrets = proxySecrets(options.proxyEnv ?? {});
  const wireOf = createSourceWires(TARGET, secrets);
  const modelsWireOf = createSourceWires(MODELS_TARGET, secrets);

  async function read<T>(
    { source, image, context }: OcrAttempt,
    operation: OcrOperation,
    make: (answer: WholeBody, pages: readonly Fields[]) => T,
  ) {
    const wire = wireOf(source);
    const added = operation === "ocr_layout" ? wantedFields(wire) : [];
    return ask({
      http,
      source,
      context,
      operation,
      wire,
      added,
      body: bodyOf(source.model, image, added),
      maxBytes: MAX_OCR_JSON_BYTES,
      read(answer, refused) {
        const { pages: listed, usage_info: used, model } = readJsonAnswer(answer, context, refused);
        const pages = objectsOf(listed).objects;
        if (pages.length === 0) throw invalidAnswer(answer, "empty", "the answer holds no page");
        const made = make(answer, pages);
        const modelReported = typeof model === "string" && model !== "" ? model : null;
        return { made, ...answerFacts(answer, context, { pageCount: pagesRead(used) ?? pages.length, modelReported }) };
      },
    });
  }

  return {
    async recognizeText(attempt): Promise<OcrTextCompletion> {
      const { made: text, ...facts } = await read(attempt, "ocr_text", textOf);
      return { text, ...facts };
    },
    async parseLayout(attempt): Promise<OcrLayoutCompletion> {
      const { image } = attempt;
      const { made: layout, ...facts } = await read(attempt, "ocr_layout", (answer, pages) =>
        layoutOf(answer, pages, image),
      );
      return { layout, ...facts };
    },
    checkHealth: (check) =>
      probe({ http, wireOf: modelsWireOf, path: MODELS_PATH, describe: describeModels(check.source) }, check),
    close: () => http.close(),
  };
}

function wantedFields({ dropped }: SourceWire): string[] {
  return Object.keys(LAYOUT_FIELDS).filter((name) => !dropped.has(name));
}

function bodyOf(model: string, { bytes, mediaType }: OcrImage, added: readonly string[]): string {
  const kind = mediaType === "application/pdf" ? "document_url" : "image_url";
  const head = `{"model":${JSON.stringify(model)},"document":{"type":"${kind}","${kind}":"data:${mediaType};base64,`;
  const fields = {
    include_image_base64: false,
    ...Object.fromEntries(added.map((name) => [name, LAYOUT_FIELDS[name]])),
  };
  return `${head}${bytes.toString("base64")}"},${JSON.stringify(fields).slice(1)}`;
}

function pagesRead(used: unknown): number | undefined {
  const count = isFields(used) ? used.pages_processed : undefined;
  return Number.isSafeInteger(count) && Number(count) > 0 ? Number(count) : undefined;
}

/** `index` counts from 0; without one, the place in the list does. */
function numberOf({ index }: Fields, place: number): number {
  return Number.isSafeInteger(index) && Number(index) >= 0 ? Number(index) + 1 : place + 1;
}

function textOf(answer: WholeBody, pages: readonly Fields[]): string {
  const ordered = pages.map((page, place) => ({ page, number: numberOf(page, place) }));
  ordered.sort((a, b) => a.number - b.number);
  const texts = ordered.map(({ page }) => (typeof page.markdown === "string" ? page.markdown.trim() : ""));
  const text = texts.filter(Boolean).join("\n\n");
  if (text === "") throw invalidAnswer(answer, "empty", "no text was found");
  return text;
}

function layoutOf(answer: WholeBody, pages: readonly Fields[], { size }: OcrImage): OcrLayout {
  const layout = layoutBuilder();
  for (const [place, page] of pages.entries()) {
    const number = numberOf(page, place);
    const { width, height } = (isFields(page.dimensions) ? page.dimensions : (size ?? {})) as Fields;
    const builder = layout.page({ page: number, width: Number(width), height: Number(height), unit: "pixel" });
    if (builder === null) throw invalidAnswer(answer, "bad_layout", `page ${number} has no usable size`);
    const blocks = objectsOf(page.blocks);
    const images = objectsOf(page.images);
    // A model that knows no blocks leaves the list out or empty.
    const hasBlocks = blocks.objects.length + blocks.others > 0;
    layout.drop(hasBlocks ? blocks.others : images.others);
    if (hasBlocks) addBlocks(builder, blocks.objects, tablesOf(page));
    else for (const image of images.objects) builder.add({ type: "image", rawType: "image", box: cornersOf(image) });
  }
  return layout.finish();
}

function cornersOf({ top_left_x, top_left_y, bottom_right_x, bottom_right_y }: Fields): unknown[] {
  return [top_left_x, top_left_y, bottom_right_x, bottom_right_y];
}

function addBlocks(builder: PageBuilder, blocks: readonly Fields[], tables: ReadonlyMap<unknown, unknown>): void {
  for (const block of blocks) {
    // The block of a table that was taken out holds but a link to it.
    const content = tables.get(block.table_id) ?? block.content;
    addContent(builder, mistralType(block.type), cornersOf(block), content);
  }
}

function tablesOf({ tables }: Fields): ReadonlyMap<unknown, unknown> {
  const named = objectsOf(tables).objects.filter(({ id }) => typeof id === "string");
  return new Map(named.map(({ id, content }) => [id, content]));
}
