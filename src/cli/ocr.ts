import { join, resolve } from "node:path";
import type { Command } from "commander";
import { createSystemRuntime } from "../backends/system.js";
import type { BatchSummary } from "../batch/types.js";
import type { LookedAt, SourceDocument } from "../documents/pages.js";
import { parseCount, parsePath } from "./arguments.js";
import { MOST_WORKERS, parseWorkers, type RunFlags, runShown, withCommonRunOptions } from "./batch.js";
import { stopLines, summaryLines } from "./batch-view.js";
import type { CommandContext } from "./context.js";
import { CliError } from "./failure.js";
import { plural } from "./format.js";
import { PAGE_WORDS } from "./run-words.js";
import { printable, styleOf, type Terminal } from "./terminal.js";

interface OcrFlags extends RunFlags {
  layout?: boolean;
  workers?: number;
}

const EXAMPLES = `
Pictures (PNG, JPEG, WebP, TIFF) and PDFs, told by their content. Each page is one governed call, so that a page that
fails costs no other; the pages of a PDF are drawn at 200 dpi (needs the package @hyzyla/pdfium). A file that can't be
read is named and left out.

Written to the folder, for scan.pdf:
  scan.pdf/page-0001… each page by itself, as soon as it is read: .txt, .json, and .png with --layout
  scan.pdf.txt        the text, pages separated by form feeds
  scan.pdf.json       the pages with their results, and why a page is missing
  scan.pdf.html       with --layout: boxes over the pictures of the pages, to look at
  pages.jsonl         the pages of all files, one a line; with ocr.jsonl what makes the run resumable
  ocr.jsonl           one result line for each page

Examples:
  polygateway ocr scan.pdf photo.jpg -o read/
  polygateway ocr scans/*.pdf -o read/ --layout
  polygateway ocr scan.pdf -o read/ --layout --retry-failed

It needs a scope for OCR, whose sources name their TRANSPORT (monkey-ocr, mineru, paddle, mistral, or vlm).
Stopped or killed at any moment, the same command goes on where it was; other files are added to the folder. Files and
folder may be moved: a file is known by its name and its content.
Exit codes: 0 all read · 1 could not run · 2 some pages or files were not read · 3 gave up or was stopped, run it again.`;

async function ocr(paths: readonly string[], flags: OcrFlags, terminal: Terminal): Promise<number> {
  const [
    { lookAtDocuments },
    { addPages, PAGES_FILE, RESULTS_FILE },
    { exportPages },
    { endLines, exitCodeOf, ocrJson },
  ] = await Promise.all([
    import("../documents/pages.js"),
    import("./ocr-pages.js"),
    import("./ocr-files.js"),
    import("./ocr-summary.js"),
  ]);
  const folder = flags.out;
  const layout = flags.layout === true;
  const lookedAt = await lookAtDocuments(paths).catch(inOurWords);
  const { documents, unread } = lookedAt;
  refuseNothing(lookedAt);
  refuseClashes(folder, documents, [PAGES_FILE, RESULTS_FILE]);
  sayUnread(lookedAt, terminal);
  const outPath = join(folder, RESULTS_FILE);
  const add = () => addPages({ folder, documents, layout, runtime: createSystemRuntime() });
  const summary = await read(flags, folder, lookedAt, terminal, add).catch((error: unknown) => {
    throw (error as { kind?: unknown }).kind === "out_other_in" ? changedPages(folder, PAGES_FILE) : error;
  });
  const exported = await exportPages({ outPath, folder, documents, layout });
  const end = { summary, exported, unreadFiles: unread };
  if (flags.json) terminal.stdout.write(`${ocrJson(end, folder)}\n`);
  else if (flags.quiet) for (const line of stopLines(summary, true, PAGE_WORDS)) terminal.stderr.write(`${line}\n`);
  else {
    const style = styleOf(terminal.stdout, terminal.env);
    const files = { inPath: join(folder, PAGES_FILE), outPath: folder };
    // With files that were not read nobody is told that all is done.
    const told = { ...summary, exitCode: exitCodeOf(end) };
    const lines = [...summaryLines(told, files, style, PAGE_WORDS), ...endLines(end).map(printable)];
    terminal.stdout.write(`${lines.join("\n")}\n`);
  }
  return exitCodeOf(end);
}

