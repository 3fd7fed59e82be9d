import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import type { SourceDocument } from "../documents/pages.js";
import { parseCount, parsePath } from "./arguments.js";
import { MOST_WORKERS, parseWorkers, type RunFlags, runLines, withRunOptions } from "./batch.js";
import type { CommandContext } from "./context.js";
import { CliError } from "./failure.js";
import { plural } from "./format.js";
import { printable, type Terminal } from "./terminal.js";

interface OcrFlags extends RunFlags {
  layout?: boolean;
  workers?: number;
}

const EXAMPLES = `
Pictures (PNG, JPEG, WebP, TIFF) and PDFs, told by their content. Each page is one governed call, so that a page that
fails costs no other; the pages of a PDF are drawn at 200 dpi (needs the package @hyzyla/pdfium).

Written to the folder, for scan.pdf:
  scan.pdf.txt        the text, pages separated by form feeds
  scan.pdf.json       the pages with their results, and why a page is missing
  scan.pdf.html       with --layout: boxes over the pictures of the pages, to look at
  scan.pdf/page-0001… each page by itself
  ocr.jsonl           one result line for each page; what makes the run resumable

Examples:
  polygateway ocr scan.pdf photo.jpg -o read/
  polygateway ocr scans/*.pdf -o read/ --layout
  polygateway ocr scan.pdf -o read/ --layout --retry-failed

It needs a scope for OCR, whose sources name their TRANSPORT (monkey-ocr, mineru, paddle, mistral, or vlm).
Stopped or killed at any moment, the same command goes on where it was.
Exit codes: 0 all read · 1 could not run · 2 some pages failed · 3 gave up or was stopped, run it again.`;

const MOST_SHOWN = 20;

async function ocr(paths: readonly string[], flags: OcrFlags, terminal: Terminal): Promise<number> {
  const [{ lookAtDocuments }, { openCaller }, { exportPages }] = await Promise.all([
    import("../documents/pages.js"),
    import("./batch-caller.js"),
    import("./ocr-files.js"),
  ]);
  const folder = flags.out;
  const layout = flags.layout === true;
  const documents = await lookAtDocuments(paths).catch(inOurWords);
  refuseClashes(folder, documents);
  const inPath = await writeLines(folder, documents, layout);
  const outPath = join(folder, "ocr.jsonl");
  const run = { ...flags, out: outPath };
  const exitCode = await runLines(inPath, run, terminal, (note) =>
    openCaller({ ...run, kinds: ["ocr"], outPath, terminal, note }),
  ).catch((error: unknown) => {
    throw (error as { kind?: unknown }).kind === "out_other_in" ? otherRun(folder) : error;
  });
  const { paths: written, unread, left } = await exportPages({ outPath, folder, documents, layout });
  if (flags.quiet) return exitCode;
  const lines = [
    ...unread
      .slice(0, MOST_SHOWN)
      .map(({ document, page, message }) => `Not read: ${document}, page ${page}: ${message}`),
    ...(unread.length > MOST_SHOWN
      ? [`… and ${plural(unread.length - MOST_SHOWN, "more page")}, named in the .json files.`]
      : []),
    ...(left > 0 ? [`${plural(left, "page")} still to be read.`] : []),
    ...(written.length > 0 ? [`Written: ${written.join(", ")}`] : []),
  ];
  // The summary alone is what a program reads from standard output.
  const stream = flags.json ? terminal.stderr : terminal.stdout;
  for (const line of lines) stream.write(`${printable(line)}\n`);
  return exitCode;
}

/** The pages as lines of a batch; the same files give the same lines, so that a run can go on. */
async function writeLines(folder: string, documents: readonly SourceDocument[], layout: boolean): Promise<string> {
  const [{ replaceFile }, { lineIdOf }] = await Promise.all([
    import("../batch/replace-file.js"),
    import("./ocr-files.js"),
  ]);
  try {
    mkdirSync(folder, { recursive: true });
    const inPath = join(folder, "pages.jsonl");
    const lines = documents.flatMap((document) => {
      const { path, sha256, mediaType, pageCount } = document;
      return Array.from({ length: pageCount }, (_, index) => {
        const place = mediaType === "application/pdf" ? { page: index + 1 } : {};
        const line = {
          id: lineIdOf(document, index + 1),
          image: path,
          ...place,
          ...(layout ? { layout } : {}),
          sha256,
        };
        return `${JSON.stringify(line)}\n`;
      });
    });
    const text = lines.join("");
    const before = existsSync(inPath) ? readFileSync(inPath, "utf8") : undefined;
    // Of another run, or of somebody else: nothing of it is touched.
    const hasResults = existsSync(join(folder, "ocr.jsonl"));
    const isOurs = before === undefined || (!hasResults && before.startsWith('{"id":'));
    if (before !== text && !isOurs) throw otherRun(folder);
    if (before !== text) await replaceFile(inPath, (write) => write(text));
    return inPath;
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(`The folder ${folder} can't be written to: ${(error as Error).message}`);
  }
}

/** What is wrong with a document is told in full by its error. */
function inOurWords(error: unknown): never {
  throw error instanceof Error && error.name === "DocumentError" ? new CliError(error.message) : error;
}

const OWN_FILES = ["ocr.jsonl", "ocr.jsonl.lock", "ocr.jsonl.pgw.json", "pages.jsonl"];

/** Found before anything is paid: two documents, or a document and its own picture, that want one name. */
function refuseClashes(folder: string, documents: readonly SourceDocument[]): void {
  const taken = new Map(OWN_FILES.map((name) => [name, "the run's own file"]));
  for (const { path, name } of documents) {
    if (resolve(folder, name) === path) {
      throw new CliError(
        `${path} stands in the folder of the results, where ${name} becomes a folder of its pages. Give another folder with -o.`,
      );
    }
    for (const wanted of [name, `${name}.txt`, `${name}.json`, `${name}.html`]) {
      const other = taken.get(wanted);
      if (other !== undefined) {
        throw new CliError(
          `Results of ${path} would be called ${wanted}, as those of ${other} are. Rename one, or read them into different folders.`,
        );
      }
      taken.set(wanted, path);
    }
  }
}

/** A folder holds one run; what is wrong is said in the words of this command. */
function otherRun(folder: string): CliError {
  return new CliError(
    `${folder} holds the results of other files, or of the other mode (with or without --layout). Give these files a folder of their own with -o.`,
  );
}

export function registerOcr(program: Command, context: CommandContext): void {
  const command = program
    .command("ocr")
    .summary("read pictures and PDFs page by page: governed, resumable")
    .description("Read the text, or the layout, of every page through the governed OCR sources.")
    .argument("<files...>", "pictures and PDFs")
    .option("--layout", "what stands where, with boxes; without it the text alone")
    .option("--concurrency <n>", "pages in flight (default: what the sources' limits allow, at most 256)", parseCount)
    .option(
      "--workers <n>",
      `processes that share these pages, at most ${MOST_WORKERS}; needs limits in Redis (default 1)`,
      parseWorkers,
    )
    .option("--scope <name>", "scope to use (default: the only one for OCR)");
  withRunOptions(command, ["-o, --out <folder>", "where results go; the same folder again resumes", parsePath])
    .addHelpText("after", EXAMPLES)
    .action(async (paths: string[], flags: OcrFlags) => {
      context.exitCode = await ocr(paths, flags, context.terminal);
    });
}
