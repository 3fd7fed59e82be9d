import { createReadStream, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { replaceFile } from "../batch/replace-file.js";
import type { SourceDocument } from "../documents/pages.js";
import { makeFolder } from "../make-folder.js";
import { CliError } from "./failure.js";
import { plural } from "./format.js";

/** `pages.jsonl` of a folder: every page of the run as a line of a batch. A file is called by its name, wherever it lies now. */

const MOST_NAMED = 3;

interface PageLine {
  readonly id: string;
  readonly image: string;
  readonly page?: number;
  readonly layout?: true;
  readonly sha256: string;
}

/** Id of the line of one page. */
export function lineIdOf({ name }: Pick<SourceDocument, "name">, page: number): string {
  return `${name}#${page}`;
}

function linesOf({ name, sha256, mediaType, pageCount }: SourceDocument, layout: boolean): PageLine[] {
  return Array.from({ length: pageCount }, (_, index) => ({
    id: lineIdOf({ name }, index + 1),
    image: name,
    ...(mediaType === "application/pdf" ? { page: index + 1 } : {}),
    ...(layout ? { layout } : {}),
    sha256,
  }));
}

export interface PagesRequest {
  readonly folder: string;
  readonly outPath: string;
  readonly documents: readonly SourceDocument[];
  readonly layout: boolean;
  /** Failed pages are due again. */
  readonly retryFailed: boolean;
  /** Names of files that were given, though they can't be read now. */
  readonly unusable: ReadonlySet<string>;
}

/**
 * Writes the pages of a run and answers the path of their file. What a run on the same folder had begun keeps its lines, so
 * that it goes on; files that are new come after them.
 *
 * Throws CliError where the results of both can't stand in one folder, saying which file is in the way.
 */
export async function writePageLines(request: PagesRequest): Promise<string> {
  const { folder, outPath, documents, layout } = request;
  const path = join(folder, "pages.jsonl");
  try {
    makeFolder(folder);
    const earlier = existsSync(path) ? readPages(path) : [];
    const known = existsSync(outPath) ? earlier : [];
    await refuseConflicts(known, request);
    const begun = new Set(known.map(({ image }) => image));
    const added = documents.filter(({ name }) => !begun.has(name)).flatMap((document) => linesOf(document, layout));
    const text = [...known, ...added].map((line) => `${JSON.stringify(line)}\n`).join("");
    if (!existsSync(path) || readFileSync(path, "utf8") !== text) await replaceFile(path, (write) => write(text));
    return path;
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(`The folder ${folder} can't be written to: ${(error as Error).message}`);
  }
}

/** Throws CliError for a file that somebody else wrote: nothing of it is touched. */
function readPages(path: string): PageLine[] {
  const lines = readFileSync(path, "utf8").split("\n");
  if (lines.pop() !== "") throw notOurs(path);
  return lines.map((text) => {
    const line = parsed(text);
    if (line === null) throw notOurs(path);
    return line;
  });
}

function parsed(text: string): PageLine | null {
  try {
    const line = JSON.parse(text) as Partial<PageLine> | null;
    const isOurs = typeof line?.id === "string" && typeof line.image === "string" && typeof line.sha256 === "string";
    return isOurs ? (line as PageLine) : null;
  } catch {
    return null;
  }
}

function notOurs(path: string): CliError {
  return new CliError(
    `${path} was not written by this command, which keeps the pages of its run there. Give another folder with -o.`,
  );
}

async function refuseConflicts(known: readonly PageLine[], request: PagesRequest): Promise<void> {
  const { folder, documents, layout } = request;
  const [first] = known;
  if (first !== undefined && (first.layout === true) !== layout) {
    const [before, now] = layout ? ["without", "with"] : ["with", "without"];
    throw new CliError(
      `${folder} was begun ${before} --layout, and this is ${now} it: their results can't stand in one folder. Give another folder with -o.`,
    );
  }
  const digests = new Map(known.map(({ image, sha256 }) => [image, sha256]));
  for (const { name, path, sha256 } of documents) {
    const before = digests.get(name);
    if (before === undefined || before === sha256) continue;
    throw new CliError(
      `${folder} holds the results of another ${name}: ${path} was changed since, or is another file of that name. Give another folder with -o.`,
    );
  }
  await refuseMissing(known, request);
}

/** Pages of a file that was not named this time can't be read; where they all are, its results just stay. */
async function refuseMissing(known: readonly PageLine[], request: PagesRequest): Promise<void> {
  const { folder, outPath, documents, retryFailed, unusable } = request;
  const given = new Set([...unusable, ...documents.map(({ name }) => name)]);
  const missing = known.filter(({ image }) => !given.has(image));
  if (missing.length === 0) return;
  const done = await finishedIds(outPath, retryFailed);
  const due = missing.filter(({ id }) => !done.has(id));
  if (due.length === 0) return;
  const names = [...new Set(due.map(({ image }) => image))];
  const shown = names.slice(0, MOST_NAMED).join(", ");
  const more = names.length > MOST_NAMED ? ` and ${plural(names.length - MOST_NAMED, "more file")}` : "";
  throw new CliError(
    `${folder} also belongs to ${shown}${more}, of which ${plural(due.length, "page")} still have to be read. Name all files again, or give another folder with -o.`,
  );
}

async function finishedIds(outPath: string, retryFailed: boolean): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  for await (const text of createInterface({ input: createReadStream(outPath), crlfDelay: Number.POSITIVE_INFINITY })) {
    try {
      const { custom_id: id, error } = JSON.parse(text) as { custom_id?: unknown; error?: unknown };
      if (typeof id === "string" && !(retryFailed && error !== null)) ids.add(id);
    } catch {
      // A torn last line: its page is due again.
    }
  }
  return ids;
}