/** The pages as lines of a batch, added to the folder once it is known that they can be sent. */
async function read(
  flags: OcrFlags,
  folder: string,
  { documents }: LookedAt,
  terminal: Terminal,
  add: () => Promise<void>,
): Promise<BatchSummary> {
  const [{ openCaller }, { pageBatch }, { PAGES_FILE, RESULTS_FILE }] = await Promise.all([
    import("./batch-caller.js"),
    import("./ocr-run.js"),
    import("./ocr-pages.js"),
  ]);
  const outPath = join(folder, RESULTS_FILE);
  const run = { ...flags, out: outPath };
  return runShown(
    join(folder, PAGES_FILE),
    run,
    terminal,
    async (note) => {
      const caller = openCaller({ ...run, kinds: ["ocr"], outPath, terminal, note });
      try {
        await add();
      } catch (error) {
        await caller.close();
        throw error;
      }
      const { client } = caller.batchOptions;
      const pages = pageBatch(client, folder, documents, flags.layout === true);
      return { ...caller, batchOptions: { ...caller.batchOptions, ...pages } };
    },
    PAGE_WORDS,
  );
}

/** What is wrong with all documents is told in full by its error. */
function inOurWords(error: unknown): never {
  throw error instanceof Error && error.name === "DocumentError" ? new CliError(error.message) : error;
}

function refuseNothing({ documents, unread }: LookedAt): void {
  const [only] = unread;
  if (documents.length > 0 || only === undefined) return;
  if (unread.length === 1) throw new CliError(`${only.message}. Nothing was sent.`);
  const lines = unread.map(({ message }) => `  ${message}`);
  throw new CliError(["None of these files can be read; nothing was sent:", ...lines].join("\n"));
}

/** At the beginning too: whoever stands by may still put it right. */
function sayUnread({ unread, documents }: LookedAt, { stderr, env }: Terminal): void {
  if (unread.length === 0) return;
  const style = styleOf(stderr, env);
  const title = `${plural(unread.length, "file")} can't be read and ${unread.length === 1 ? "is" : "are"} left out; ${plural(documents.length, "file")} can:`;
  for (const line of [title, ...unread.map(({ message }) => `  ${message}`)]) {
    stderr.write(`${style.yellow(printable(line))}\n`);
  }
}

/** Found before anything is paid: two documents, or a document and its own picture, that want one name. */
function refuseClashes(folder: string, documents: readonly SourceDocument[], own: readonly string[]): void {
  const ownFiles = [...own, "ocr.jsonl.lock", "ocr.jsonl.pgw.json"];
  const taken = new Map(ownFiles.map((name) => [name, "the run's own file"]));
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

function changedPages(folder: string, name: string): CliError {
  return new CliError(
    `${join(folder, name)} is not the one that the results in ${folder} were read by: it was changed since. Put it back, or read into another folder with -o.`,
  );
}

export function registerOcr(program: Command, context: CommandContext): void {
  const command = program
    .command("ocr")
    .summary("read pictures and PDFs page by page: governed, resumable")
    .description("Read the text, or the layout, of every page through the governed OCR sources.")
    .argument("<files...>", "pictures and PDFs")
    .requiredOption("-o, --out <folder>", "where results go; the same folder again resumes", parsePath)
    .option("--layout", "what stands where, with boxes; without it the text alone")
    .option("--concurrency <n>", "pages in flight (default: what the sources' limits allow, at most 256)", parseCount)
    .option(
      "--workers <n>",
      `processes that share these pages, at most ${MOST_WORKERS}; needs limits in Redis (default 1)`,
      parseWorkers,
    )
    .option("--scope <name>", "scope to use (default: the only one for OCR)")
    .option("--ordered", "write ocr.jsonl in the order of the pages")
    .option("--retry-failed", "try the pages again that failed in an earlier run");
  withCommonRunOptions(command)
    .addHelpText("after", EXAMPLES)
    .action(async (paths: string[], flags: OcrFlags) => {
      context.exitCode = await ocr(paths, flags, context.terminal);
    });
}
