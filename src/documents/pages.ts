import { basename, resolve } from "node:path";
import type { OcrMediaType } from "../domain/ocr.js";
import type { Runtime } from "../ports/runtime.js";
import { readDocument } from "./files.js";
import { createPdfEngine, DocumentError, type PdfDocument, type PdfEngine } from "./pdf.js";

/** A file that is to be read page by page. */
export interface SourceDocument {
  /** As it was named. */
  readonly given: string;
  /** Absolute. */
  readonly path: string;
  /** Its file name, unique among the documents of a run. */
  readonly name: string;
  readonly mediaType: OcrMediaType;
  /** A picture is one page. */
  readonly pageCount: number;
  /** Of its bytes: a file that changed is another document. */
  readonly sha256: string;
}

/** A file of which nothing can be read. */
export interface UnreadFile {
  readonly given: string;
  readonly name: string;
  /** A finished sentence that names the file. */
  readonly message: string;
}

export interface LookedAt {
  readonly documents: readonly SourceDocument[];
  readonly unread: readonly UnreadFile[];
}

/**
 * Reads what each file is and how many pages it has. One that can't be read costs no other. Throws DocumentError where two
 * have one name, and where the package that opens PDFs is missing.
 */
export async function lookAtDocuments(paths: readonly string[]): Promise<LookedAt> {
  const files = filesByName(paths);
  const documents: SourceDocument[] = [];
  const unread: UnreadFile[] = [];
  const engine = createPdfEngine();
  try {
    for (const [name, given] of files) {
      try {
        documents.push(await lookAt(given, name, engine));
      } catch (error) {
        if (!(error instanceof DocumentError) || error.kind === "no_driver") throw error;
        unread.push({ given, name, message: error.message });
      }
    }
  } finally {
    engine.close();
  }
  return { documents, unread };
}

/** By the names that their results will have. */
function filesByName(paths: readonly string[]): Map<string, string> {
  const files = new Map<string, string>();
  for (const given of paths) {
    const name = basename(resolve(given));
    const other = files.get(name);
    if (other !== undefined && resolve(other) !== resolve(given)) {
      throw new DocumentError(
        "document",
        `${other} and ${given} have the same name, and so would their results. Rename one, or read them into different folders.`,
      );
    }
    files.set(name, other ?? given);
  }
  return files;
}

async function lookAt(given: string, name: string, engine: PdfEngine): Promise<SourceDocument> {
  const path = resolve(given);
  const { mediaType, sha256, bytes } = await readDocument(path, { name: given, wantsPicture: false });
  const facts = { given, path, name, mediaType, sha256 };
  if (bytes === null) return { ...facts, pageCount: 1 };
  const pdf = await engine.open(bytes, given);
  pdf.close();
  return { ...facts, pageCount: pdf.pageCount };
}

/** Draws pages of PDFs that stay open between two of them, one page at a time in the order they come. */
export interface PageReader {
  /**
   * The picture of one page: of a PDF a drawing, of a picture its own bytes. Rejects with DocumentError, also where the
   * file isn't the one of `sha256`, and with exactly the reason of the signal.
   */
  page(path: string, number: number, options?: PageOptions): Promise<Buffer>;
  /** Whatever is being drawn. */
  close(): void;
}

export interface PageOptions {
  readonly sha256?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface PageReaderOptions {
  /** Without one a page may take for ever. */
  readonly clock?: Pick<Runtime, "setTimer">;
  /** Larger pictures are refused unread. */
  readonly maxPictureBytes?: number;
}

/** Documents kept open: calls in flight at the end of one document and the beginning of the next. */
const MAX_OPEN = 4;

interface OpenFile {
  readonly sha256: string;
  readonly picture: Buffer | null;
  readonly pdf: PdfDocument | null;
}

export function createPageReader({ clock, maxPictureBytes }: PageReaderOptions = {}): PageReader {
  const engine = createPdfEngine(clock);
  const opened = new Map<string, Promise<OpenFile>>();
  let turn: Promise<unknown> = Promise.resolve();
  let isClosed = false;

  function fileAt(path: string): Promise<OpenFile> {
    const known = opened.get(path);
    opened.delete(path);
    const opening = known ?? openAt(path);
    // The latest is the last to go.
    opened.set(path, opening);
    if (known !== undefined) return known;
    // A picture is wanted once.
    const forget = (): void => {
      if (opened.get(path) === opening) opened.delete(path);
    };
    opening.then(({ pdf }) => pdf === null && forget(), forget);
    for (const [oldest, file] of opened) {
      if (opened.size <= MAX_OPEN) break;
      opened.delete(oldest);
      file.then(
        ({ pdf }) => pdf?.close(),
        () => {},
      );
    }
    return opening;
  }

  async function openAt(path: string): Promise<OpenFile> {
    const { mediaType, sha256, bytes } = await readDocument(path, { name: path, wantsPicture: true, maxPictureBytes });
    if (mediaType !== "application/pdf") return { sha256, picture: bytes, pdf: null };
    return { sha256, picture: null, pdf: await engine.open(bytes!, path) };
  }

  async function read(path: string, number: number, sha256: string | undefined): Promise<Buffer> {
    const file = await fileAt(path);
    if (sha256 !== undefined && file.sha256 !== sha256) {
      throw new DocumentError("document", `${path} was changed since its pages were counted`);
    }
    if (file.pdf !== null) return file.pdf.renderPage(number);
    if (number === 1) return file.picture!;
    throw new DocumentError("page", `${path} is a picture: it has no page ${number}`);
  }

  /** What one page did to the drawing program is not the next one's fault: everything is opened afresh, and it is tried once more. */
  async function readAgain(path: string, number: number, { sha256, signal }: PageOptions): Promise<Buffer> {
    signal?.throwIfAborted();
    try {
      return await read(path, number, sha256);
    } catch (error) {
      if (!(error instanceof DocumentError) || error.kind !== "engine") throw error;
      opened.clear();
      signal?.throwIfAborted();
      if (isClosed) throw error;
      return await read(path, number, sha256).catch((again: unknown) => {
        opened.clear();
        throw again;
      });
    }
  }

  return {
    // One at a time: a drawn page takes tens of megabytes.
    page(path, number, options = {}) {
      const drawn = turn.then(() => readAgain(path, number, options));
      turn = drawn.catch(() => {});
      return untilAborted(drawn, options.signal);
    },
    close() {
      isClosed = true;
      opened.clear();
      engine.close();
    },
  };
}

/** Who no longer waits need not wait for what is being drawn. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(signal.reason);
    signal.addEventListener("abort", leave, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", leave));
    if (signal.aborted) leave();
  });
}
