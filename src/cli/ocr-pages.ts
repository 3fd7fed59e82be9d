import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { acquireLock, thisProcess } from "../batch/lock.js";
import { replaceFile } from "../batch/replace-file.js";
import type { SourceDocument } from "../documents/pages.js";
import { makeFolder } from "../make-folder.js";
import type { Runtime } from "../ports/runtime.js";
import { CliError } from "./failure.js";

/**
 * `pages.jsonl`: every page that a folder holds or will hold, as the lines of a batch. A document is known by its name and
 * the digest of its bytes, never by where it stands, so that folder and documents may be moved; lines are only ever
 * appended, so that documents may be added.
 */

export const PAGES_FILE = "pages.jsonl";
export const RESULTS_FILE = "ocr.jsonl";

/** The page with this number (from 1) of the document with this name; stays for ever. */
export function pageId(name: string, page: number): string {
  return `${name}#${page}`;
}

interface PageLine {
  readonly id: string;
  readonly image: string;
  readonly page?: number;
  readonly layout?: boolean;
  readonly sha256: string;
}

export interface PagesRequest {
  readonly folder: string;
  readonly documents: readonly SourceDocument[];
  readonly layout: boolean;
  readonly runtime: Pick<Runtime, "wallNow" | "uuid">;
}

/**
 * Adds the pages of these documents to the folder, made where it isn't there. Throws CliError, with nothing changed, where
 * the folder holds other pages under their names, and BatchRefusedError while another run is at work there.
 */
export async function addPages({ folder, documents, layout, runtime }: PagesRequest): Promise<void> {
  let release = (): void => {};
  try {
    makeFolder(folder);
    const owner = thisProcess(new Date(runtime.wallNow()).toISOString(), runtime.uuid());
    // The lock of the run itself: of two commands that add pages, each must see those of the other.
    release = acquireLock(join(realpathSync(folder), `${RESULTS_FILE}.lock`), owner);
    const path = join(folder, PAGES_FILE);
    const before = readPages(folder);
    refuseConflicts(folder, before.lines, documents, layout);
    const known = new Set(before.lines.map(({ id }) => id));
    const added = documents.flatMap((document) => linesOf(document, layout)).filter(({ id }) => !known.has(id));
    if (added.length === 0 && before.isOnDisk) return;
    const text = added.map((line) => `${JSON.stringify(line)}\n`).join("");
    await replaceFile(path, (write) => write(before.text + text));
  } catch (error) {
    // What others refuse is told already; the rest is the file system's.
    const { code } = error as NodeJS.ErrnoException;
    if (!(error instanceof Error) || error instanceof CliError || !/^E[A-Z]+$/.test(String(code))) throw error;
    throw new CliError(`The folder ${folder} can't be written to: ${error.message}`);
  } finally {
    release();
  }
}

function linesOf({ name, sha256, mediaType, pageCount }: SourceDocument, layout: boolean): PageLine[] {
  return Array.from({ length: pageCount }, (_, index) => ({
    id: pageId(name, index + 1),
    image: name,
    ...(mediaType === "application/pdf" ? { page: index + 1 } : {}),
    ...(layout ? { layout } : {}),
    sha256,
  }));
}

interface KnownPages {
  readonly text: string;
  readonly lines: readonly PageLine[];
  readonly isOnDisk: boolean;
}

/** Of a folder without results everything is written anew. */
function readPages(folder: string): KnownPages {
  const path = join(folder, PAGES_FILE);
  const results = join(folder, RESULTS_FILE);
  const hasResults = (statSync(results, { throwIfNoEntry: false })?.size ?? 0) > 0;
  if (!existsSync(path)) {
    if (!hasResults) return { text: "", lines: [], isOnDisk: false };
    throw new CliError(
      `${results} is there, but not ${path}, which says what pages it is about. Put it back, or read into another folder with -o.`,
    );
  }
  const text = readFileSync(path, "utf8");
  const lines = text.split("\n").slice(0, -1).map(pageLine);
  if (!text.endsWith("\n") || lines.includes(undefined)) {
    throw new CliError(
      `${path} was not written by this command, or was changed since. Read into another folder with -o.`,
    );
  }
  return hasResults ? { text, lines: lines as PageLine[], isOnDisk: true } : { text: "", lines: [], isOnDisk: false };
}

function pageLine(text: string): PageLine | undefined {
  try {
    const line = JSON.parse(text) as Partial<PageLine> | null;
    const isOurs = [line?.id, line?.image, line?.sha256].every((field) => typeof field === "string");
    return isOurs && line?.id?.includes("#") ? (line as PageLine) : undefined;
  } catch {
    return undefined;
  }
}

/** The same name for something else: its results would be taken for those of the other. */
function refuseConflicts(
  folder: string,
  lines: readonly PageLine[],
  documents: readonly SourceDocument[],
  layout: boolean,
): void {
  const known = new Map(lines.map((line) => [line.id, line]));
  const conflicts = documents.flatMap(({ given, name, sha256 }) => {
    const line = known.get(pageId(name, 1));
    if (line === undefined) return [];
    if (line.sha256 !== sha256) {
      return [`${given}: its content is not that of the ${name} whose pages are in ${folder}.`];
    }
    const before = line.layout === true;
    if (before === layout) return [];
    return [`${given}: it was read ${before ? "with" : "without"} --layout, and not ${before ? "without" : "with"}.`];
  });
  if (conflicts.length === 0) return;
  throw new CliError(
    [
      `${folder} has results of other pages by these names; nothing was sent:`,
      ...conflicts.map((conflict) => `  ${conflict}`),
      "Read them into another folder with -o, or give a changed file another name.",
    ].join("\n"),
  );
}
