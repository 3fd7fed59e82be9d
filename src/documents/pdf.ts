import type { PDFiumLibrary } from "@hyzyla/pdfium";
import { encodePng } from "./png.js";

/** Why a document can't be opened, or a page can't be drawn: a finished sentence for people. */
export class DocumentError extends Error {
  /** `no_driver`: nothing is wrong with the document. `engine`: whatever was open must be opened again. */
  readonly kind: "no_driver" | "document" | "page" | "engine";

  constructor(kind: DocumentError["kind"], message: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
    this.kind = kind;
    this.name = "DocumentError";
  }
}

/** A PDF whose pages can be drawn one by one. */
export interface PdfDocument {
  readonly pageCount: number;
  /** A PNG of page `number` (from 1) at `dpi`. Rejects with DocumentError. */
  renderPage(number: number, dpi?: number): Promise<Buffer>;
  close(): void;
}

/** What OCR servers render PDFs with themselves (reference-providers §1.1). */
export const RENDER_DPI = 200;
const POINTS_PER_INCH = 72;
/** A poster at 200 dpi would take gigabytes: larger pages are drawn more coarsely. */
const MAX_PIXELS = 40_000_000;

const NO_DRIVER =
  "Reading the pages of a PDF needs the package @hyzyla/pdfium: npm install @hyzyla/pdfium. Pictures (PNG, JPEG, WebP, TIFF) need nothing.";

let library: Promise<PDFiumLibrary> | undefined;

/** Loaded once, when the first PDF is opened. */
async function pdfium(): Promise<PDFiumLibrary> {
  library ??= import("@hyzyla/pdfium").then(({ PDFiumLibrary: Library }) => Library.init());
  try {
    return await library;
  } catch (error) {
    library = undefined;
    throw new DocumentError("no_driver", NO_DRIVER, error);
  }
}

/**
 * Opens a PDF. `name` stands in errors. One page at a time is drawn in this process, on the main thread (about 50 ms).
 * Throws DocumentError when it is encrypted, broken, or without pages, and when the package is missing.
 */
export async function openPdf(bytes: Buffer, name: string): Promise<PdfDocument> {
  const engine = await pdfium();
  let document: Awaited<ReturnType<PDFiumLibrary["loadDocument"]>>;
  let pageCount = 0;
  try {
    document = await engine.loadDocument(bytes);
    pageCount = document.getPageCount();
  } catch (error) {
    if (hasAborted(error))
      throw aborted(`${name} can't be opened as a PDF: it takes more than the drawing program has`, error);
    throw new DocumentError("document", `${name} can't be opened as a PDF: ${said(error)}`, error);
  }
  if (pageCount === 0) {
    document.destroy();
    throw new DocumentError("document", `${name} is a PDF without pages`);
  }
  return {
    pageCount,
    async renderPage(number, dpi = RENDER_DPI) {
      if (!(number >= 1 && number <= pageCount)) {
        throw new DocumentError("page", `${name} has no page ${number}: its pages are 1 to ${pageCount}`);
      }
      try {
        const page = document.getPage(number - 1);
        const { originalWidth, originalHeight } = page.getOriginalSize();
        const wanted = dpi / POINTS_PER_INCH;
        const largest = Math.sqrt(MAX_PIXELS / Math.max(1, originalWidth * originalHeight));
        const bitmap = await page.render({ scale: Math.min(wanted, largest), render: "bitmap" });
        if (bitmap.width < 1 || bitmap.height < 1) throw new Error("it has no area");
        return await encodePng(bitmap.data, bitmap.width, bitmap.height);
      } catch (error) {
        if (hasAborted(error)) {
          throw aborted(`page ${number} of ${name} can't be drawn: it takes more than the drawing program has`, error);
        }
        throw new DocumentError("page", `page ${number} of ${name} can't be drawn: ${said(error)}`, error);
      }
    },
    close: () => document.destroy(),
  };
}

/** WebAssembly that has ended itself, or its memory: nothing it held can be used again. */
function hasAborted(error: unknown): boolean {
  return (
    (error instanceof Error && error.name === "RuntimeError") ||
    /abort|allocate memory|enlarge memory/i.test(said(error))
  );
}

function aborted(message: string, error: unknown): DocumentError {
  library = undefined;
  return new DocumentError("engine", message, error);
}

/** The library's own words, in one line. */
function said(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.split("\n", 1)[0]!.slice(0, 200);
}
