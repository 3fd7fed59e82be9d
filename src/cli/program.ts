import { Command, CommanderError } from "commander";
import { registerBatch } from "./batch.js";
import { registerChat } from "./chat.js";
import { registerCheck } from "./check.js";
import { registerCompletion } from "./completion.js";
import type { CommandContext } from "./context.js";
import { registerDemo } from "./demo.js";
import { registerEmbed } from "./embed.js";
import { describeFailure, EXIT } from "./failure.js";
import { registerInit } from "./init.js";
import { registerMock } from "./mock.js";
import { registerOcr } from "./ocr.js";
import { packageVersion } from "./package-root.js";
import { registerReconcile } from "./reconcile.js";
import { registerReport } from "./report.js";
import { registerStatus } from "./status.js";
import { registerTelemetry } from "./telemetry.js";
import { processTerminal, styleOf, type Terminal } from "./terminal.js";
import { registerTrace } from "./trace.js";

const EXAMPLES = `
Examples:
  polygateway demo                                       a governed batch over simulated sources, no keys needed
  polygateway init --provider deepseek                   writes a first .env to fill in
  polygateway check --live                               is my configuration right, and do the sources answer?
  polygateway chat "Why is the sky blue?"
  polygateway batch questions.jsonl -o answers.jsonl     the main job: resumable, within every limit
  polygateway embed texts.txt -o vectors.jsonl           texts into vectors, just as safe
  polygateway status --watch                             what runs now, who waits and why
  polygateway report --since 1h                          what it cost and what failed

Sources are read from polygateway.yaml in the current folder, else from the environment and .env.
Exit codes: 0 all well · 1 could not run · 2 something failed · 3 gave up, try again later.`;

export function createProgram(context: CommandContext): Command {
  const { terminal } = context;
  const program = new Command("polygateway")
    .description("Governed LLM calls: limits that hold, failures that are classified, batches that lose nothing.")
    .version(packageVersion(), "-V, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .helpCommand("help [command]", "show help for a command")
    .addHelpText("after", EXAMPLES)
    .showHelpAfterError("Run it with --help to see what it takes.")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.stdout.write(text),
      writeErr: (text) => terminal.stderr.write(text),
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    });
  registerDemo(program, context);
  registerInit(program, context.terminal);
  registerCheck(program, context);
  registerChat(program, context);
  registerBatch(program, context);
  registerEmbed(program, context);
  registerOcr(program, context);
  registerStatus(program, context);
  registerReport(program, terminal);
  registerTrace(program, terminal);
  registerReconcile(program, terminal);
  registerTelemetry(program, terminal);
  registerMock(program, terminal);
  registerCompletion(program, terminal);
  return program;
}

/** Runs one command line and answers its exit code; failures are told on stderr, never thrown. */
export async function runCli(args: readonly string[], terminal: Terminal = processTerminal): Promise<number> {
  const context: CommandContext = { terminal, exitCode: EXIT.ok };
  const program = createProgram(context);
  try {
    if (args.length === 0) program.outputHelp();
    else await program.parseAsync([...args], { from: "user" });
    return context.exitCode;
  } catch (error) {
    // Commander has already said what is wrong with the usage, or printed the help that was asked for.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.couldNotRun;
    const failure = describeFailure(error);
    terminal.stderr.write(`${styleOf(terminal.stderr, terminal.env).red(failure.text)}\n`);
    if (terminal.env.PGW_DEBUG && error instanceof Error) terminal.stderr.write(`${error.stack}\n`);
    return failure.exitCode;
  }
}
