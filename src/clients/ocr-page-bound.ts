import type { OcrImage, OcrLayoutCompletion, OcrTextCompletion } from "../domain/ocr.js";
import { framesOf } from "../domain/picture.js";

/**
 * How many pages an answer can be about: a server's count is what is paid by and what people see, and it isn't believed
 * beyond what was sent.
 */

/** A page of a PDF takes more than this, compressed with others. */
const LEAST_PDF_PAGE_BYTES = 16;

export function mostPages({ bytes, mediaType }: OcrImage): number {
  if (mediaType === "image/tiff") return framesOf(bytes);
  return mediaType === "application/pdf" ? Math.max(1, Math.floor(bytes.length / LEAST_PDF_PAGE_BYTES)) : 1;
}

export function textWithin<Completion extends OcrTextCompletion>(completion: Completion, most: number): Completion {
  return { ...completion, pageCount: atMost(completion.pageCount, most) };
}

const atMost = (pages: number | null, most: number): number | null => (pages === null ? null : Math.min(pages, most));

/** Pages beyond go with their elements, which are counted. The one page of a picture is the first, whatever it is called. */
export function layoutWithin(completion: OcrLayoutCompletion, most: number): OcrLayoutCompletion {
  const { layout } = completion;
  const pageCount = atMost(completion.pageCount, most);
  const isWithin = layout.pages.every(({ page }) => page <= most);
  if (isWithin) return { ...completion, pageCount };
  const first = most === 1 ? layout.pages[0]!.page : 1;
  const kept = <T extends { readonly page: number }>(items: readonly T[]): T[] =>
    items.flatMap((item) => {
      const page = item.page - first + 1;
      return page <= most ? [{ ...item, page }] : [];
    });
  const elements = kept(layout.elements);
  const droppedElements = layout.droppedElements + layout.elements.length - elements.length;
  return { ...completion, pageCount, layout: { ...layout, pages: kept(layout.pages), elements, droppedElements } };
}
