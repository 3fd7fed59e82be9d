import { fstatSync, statSync } from "node:fs";
import { type Command, InvalidArgumentError } from "commander";
import { createSystemRuntime } from "../backends/system.js";
import { isSameFile } from "../batch/same-file.js";
import type { BatchClient, BatchOptions, BatchProgress, BatchSummary } from "../batch/types.js";
import type { Runtime } from "../ports/runtime.js";
import { CONFIG_OPTION, ENV_OPTION, parseCount, parseDurationMs, parsePath } from "./arguments.js";
import type { BatchCaller } from "./batch-caller.js";
import { progressBlock, progressLine, stopLines, summaryJson, summaryLines } from "./batch-view.js";
import type { CommandContext } from "./context.js";
import { CliError } from "./failure.js";
import { type LiveView, startLiveView } from "./live-view.js";
import { LINE_WORDS, type RunWords } from "./run-words.js";
import { type OutputStream, styleOf, type Terminal } from "./terminal.js";

/** What both commands that run a file line by line are told. */
export interface RunFlags {
  out: string;
  scope?: string;
  concurrency?: number;
  ordered?: boolean;
  skipBadLines?: boolean;
  strictModel?: boolean;
  retryFailed?: boolean;
  giveUpAfter?: number;
  config?: string;
  env?: string;
  db?: string;
  quiet?: boolean;
  json?: boolean;
}

interface BatchFlags extends RunFlags {
  workers?: number;
}

const EXAMPLES = `
Input, one JSON object a line (plain or .gz, - for standard input):
  {"custom_id": "q1", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": [...]}}
  {"id": "q1", "messages": [{"role": "user", "content": "Hello"}], "temperature": 0}
  {"prompt": "Hello"}
and in a scope for embeddings (one with BATCH_SIZE), to which --scope points:
  {"custom_id": "t1", "method": "POST", "url": "/v1/embeddings", "body": {"input": ["first text", "second text"]}}
and in a scope for OCR, one page a line (\`polygateway ocr\` makes such lines of whole documents):
  {"id": "p3", "image": "scan.pdf", "page": 3, "layout": true}

Examples:
  polygateway batch questions.jsonl -o answers.jsonl
  polygateway batch questions.jsonl.gz -o answers.jsonl --concurrency 64 --ordered
  polygateway batch questions.jsonl -o answers.jsonl --retry-failed
  generate-questions | polygateway batch - -o answers.jsonl --skip-bad-lines
  polygateway batch questions.jsonl -o answers.jsonl --workers 4 --concurrency 400   (limits in Redis)

Stopped or killed at any moment, the same command goes on where it was: every line is once in OUT.
The first Ctrl-C lets the calls in flight finish, the second stops at once.
Exit codes: 0 all answered · 1 could not run · 2 some lines failed · 3 gave up or was stopped, run it again.`;

/** First interrupt: drain. Second: abort. Third: Node's default, the process ends. */
export function listenForStop(terminal: Terminal, client: Pick<BatchClient, "leases">, note: (text: string) => void) {
  const say = async (): Promise<void> => {
    const { live } = await client.leases();
    // With nothing to wait for it ends at once.
    if (live === 0) note("Stopping: no call is in flight.");
    else note("Stopping: calls in flight are finishing. Press Ctrl-C again to stop at once.");
  };
  const drain = new AbortController();
  const abort = new AbortController();
  const stopListening = terminal.onInterrupt(() => {
    if (drain.signal.aborted) {
      stopListening();
      abort.abort(new CliError("Stopped."));
      return;
    }
    drain.abort(new CliError("Stopped."));
    void say();
  });
  return { drainSignal: drain.signal, abortSignal: abort.signal, stopListening };
}

export interface BatchScreen {
  note(text: string): void;
  /** Progress is shown from the first call on. */
  onProgress(progress: BatchProgress): void;
  stop(): void;
}

/** Notes can be said at any time; a run that is refused before it begins shows no progress. */
export function batchScreen(
  terminal: Terminal,
  runtime: Pick<Runtime, "setTimer">,
  quiet: boolean,
  words = LINE_WORDS,
): BatchScreen {
  const style = styleOf(terminal.stderr, terminal.env);
  let view: LiveView | undefined;
  let latest: BatchProgress;
  const start = (): LiveView =>
    startLiveView({
      stream: terminal.stderr,
      env: terminal.env,
      runtime,
      block: (width) => progressBlock(latest, style, width, words),
      line: () => progressLine(latest, words),
    });
  return {
    note(text) {
      const line = style.yellow(text);
      if (view === undefined) terminal.stderr.write(`${line}\n`);
      else view.note(line);
    },
    onProgress(progress) {
      latest = progress;
      if (!quiet) view ??= start();
    },
    stop: () => view?.stop(),
  };
}

/** One process keeps hundreds of calls in flight: more processes than this are a slip, and would take the machine down. */
export const MOST_WORKERS = 256;

export function parseWorkers(text: string): number {
  const workers = parseCount(text);
  if (workers <= MOST_WORKERS) return workers;
  const why = "each is a process with memory of its own, and keeps hundreds of calls in flight";
  throw new InvalidArgumentError(
    `At most ${MOST_WORKERS}: ${why}. About one per core is enough; --concurrency says how many calls.`,
  );
}

