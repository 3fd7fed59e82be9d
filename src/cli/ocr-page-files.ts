import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { replaceFile } from "../batch/replace-file.js";
import type { SourceDocument } from "../documents/pages.js";
import type { OcrBody } from "./ocr-body.js";
import { readableText } from "./ocr-text.js";

/** The files of one page, in a folder named like its document. */

type PageDocument = Pick<SourceDocument, "name" | "mediaType">;

function pageName(page: number, ending: string): string {
  return `page-${String(page).padStart(4, "0")}.${ending}`;
}

export function pagePath(folder: string, { name }: PageDocument, page: number, ending: string): string {
  return join(folder, name, pageName(page, ending));
}

/** The ending of a page's picture that a browser shows: the drawn page, or the picture itself. null: TIFF it can't. */
export function pictureEnding({ mediaType }: PageDocument): string | null {
  if (mediaType === "image/tiff") return null;
  return mediaType === "application/pdf" ? "png" : mediaType.slice("image/".length);
}

/** Relative to the folder of the results. */
export function pictureAddress({ name }: PageDocument, page: number, ending: string): string {
  return `${encodeURIComponent(name)}/${pageName(page, ending)}`;
}

/** Each file whole or not at all; one that holds this already is left alone. */
export async function writePage(folder: string, document: PageDocument, page: number, body: OcrBody): Promise<void> {
  await writeIfNew(pagePath(folder, document, page, "txt"), `${readableText(body)}\n`);
  await writeIfNew(pagePath(folder, document, page, "json"), `${JSON.stringify(body, null, 2)}\n`);
}

async function writeIfNew(path: string, text: string): Promise<void> {
  const before = await readFile(path, "utf8").catch(() => undefined);
  if (before === text) return;
  await mkdir(dirname(path)).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
  await replaceFile(path, (write) => write(text));
}
