import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { basename, resolve } from "node:path";
import type { OcrMediaType } from "../domain/ocr.js";
import { mediaTypeOf } from "../domain/picture.js";
import { DocumentError, openPdf, type PdfDocument } from "./pdf.js";

/** A file that is to be read page by page. */
export interface SourceDocument {
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

/** A file that was given and can't be read. */
export interface UnusableFile {
  readonly path: string;
  readonly name: string;
  /** A finished sentence without its full stop, with the file in it. */
  readonly reason: string;
}

export interface LookedAt {
  readonly documents: readonly SourceDocument[];
  readonly unusable: readonly UnusableFile[];
}

/** Reads what each file is and how many pages it has. Throws DocumentError where two files have one name. */
export async function lookAtDocuments(paths: readonly string[]): Promise<LookedAt> {
  const documents: SourceDocument[] = [];
  const unusable: UnusableFile[] = [];
  for (const [name, path] of byName(paths)) {
    try {
      documents.push(await lookAt(path, name));
    } catch (error) {
      // A package that is missing is no fault of the file.
      if (!(error instanceof DocumentError) || error.kind === "no_driver") throw error;
      unusable.push({ path, name, reason: error.message });
    }
  }
  return { documents, unusable };
}

function byName(paths: readonly string[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const given of paths) {
    const path = resolve(given);
    const name = basename(path);
    const other = found.get(name) ?? path;
    if (other !== path) {
      throw new DocumentError(
        "document",
        `${other} and ${path} have the same name, and so would their results. Read them in two runs with a folder each`,
      );
    }
    found.set(name, path);
  }
  return found;
}

async function lookAt(path: string, name: string): Promise<SourceDocument> {
  const bytes = await readDocument(path);
  const mediaType = mediaTypeOf(bytes);
  if (mediaType === undefined) {
    throw new DocumentError("document", `${path} is neither PNG, JPEG, WebP, TIFF nor PDF by its content`);
  }
  const sha256 = sha256Of(bytes);
  if (mediaType !== "application/pdf") return { path, name, mediaType, pageCount: 1, sha256 };
  const pdf = await openPdf(bytes, path);
  try {
    return { path, name, mediaType, pageCount: pdf.pageCount, sha256 };
  } finally {
    pdf.close();
  }
}

const sha256Of = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

/** The bytes of a regular file. Throws DocumentError. */
async function readDocument(path: string): Promise<Buffer> {
  try {
    await using file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const stats = await file.stat();
    if (!stats.isFile())
      throw new DocumentError(
        "document",
        `${path} is ${stats.isDirectory() ? "a folder; name the files in it" : "no file"}`,
      );
    return await file.readFile();
  } catch (error) {
    if (error instanceof DocumentError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === "ENOENT" ? "there is no such file" : message;
    throw new DocumentError("document", `${path} can't be read: ${why}`, error);
  }
}

/** Draws pages of PDFs that stay open between two of them, one document at a time in the order they come. */
export interface PageReader {
  /** The picture of one page: of a PDF a drawing, of a picture its own bytes. Rejects with DocumentError, also where the file isn't the one of `sha256`. */
  page(path: string, number: number, sha256?: string): Promise<Buffer>;
  close(): void;
}

/** Documents kept open: calls in flight at the end of one document and the beginning of the next. */
const MAX_OPEN = 4;

export function createPageReader(): PageReader {
  const opened = new Map<string, Promise<{ bytes: Buffer; pdf: PdfDocument | null }>>();
  let turn: Promise<unknown> = Promise.resolve();

  function documentAt(path: string): Promise<{ bytes: Buffer; pdf: PdfDocument | null }> {
    const known = opened.get(path);
    if (known !== undefined) {
      opened.delete(path);
      opened.set(path, known);
      return known;
    }
    const opening = openAt(path);
    opened.set(path, opening);
    opening.catch(() => opened.delete(path));
    for (const [oldest, document] of opened) {
      if (opened.size <= MAX_OPEN) break;
      opened.delete(oldest);
      void closed(document);
    }
    return opening;
  }

  async function read(path: string, number: number, sha256: string | undefined): Promise<Buffer> {
    const { bytes, pdf } = await documentAt(path);
    if (sha256 !== undefined && sha256Of(bytes) !== sha256) {
      throw new DocumentError("document", `${path} was changed since its pages were counted`);
    }
    if (pdf !== null) return pdf.renderPage(number);
    if (number === 1) return bytes;
    throw new DocumentError("page", `${path} is a picture: it has no page ${number}`);
  }

  /** What one page did to the drawing program is not the next one's fault: everything is opened afresh, and it is tried once more. */
  async function readAgain(path: string, number: number, sha256: string | undefined): Promise<Buffer> {
    try {
      return await read(path, number, sha256);
    } catch (error) {
      if (!(error instanceof DocumentError) || error.kind !== "engine") throw error;
      opened.clear();
      return await read(path, number, sha256).catch((again: unknown) => {
        opened.clear();
        throw again;
      });
    }
  }

  return {
    // One at a time: a drawn page takes tens of megabytes, and the main thread.
    page(path, number, sha256) {
      const drawn = turn.then(() => readAgain(path, number, sha256));
      turn = drawn.catch(() => {});
      return drawn;
    },
    close() {
      for (const document of opened.values()) void closed(document);
      opened.clear();
    },
  };
}

async function openAt(path: string): Promise<{ bytes: Buffer; pdf: PdfDocument | null }> {
  const bytes = await readDocument(path);
  return { bytes, pdf: mediaTypeOf(bytes) === "application/pdf" ? await openPdf(bytes, path) : null };
}

async function closed(document: Promise<{ pdf: PdfDocument | null }>): Promise<void> {
  const opened = await document.catch(() => undefined);
  opened?.pdf?.close();
}
