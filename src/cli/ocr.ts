import { join, resolve } from "node:path";
import type { Command } from "commander";
import type { SourceDocument } from "../documents/pages.js";
import { parseCount, parsePath } from "./arguments.js";
import { MOST_WORKERS, parseWorkers, type RunFlags, runLines, withRunOptions } from "./batch.js";
import type { CommandContext } from "./context.js";
import { CliError } from "./failure.js";
import { plural } from "./format.js";
import { PAGE_WORDS } from "./run-words.js";
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
  scan.pdf/page-0001… each page by itself, as soon as it is read
  ocr.jsonl           one result line for each page, as \`polygateway batch\` writes them
  pages.jsonl         which pages belong to the run; with ocr.jsonl it makes the run resumable

Examples:
  polygateway ocr scan.pdf photo.jpg -o read/
  polygateway ocr scans/*.pdf -o read/ --layout
  polygateway ocr scan.pdf -o read/ --layout --retry-failed

It needs a scope for OCR, whose sources name their TRANSPORT (monkey-ocr, mineru, paddle, mistral, or vlm).
Stopped or killed at any moment, the same command goes on where it was; the folder and the files may have been moved,
and more files may be added. A file that can't be read is named and left out. --json prints the summary on standard
output (as \`batch --json\` does), and what was written on standard error.
Exit codes: 0 all read · 1 could not run · 2 some pages or files failed · 3 gave up or was stopped, run it again.`;

const MOST_SHOWN = 20;

async function ocr(paths: readonly string[], flags: OcrFlags, terminal: Terminal): Promise<number> {
  const [{ lookAtDocuments }, { openCaller }, { exportPages }, { writePageLines }, { pagesOf }] = await Promise.all([
    import("../documents/pages.js"),
    import("./batch-caller.js"),
    import("./ocr-files.js"),
    import("./ocr-pages.js"),
    import("./ocr-caller.js"),
  ]);
  const folder = flags.out;
  const layout = flags.layout === true;
  const { documents, unusable } = await lookAtDocuments(paths).catch(inOurWords);
  refuseClashes(folder, documents);
  if (documents.length === 0) throw new CliError(unusable.map(({ reason }) => `${reason}.`).join("\n"));
  const outPath = join(folder, "ocr.jsonl");
  const names = new Set(unusable.map(({ name }) => name));
  const retryFailed = flags.retryFailed === true;
  const inPath = await writePageLines({ folder, outPath, documents, layout, retryFailed, unusable: names });
  for (const { reason } of unusable) terminal.stderr.write(`${printable(`polygateway: ${reason}; it is left out`)}\n`);
  const run = { ...flags, out: outPath };
  const openPages = (note: (text: string) => void) => {
    const caller = openCaller({ ...run, kinds: ["ocr"], outPath, terminal, note });
    return pagesOf(caller, { folder, files: [...documents, ...unusable] });
  };
  const exitCode = await runLines(inPath, run, terminal, openPages, PAGE_WORDS).catch((error: unknown) => {
    throw (error as { kind?: unknown }).kind === "out_other_in" ? otherPages(folder) : error;
  });
  const { paths: written, unread, left } = await exportPages({ outPath, folder, documents, layout });
  const finalCode = exitCode === 0 && unusable.length > 0 ? 2 : exitCode;
  if (flags.quiet) return finalCode;
  const lines = [
    ...unusable.map(({ reason }) => `Not read: ${reason}`),
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
  return finalCode;
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

/** Said in the words of this command. */
function otherPages(folder: string): CliError {
  return new CliError(
    `${join(folder, "ocr.jsonl")} holds the results of other pages than pages.jsonl beside it names: one of them was changed or removed. Give another folder with -o.`,
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
  withRunOptions(command, {
    out: ["-o, --out <folder>", "where results go; the same folder again resumes", parsePath],
    words: PAGE_WORDS,
    isUsersInput: false,
  })
    .addHelpText("after", EXAMPLES)
    .action(async (paths: string[], flags: OcrFlags) => {
      context.exitCode = await ocr(paths, flags, context.terminal);
    });
}