function engineOptions(flags: RunFlags): Partial<BatchOptions> {
  const { ordered, skipBadLines, strictModel, retryFailed, giveUpAfter } = flags;
  return {
    ...(giveUpAfter === undefined ? {} : { giveUpAfterMs: giveUpAfter }),
    ordered: ordered === true,
    skipBadLines: skipBadLines === true,
    strictModel: strictModel === true,
    retryFailed: retryFailed === true,
  };
}

async function batch(inPath: string, flags: BatchFlags, terminal: Terminal): Promise<number> {
  const { openCaller } = await import("./batch-caller.js");
  return runLines(inPath, flags, terminal, (note) => openCaller({ ...flags, outPath: flags.out, terminal, note }));
}

type OpenCaller = (note: (text: string) => void) => BatchCaller | Promise<BatchCaller>;

/** Runs a file with its progress, its summary and its end by Ctrl-C. Answers the exit code. */
export async function runLines(
  inPath: string,
  flags: RunFlags,
  terminal: Terminal,
  openCaller: OpenCaller,
  words: RunWords = LINE_WORDS,
): Promise<number> {
  const summary = await runShown(inPath, flags, terminal, openCaller, words);
  const stream = summaryStream(flags.out, terminal);
  if (flags.json) stream.write(`${summaryJson(summary)}\n`);
  else if (!flags.quiet) {
    const style = styleOf(stream, terminal.env);
    stream.write(`${summaryLines(summary, { inPath, outPath: flags.out }, style, words).join("\n")}\n`);
  } else for (const line of stopLines(summary, true, words)) terminal.stderr.write(`${line}\n`);
  return summary.exitCode;
}

/** Beside results that go to standard output, as with `-o /dev/stdout`, a summary would be one of them. */
function summaryStream(outPath: string, { stdout, stderr }: Terminal): OutputStream {
  const out = statSync(outPath, { throwIfNoEntry: false });
  return out !== undefined && isSameFile(out, fstatSync(STDOUT)) ? stderr : stdout;
}

const STDOUT = 1;

/** Runs a file with its progress and its end by Ctrl-C; what came of it is the caller's to tell. */
export async function runShown(
  inPath: string,
  flags: RunFlags,
  terminal: Terminal,
  openCaller: OpenCaller,
  words: RunWords,
): Promise<BatchSummary> {
  const { runBatch } = await import("../batch/engine.js");
  const screen = batchScreen(terminal, createSystemRuntime(), flags.quiet === true, words);
  const caller = await openCaller(screen.note);
  const stop = listenForStop(terminal, caller.batchOptions.client, screen.note);
  try {
    return await runBatch({
      ...engineOptions(flags),
      ...caller.batchOptions,
      inPath,
      outPath: flags.out,
      stdin: terminal.stdin,
      drainSignal: stop.drainSignal,
      abortSignal: stop.abortSignal,
      onProgress: screen.onProgress,
      onNote: screen.note,
    });
  } finally {
    screen.stop();
    stop.stopListening();
    await caller.close();
  }
}

const OUT_FILE = ["-o, --out <file>", "where results go; the same file again resumes", parsePath] as const;

/** The options of all commands that run a file line by line. */
export function withRunOptions(command: Command, words: RunWords = LINE_WORDS): Command {
  command
    .requiredOption(...OUT_FILE)
    .option("--ordered", "write results in the order of the input")
    .option("--skip-bad-lines", "leave out lines that can't be read instead of refusing to start")
    .option("--retry-failed", `try the ${words.unit}s again that failed in an earlier run`);
  return withCommonRunOptions(command);
}

/** What holds whatever is run. */
export function withCommonRunOptions(command: Command): Command {
  return command
    .option(
      "--give-up-after <time>",
      "end when nothing succeeded for this long: 90s, 15m, 2h (default 15m)",
      parseDurationMs,
    )
    .option(...CONFIG_OPTION)
    .option(...ENV_OPTION)
    .option(
      "--db <place>",
      "telemetry file, or postgres:// address (default ./polygateway.db, or what PGW_TELEMETRY_* says)",
      parsePath,
    )
    .option("--quiet", "no progress and no summary; warnings and errors only")
    .option("--json", "print the summary as JSON");
}

export function registerBatch(program: Command, context: CommandContext): void {
  const command = program
    .command("batch")
    .summary("run a file of prompts: governed, resumable, nothing lost")
    .description("Run every line of a JSONL file through the governed sources and write one result line for each.")
    .argument("<in>", "JSONL file, plain or gzip; `-`: standard input", parsePath)
    .option("--concurrency <n>", "lines in flight (default: what the sources' limits allow, at most 256)", parseCount)
    .option(
      "--workers <n>",
      `processes that share these lines in flight, at most ${MOST_WORKERS}; needs limits in Redis (default 1)`,
      parseWorkers,
    )
    .option("--strict-model", "refuse a line whose model no source has, instead of ignoring its model")
    .option("--scope <name>", "scope to use (default: the only one configured, else LLM)");
  withRunOptions(command)
    .addHelpText("after", EXAMPLES)
    .action(async (inPath: string, flags: BatchFlags) => {
      context.exitCode = await batch(inPath, flags, context.terminal);
    });
}
