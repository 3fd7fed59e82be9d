import type { Runtime } from "../ports/runtime.js";
import { type PdfAnswer, type PdfQuestion, type PdfThread, startPdfThread } from "./pdf-thread.js";

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

/** The program that draws, in a thread of its own. */
export interface PdfEngine {
  /**
   * Opens a PDF; takes the bytes over. `name` stands in errors. Rejects with DocumentError when it is encrypted, broken, or
   * without pages, and when the package is missing.
   */
  open(bytes: Buffer, name: string): Promise<PdfDocument>;
  /** Ends the thread, whatever it draws. A later `open` starts another one. */
  close(): void;
}

/** What OCR servers render PDFs with themselves (reference-providers §1.1). */
export const RENDER_DPI = 200;
/** A page takes 50 ms, a poster a second: what draws longer than this never ends, or is made to last. */
const LONGEST_DRAWING_MS = 120_000;

const NO_DRIVER =
  "Reading the pages of a PDF needs the package @hyzyla/pdfium: npm install @hyzyla/pdfium. Pictures (PNG, JPEG, WebP, TIFF) need nothing.";

const LOST = "it takes more than the drawing program has";
const TOO_LATE = `it was not done after ${LONGEST_DRAWING_MS / 1_000} s`;

/** With a clock, a page that is never drawn to its end is given up. */
export function createPdfEngine(clock?: Pick<Runtime, "setTimer">): PdfEngine {
  let thread: PdfThread | undefined;
  let lastFile = 0;

  async function ask(asked: PdfThread, question: PdfQuestion): Promise<PdfAnswer & { readonly isLate?: boolean }> {
    let isLate = false;
    const cancel = clock?.setTimer(LONGEST_DRAWING_MS, () => {
      isLate = true;
      asked.end();
    });
    const answer = await asked.ask(question);
    cancel?.();
    if (answer.trouble === "lost") asked.end();
    return { ...answer, isLate };
  }

  async function open(bytes: Buffer, name: string): Promise<PdfDocument> {
    if (thread === undefined || thread.isGone) thread = startPdfThread();
    const own = thread;
    const file = ++lastFile;
    const opened = await ask(own, { kind: "open", file, bytes: ofItsOwn(bytes) });
    if (opened.trouble === "no_driver") throw new DocumentError("no_driver", NO_DRIVER, opened.reason);
    const cant = `${name} can't be opened as a PDF`;
    if (opened.isLate) throw new DocumentError("document", `${cant}: ${TOO_LATE}`);
    if (opened.trouble === "lost") throw new DocumentError("engine", `${cant}: ${LOST}`, opened.reason);
    if (opened.trouble !== undefined) throw new DocumentError("document", `${cant}: ${inPlainWords(opened.reason)}`);
    const { pageCount = 0 } = opened;
    if (pageCount === 0) throw new DocumentError("document", `${name} is a PDF without pages`);
    return {
      pageCount,
      async renderPage(number, dpi = RENDER_DPI) {
        if (!(number >= 1 && number <= pageCount)) {
          throw new DocumentError("page", `${name} has no page ${number}: its pages are 1 to ${pageCount}`);
        }
        const { png, trouble, reason, isLate } = await ask(own, { kind: "draw", file, page: number, dpi });
        if (png !== undefined) return Buffer.from(png.buffer, png.byteOffset, png.byteLength);
        const undrawn = `page ${number} of ${name} can't be drawn`;
        // It would take as long again: the next page finds everything closed, and opens it anew.
        if (isLate) throw new DocumentError("page", `${undrawn}: ${TOO_LATE}`);
        if (trouble === "lost") throw new DocumentError("engine", `${undrawn}: ${LOST}`, reason);
        throw new DocumentError("page", `${undrawn}: ${reason}`);
      },
      close: () => void own.ask({ kind: "close", file }),
    };
  }

  return {
    open,
    close() {
      thread?.end();
      thread = undefined;
    },
  };
}

/** Memory that is shared with other buffers can't be handed over. */
function ofItsOwn(bytes: Buffer): Buffer {
  if (bytes.byteOffset === 0 && bytes.buffer.byteLength === bytes.length) return bytes;
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}

/** What the library says of a file, where that is not for people. */
function inPlainWords(reason = ""): string {
  if (/password/i.test(reason)) return "it is protected by a password";
  return reason;
}
