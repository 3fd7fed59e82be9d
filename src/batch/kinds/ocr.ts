import { keepPicture } from "../../documents/files.js";
import type { PageReader } from "../../documents/pages.js";
import { DocumentError } from "../../documents/pdf.js";
import type { OcrCallOptions, OcrInput, OcrLayoutResult, OcrTextResult } from "../../domain/ocr.js";
import { RequestRejectedError } from "../../errors.js";
import type { BatchClient } from "../types.js";
import type { LineAnswer, OcrLine } from "./kinds.js";

/** The slice of OcrClient that OCR lines need. */
export interface OcrLineClient extends Pick<BatchClient, "scope" | "models" | "snapshot" | "leases"> {
  recognizeText(image: OcrInput, options: OcrCallOptions): Promise<OcrTextResult>;
  parseLayout(image: OcrInput, options: OcrCallOptions): Promise<OcrLayoutResult>;
}

/** OCR lines: the file, or one of its pages, read by a client for OCR. */
export function ocrLines(client: OcrLineClient, pages: PageReader): BatchClient {
  return {
    kind: "ocr",
    scope: client.scope,
    models: client.models,
    async call({ request, sessionId, parentCallId }, signal) {
      if (request.kind !== "ocr") throw new TypeError(`a line of kind ${request.kind} came to a client for OCR`);
      const image = await pictureOf(request, pages, signal);
      const { model } = request;
      const options = { sessionId, parentCallId, signal, ...(model === undefined ? {} : { model }) };
      if (request.operation === "ocr_text") return textAnswer(await client.recognizeText(image, options));
      const answer = layoutAnswer(await client.parseLayout(image, options));
      if (request.pictureAt !== undefined && Buffer.isBuffer(image)) await keepPicture(request.pictureAt, image);
      return answer;
    },
    snapshot: () => client.snapshot(),
    leases: () => client.leases(),
  };
}

/** A page that can't be drawn is the line's own fault; a package that is missing is everybody's. */
async function pictureOf(
  { image, page, sha256, operation }: OcrLine,
  pages: PageReader,
  signal: AbortSignal,
): Promise<OcrInput> {
  if (page === undefined && sha256 === undefined) return image;
  try {
    return await pages.page(image, page ?? 1, { sha256, signal });
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error;
    throw new RequestRejectedError(`${error.message}; nothing was sent`, { code: "bad_request", operation });
  }
}

function textAnswer({ text, ...result }: OcrTextResult): LineAnswer {
  const body = { object: "ocr.text", model: result.model, page_count: result.pageCount, text };
  return { ...result, body };
}

function layoutAnswer({ pages, elements, droppedElements, ...result }: OcrLayoutResult): LineAnswer {
  const { model, pageCount } = result;
  const body = {
    object: "ocr.layout",
    model,
    page_count: pageCount,
    pages,
    elements,
    dropped_elements: droppedElements,
  };
  return { ...result, body };
}
