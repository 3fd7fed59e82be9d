import { createReadStream, existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { replaceFile } from "../batch/replace-file.js";
import { keepPicture } from "../documents/files.js";
import { type OverlayPage, overlayHtml } from "../documents/overlay.js";
import { createPageReader, type PageReader, type SourceDocument } from "../documents/pages.js";
import { DocumentError } from "../documents/pdf.js";
import type { OcrLayout } from "../domain/ocr.js";
import { isOcrBody, type OcrBody } from "./ocr-body.js";
import { pagePath, pictureAddress, pictureEnding, writePage } from "./ocr-page-files.js";
import { pageId } from "./ocr-pages.js";

/** The files that people read: made from the lines of OUT after a run, again and again the same. */

/** A page that could not be read. */
export interface UnreadPage {
  readonly document: string;
  readonly page: number;
  readonly code: string;
  readonly message: string;
}

/** What became of one document. */
export interface ReadDocument {
  readonly name: string;
  readonly pages: number;
  readonly read: number;
  readonly failed: number;
  /** Pages that have no line yet. */
  readonly left: number;
  /** Its files, each the whole document. */
  readonly written: readonly string[];
}

export interface ExportedFiles {
  readonly documents: readonly ReadDocument[];
  readonly unread: readonly UnreadPage[];
}

type PageState = { readonly kind: "read" } | { readonly kind: "unread"; readonly why: UnreadPage };

export interface ExportRequest {
  readonly outPath: string;
  readonly folder: string;
  readonly documents: readonly SourceDocument[];
  readonly layout: boolean;
}

/** Writes the pages of `documents` that OUT holds. One page is in memory at a time, for the overlay one document. */
export async function exportPages({ outPath, folder, documents, layout }: ExportRequest): Promise<ExportedFiles> {
  const states = await writePages(outPath, folder, documents);
  const reader = createPageReader();
  const exported: ReadDocument[] = [];
  try {
    for (const document of documents) {
      const written = await writeDocument(document, folder, states, layout ? reader : null);
      exported.push({ ...countsOf(document, states), written });
    }
  } finally {
    reader.close();
  }
  return {
    documents: exported,
    unread: [...states.values()].flatMap((state) => (state.kind === "unread" ? [state.why] : [])),
  };
}

function countsOf(
  { name, pageCount }: SourceDocument,
  states: ReadonlyMap<string, PageState>,
): Omit<ReadDocument, "written"> {
  let [read, failed] = [0, 0];
  for (let page = 1; page <= pageCount; page += 1) {
    const kind = states.get(pageId(name, page))?.kind;
    if (kind === "read") read += 1;
    if (kind === "unread") failed += 1;
  }
  return { name, pages: pageCount, read, failed, left: pageCount - read - failed };
}

/** One file for each page that was read, and what became of every page. */
async function writePages(
  outPath: string,
  folder: string,
  documents: readonly SourceDocument[],
): Promise<Map<string, PageState>> {
  const pages = new Map<string, { document: SourceDocument; page: number }>();
  for (const document of documents) {
    for (let page = 1; page <= document.pageCount; page += 1) {
      pages.set(pageId(document.name, page), { document, page });
    }
  }
  const states = new Map<string, PageState>();
  if (!existsSync(outPath)) return states;
  for await (const text of createInterface({ input: createReadStream(outPath), crlfDelay: Number.POSITIVE_INFINITY })) {
    const line = readLine(text);
    const place = line === undefined ? undefined : pages.get(line.custom_id);
    if (line === undefined || place === undefined) continue;
    states.set(line.custom_id, await stateOf(line, place.document, place.page, folder));
  }
  return states;
}

interface OutLine {
  readonly custom_id: string;
  readonly response: { readonly body: unknown } | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

function readLine(text: string): OutLine | undefined {
  try {
    const line = JSON.parse(text) as Partial<OutLine> | null;
    return typeof line?.custom_id === "string" ? (line as OutLine) : undefined;
  } catch {
    // A torn last line: the next run cuts it.
    return undefined;
  }
}

async function stateOf(line: OutLine, document: SourceDocument, page: number, folder: string): Promise<PageState> {
  const body = line.response?.body;
  if (line.error !== null || !isOcrBody(body)) {
    const { code = "unexpected", message = "the line holds no OCR result" } = line.error ?? {};
    return { kind: "unread", why: { document: document.name, page, code, message } };
  }
  await writePage(folder, document, page, body);
  return { kind: "read" };
}

const FORM_FEED = "\f";

/** `name.txt`, `name.json`, and with a layout `name.html`. Nothing is written for a document without a page. */
async function writeDocument(
  document: SourceDocument,
  folder: string,
  states: ReadonlyMap<string, PageState>,
  pictures: PageReader | null,
): Promise<string[]> {
  const known = Array.from({ length: document.pageCount }, (_, index) => index + 1).filter((page) =>
    states.has(pageId(document.name, page)),
  );
  if (known.length === 0) return [];
  const base = join(folder, document.name);
  const stateAt = (page: number): PageState => states.get(pageId(document.name, page))!;
  await replaceFile(`${base}.txt`, async (write) => {
    for (const [index, page] of known.entries()) {
      const text = stateAt(page).kind === "read" ? await readFile(pagePath(folder, document, page, "txt"), "utf8") : "";
      await write(`${index === 0 ? "" : FORM_FEED}${text}`);
    }
  });
  await replaceFile(`${base}.json`, async (write) => {
    const { name, sha256, pageCount } = document;
    await write(`${JSON.stringify({ file: name, sha256, pages: pageCount }).slice(0, -1)},"results":[`);
    for (const [index, page] of known.entries()) {
      await write(
        `${index === 0 ? "" : ","}\n${JSON.stringify(await pageEntry(document, page, stateAt(page), folder))}`,
      );
    }
    await write("\n]}\n");
  });
  if (pictures === null) return [`${base}.txt`, `${base}.json`];
  const overlay: OverlayPage[] = [];
  for (const page of known) overlay.push(await overlayPage(document, page, stateAt(page), folder, pictures));
  await replaceFile(`${base}.html`, (write) => write(overlayHtml(document.name, overlay)));
  return [`${base}.txt`, `${base}.json`, `${base}.html`];
}

async function bodyOf(document: SourceDocument, page: number, folder: string): Promise<OcrBody> {
  return JSON.parse(await readFile(pagePath(folder, document, page, "json"), "utf8")) as OcrBody;
}

async function pageEntry(document: SourceDocument, page: number, state: PageState, folder: string): Promise<unknown> {
  if (state.kind === "read") return { page, ...(await bodyOf(document, page, folder)) };
  return { page, error: { code: state.why.code, message: state.why.message } };
}

/** An upright A4 sheet. */
const DEFAULT_ASPECT = 210 / 297;

async function overlayPage(
  document: SourceDocument,
  page: number,
  state: PageState,
  folder: string,
  pictures: PageReader,
): Promise<OverlayPage> {
  const blank = { page, picture: null, aspect: DEFAULT_ASPECT, elements: [], failure: null };
  if (state.kind === "unread") return { ...blank, failure: state.why.message };
  const body = await bodyOf(document, page, folder);
  const { elements = [], pages = [] } = body as Partial<Pick<OcrLayout, "elements" | "pages">>;
  const [sheet] = pages;
  return {
    ...blank,
    elements,
    aspect: sheet?.width && sheet.height ? sheet.width / sheet.height : DEFAULT_ASPECT,
    picture: await pictureOf(document, page, folder, pictures),
  };
}

/** Kept as the page was read; of an older run, or where it was removed, it is drawn again. */
async function pictureOf(
  document: SourceDocument,
  page: number,
  folder: string,
  pictures: PageReader,
): Promise<string | null> {
  const ending = pictureEnding(document);
  if (ending === null) return null;
  const path = pagePath(folder, document, page, ending);
  if (!existsSync(path)) {
    try {
      await keepPicture(path, await pictures.page(document.path, page, { sha256: document.sha256 }));
    } catch (error) {
      // The document may be gone by now; what was read of it is not.
      if (!(error instanceof DocumentError)) throw error;
    }
  }
  return existsSync(path) ? pictureAddress(document, page, ending) : null;
}
