import { type Command, InvalidArgumentError } from "commander";
import { createSystemRuntime } from "../backends/system.js";
import type { BatchOptions, BatchProgress, BatchSummary } from "../batch/types.js";
import type { Runtime } from "../ports/runtime.js";
import { CONFIG_OPTION, ENV_OPTION, parseCount, parseDurationMs, parsePath } from "./arguments.js";
import { progressBlock, progressLine, type RunFiles, stopLines, summaryJson, summaryLines } from "./batch-view.js";
import type { CommandContext } from "./context.js";
import { CliError } from "./failure.js";
import { type LiveView, startLiveView } from "./live-view.js";
import { styleOf, type Terminal } from "./terminal.js";

interface BatchFlags {
  out: string;
  scope?: string;
  concurrency?: number;
  ordered?: boolean;
  skipBadLines?: boolean;
  strictModel?: boolean;
  retryFailed?: boolean;
  giveUpAfter?: number;
  workers?: number;
  config?: string;
  env?: string;
  db?: string;
  quiet?: boolean;
  json?: boolean;
}

const EXAMPLES = `
Input, one JSON object a line (plain or .gz, - for standard input):
  {"custom_id": "q1", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": [...]}}
  {"id": "q1", "messages": [{"role": "user", "content": "Hello"}], "temperature": 0}
  {"prompt": "Hello"}

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
export function listenForStop(terminal: Terminal, note: (text: string) => void) {
  const drain = new AbortController();
  const abort = new AbortController();
  const stopListening = terminal.onInterrupt(() => {
    if (drain.signal.aborted) {
      stopListening();
      abort.abort(new CliError("Stopped."));
      return;
    }
    drain.abort(new CliError("Stopped."));
    note("Stopping: calls in flight are finishing. Press Ctrl-C again to stop at once.");
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
export function batchScreen(terminal: Terminal, runtime: Pick<Runtime, "setTimer">, quiet: boolean): BatchScreen {
  const style = styleOf(terminal.stderr, terminal.env);
  let view: LiveView | undefined;
  let latest: BatchProgress;
  const start = (): LiveView =>
    startLiveView({
      stream: terminal.stderr,
      env: terminal.env,
      runtime,
      block: (width) => progressBlock(latest, style, width),
      line: () => progressLine(latest),
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
const MOST_WORKERS = 256;

function parseWorkers(text: string): number {
  const workers = parseCount(text);
  if (workers <= MOST_WORKERS) return workers;
  const why = "each is a process with memory of its own, and keeps hundreds of calls in flight";
  throw new InvalidArgumentError(
    `At most ${MOST_WORKERS}: ${why}. About one per core is enough; --concurrency says how many calls.`,
  );
}

function engineOptions(flags: BatchFlags): Partial<BatchOptions> {
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
  const [{ openCaller }, { runBatch }] = await Promise.all([import("./batch-caller.js"), import("../batch/engine.js")]);
  const screen = batchScreen(terminal, createSystemRuntime(), flags.quiet === true);
  const caller = openCaller({ ...flags, outPath: flags.out, terminal, note: screen.note });
  const stop = listenForStop(terminal, screen.note);
  let summary: BatchSummary;
  try {
    summary = await runBatch({
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
  if (flags.json) terminal.stdout.write(`${summaryJson(summary)}\n`);
  else if (!flags.quiet) printSummary(summary, { inPath, outPath: flags.out }, terminal);
  else for (const line of stopLines(summary, true)) terminal.stderr.write(`${line}\n`);
  return summary.exitCode;
}

function printSummary(summary: BatchSummary, files: RunFiles, terminal: Terminal): void {
  const style = styleOf(terminal.stdout, terminal.env);
  terminal.stdout.write(`${summaryLines(summary, files, style).join("\n")}\n`);
}

export function registerBatch(program: Command, context: CommandContext): void {
  program
    .command("batch")
    .summary("run a file of prompts: governed, resumable, nothing lost")
    .description("Run every line of a JSONL file through the governed sources and write one result line for each.")
    .argument("<in>", "JSONL file, plain or gzip; `-`: standard input", parsePath)
    .requiredOption("-o, --out <file>", "where results go; the same file again resumes", parsePath)
    .option("--concurrency <n>", "lines in flight (default: what the sources' limits allow, at most 256)", parseCount)
    .option(
      "--workers <n>",
      `processes that share these lines in flight, at most ${MOST_WORKERS}; needs limits in Redis (default 1)`,
      parseWorkers,
    )
    .option("--ordered", "write results in the order of the input")
    .option("--skip-bad-lines", "leave out lines that can't be read instead of refusing to start")
    .option("--strict-model", "refuse a line whose model no source has, instead of ignoring its model")
    .option("--retry-failed", "try the lines again that failed in an earlier run")
    .option("--give-up-after <time>", "end when nothing succeeded for this long (default 15m)", parseDurationMs)
    .option("--scope <name>", "scope to use (default: the only one configured, else LLM)")
    .option(...CONFIG_OPTION)
    .option(...ENV_OPTION)
    .option(
      "--db <place>",
      "telemetry file, or postgres:// address (default ./polygateway.db, or what PGW_TELEMETRY_* says)",
      parsePath,
    )
    .option("--quiet", "no progress and no summary; warnings and errors only")
    .option("--json", "print the summary as JSON")
    .addHelpText("after", EXAMPLES)
    .action(async (inPath: string, flags: BatchFlags) => {
      context.exitCode = await batch(inPath, flags, context.terminal);
    });
}
