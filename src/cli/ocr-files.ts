import { createReadStream, existsSync } from "node:fs";
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { replaceFile } from "../batch/replace-file.js";
import { type OverlayPage, overlayHtml } from "../documents/overlay.js";
import { createPageReader, type PageReader, type SourceDocument } from "../documents/pages.js";
import { DocumentError } from "../documents/pdf.js";
import type { OcrLayout } from "../domain/ocr.js";
import { makeFolder } from "../make-folder.js";
import { isOcrBody, type OcrBody } from "./ocr-body.js";
import { lineIdOf } from "./ocr-pages.js";
import { textOf } from "./ocr-text.js";

/** The files that people read: those of a page as it comes, all of them from the lines of OUT after a run, again and again the same. */

/** A page that could not be read. */
export interface UnreadPage {
  readonly document: string;
  readonly page: number;
  readonly code: string;
  readonly message: string;
}

export interface ExportedFiles {
  readonly paths: readonly string[];
  readonly unread: readonly UnreadPage[];
  /** Pages that have no line yet. */
  readonly left: number;
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
  const paths: string[] = [];
  try {
    for (const document of documents) {
      paths.push(...(await writeDocument(document, folder, states, layout ? reader : null)));
    }
  } finally {
    reader.close();
  }
  const unread = [...states.values()].flatMap((state) => (state.kind === "unread" ? [state.why] : []));
  const total = documents.reduce((sum, { pageCount }) => sum + pageCount, 0);
  return { paths, unread, left: total - states.size };
}

/** One file for each page that was read, and what became of every page. */
async function writePages(
  outPath: string,
  folder: string,
  documents: readonly SourceDocument[],
): Promise<Map<string, PageState>> {
  const pages = new Map<string, { document: SourceDocument; page: number }>();
  for (const document of documents) {
    for (let page = 1; page <= document.pageCount; page += 1) pages.set(lineIdOf(document, page), { document, page });
  }
  const states = new Map<string, PageState>();
  if (!existsSync(outPath)) return states;
  for await (const text of createInterface({ input: createReadStream(outPath), crlfDelay: Number.POSITIVE_INFINITY })) {
    const line = readLine(text);
    const place = line === undefined ? undefined : pages.get(line.custom_id);
    if (line === undefined || place === undefined) continue;
    states.set(line.custom_id, await writePage(line, place.document, place.page, folder));
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

async function writePage(line: OutLine, document: SourceDocument, page: number, folder: string): Promise<PageState> {
  const body = line.response?.body;
  if (line.error !== null || !isOcrBody(body)) {
    const { code = "unexpected", message = "the line holds no OCR result" } = line.error ?? {};
    return { kind: "unread", why: { document: document.name, page, code, message } };
  }
  await writePageFiles(folder, document, page, body);
  return { kind: "read" };
}

/** The files of one page that was read; each is there whole or not at all. */
export async function writePageFiles(folder: string, document: Named, page: number, body: OcrBody): Promise<void> {
  makeFolder(join(folder, document.name));
  await replaceFile(pagePath(folder, document, page, "json"), (write) => write(`${JSON.stringify(body, null, 2)}\n`));
  await replaceFile(pagePath(folder, document, page, "txt"), (write) => write(`${textOf(body)}\n`));
}

type Named = Pick<SourceDocument, "name">;

function pagePath(folder: string, document: Named, page: number, ending: string): string {
  return join(folder, document.name, `page-${String(page).padStart(4, "0")}.${ending}`);
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
    states.has(lineIdOf(document, page)),
  );
  if (known.length === 0) return [];
  const base = join(folder, document.name);
  const stateOf = (page: number): PageState => states.get(lineIdOf(document, page))!;
  await replaceFile(`${base}.txt`, async (write) => {
    for (const [index, page] of known.entries()) {
      const text = stateOf(page).kind === "read" ? await readFile(pagePath(folder, document, page, "txt"), "utf8") : "";
      await write(`${index === 0 ? "" : FORM_FEED}${text}`);
    }
  });
  await replaceFile(`${base}.json`, async (write) => {
    const { name, sha256, pageCount } = document;
    await write(`${JSON.stringify({ file: name, sha256, pages: pageCount }).slice(0, -1)},"results":[`);
    for (const [index, page] of known.entries()) {
      await write(
        `${index === 0 ? "" : ","}\n${JSON.stringify(await pageEntry(document, page, stateOf(page), folder))}`,
      );
    }
    await write("\n]}\n");
  });
  if (pictures === null) return [`${base}.txt`, `${base}.json`];
  const overlay: OverlayPage[] = [];
  for (const page of known) overlay.push(await overlayPage(document, page, stateOf(page), folder, pictures));
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

/** What a browser can show: the drawn page, or the picture itself. TIFF it can't. */
async function pictureOf(
  document: SourceDocument,
  page: number,
  folder: string,
  pictures: PageReader,
): Promise<string | null> {
  if (document.mediaType === "image/tiff") return null;
  const isPdf = document.mediaType === "application/pdf";
  const ending = isPdf ? "png" : document.mediaType.slice("image/".length);
  const path = pagePath(folder, document, page, ending);
  const address = `${encodeURIComponent(document.name)}/page-${String(page).padStart(4, "0")}.${ending}`;
  if (existsSync(path)) return address;
  try {
    // Whole or not at all: a picture that is there is not drawn again.
    await writeFile(`${path}.tmp`, await pictures.page(document.path, page, document.sha256));
    await rename(`${path}.tmp`, path);
    return address;
  } catch (error) {
    // The document may be gone by now; what was read of it is not.
    if (error instanceof DocumentError) return null;
    throw error;
  }
}
