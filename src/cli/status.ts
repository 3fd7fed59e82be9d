import type { Command } from "commander";
import { createSystemRuntime } from "../backends/system.js";
import { ConfigError } from "../errors.js";
import { defaultStatusFolder } from "../status/status-file.js";
import { type FoundStatus, readStatus } from "../status/status-reader.js";
import { CONFIG_OPTION, ENV_OPTION, parsePath } from "./arguments.js";
import { type ConfigFlags, openConfiguration } from "./configuration.js";
import type { CommandContext } from "./context.js";
import { CliError, EXIT } from "./failure.js";
import { startLiveView } from "./live-view.js";
import { staleTexts, statusLine, statusLines } from "./status-view.js";
import { columnsOf, printable, styleOf, type Terminal } from "./terminal.js";

interface StatusFlags extends ConfigFlags {
  readonly scope?: string;
  readonly path?: string;
  readonly watch?: boolean;
  readonly json?: boolean;
}

const EXAMPLES = `
Examples:
  polygateway status                   every process of yours that is at work, and what its calls wait for
  polygateway status LLM --watch       one scope, drawn anew each second; Ctrl-C ends it
  polygateway status --json            for other programs

A batch shows itself by itself. A program of yours does when it has PGW_STATUS_PATH (or the option statusPath) name a
folder; give status the same, or --path. Exit code 1 when nothing is at work.`;

const WATCH_MS = 1_000;

/** Adds `polygateway status`: live state of scopes, limits used, breakers, pacers, who waits and why. */
export function registerStatus(program: Command, context: CommandContext): void {
  program
    .command("status")
    .summary("show live: limits used, breakers, pacers, who waits and why")
    .description("Shows what the processes at work do now: limits used, breakers, pacers, who waits and why.")
    .argument("[scope]", "only this scope")
    .option("--scope <name>", "the same")
    .option("--watch", "go on showing it, once a second")
    .option(
      "--path <folder>",
      "where processes show themselves (default: PGW_STATUS_PATH, else where batches do)",
      parsePath,
    )
    .option(...CONFIG_OPTION)
    .option(...ENV_OPTION)
    .option("--json", "print JSON")
    .addHelpText("after", EXAMPLES)
    .action(async (scope: string | undefined, flags: StatusFlags) => {
      context.exitCode = await status(oneScope(scope, flags.scope), flags, context.terminal);
    });
}

/** The two ways to name it are one: two names would be two questions, of which one would get no answer. */
function oneScope(argument: string | undefined, flag: string | undefined): string | undefined {
  for (const given of [argument, flag]) {
    if (given?.trim() === "") throw new CliError("The scope is empty. Name one, or leave it out for all of them.");
  }
  if (argument === undefined || flag === undefined || argument === flag) return argument ?? flag;
  throw new CliError(`Two scopes are named, ${printable(argument)} and --scope ${printable(flag)}. Name one of them.`);
}

async function status(scope: string | undefined, flags: StatusFlags, terminal: Terminal): Promise<number> {
  if (flags.watch && flags.json) throw new CliError("--watch and --json don't go together. Leave out one of them.");
  const folder = flags.path ?? configuredFolder(flags, terminal);
  const runtime = createSystemRuntime();
  const read = (): FoundStatus => readOrTell(folder, scope, runtime.wallNow());
  if (flags.watch) return watch(read, nothingText(folder, scope), terminal);
  const found = read();
  if (flags.json) {
    terminal.stdout.write(`${JSON.stringify({ folder, processes: found.live, gone: found.stale }, null, 2)}\n`);
    return found.live.length === 0 ? EXIT.couldNotRun : EXIT.ok;
  }
  if (found.live.length === 0) {
    throw new CliError([...staleTexts(found.stale), nothingText(folder, scope)].join("\n"));
  }
  const style = styleOf(terminal.stdout, terminal.env);
  const lines = statusLines(found, runtime.wallNow(), style, columnsOf(terminal.stdout));
  terminal.stdout.write(`${lines.join("\n")}\n`);
  return EXIT.ok;
}

/** What is wrong with sources or scopes is of no interest here. */
function configuredFolder(flags: ConfigFlags, { env }: Terminal): string {
  const { settings, problems, broken } = openConfiguration(flags, env).inspectProcess();
  if (broken.has("statusPath")) throw new ConfigError(problems);
  return settings.statusPath ?? defaultStatusFolder();
}

function readOrTell(folder: string, scope: string | undefined, nowMs: number): FoundStatus {
  try {
    return readStatus(folder, scope, nowMs);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CliError(`The live state can't be read: ${why}. Name another folder with --path.`);
  }
}

function nothingText(folder: string, scope: string | undefined): string {
  const what = scope === undefined ? "No process" : `No process with calls of scope ${printable(scope)}`;
  return `${what} shows itself in ${folder}.
A running \`polygateway batch\` does by itself, as the same user and with the same TMPDIR. A program of yours does when PGW_STATUS_PATH, or its option statusPath, names a folder: give status the same with --path.`;
}

/** Until Ctrl-C. Processes may come and go meanwhile. */
function watch(read: () => FoundStatus, nothing: string, terminal: Terminal): Promise<number> {
  const { stdout, env } = terminal;
  const runtime = createSystemRuntime();
  const style = styleOf(stdout, env);
  const drawn = (width: number): string[] => {
    const found = read();
    const lines = statusLines(found, runtime.wallNow(), style, width);
    return found.live.length === 0 ? [...lines, ...nothing.split("\n")] : lines;
  };
  const written = (): string[] => {
    const { live, stale } = read();
    const lines = [...live.map((process) => statusLine(process, style)), ...staleTexts(stale)];
    return live.length === 0 ? [...lines, ...nothing.split("\n", 1)] : lines;
  };
  return new Promise((resolve) => {
    const view = startLiveView({
      stream: stdout,
      env,
      runtime,
      block: (width) => orTrouble(() => drawn(width)),
      line: () => orTrouble(written).join("\n"),
      everyMs: WATCH_MS,
    });
    const stopListening = terminal.onInterrupt(() => {
      stopListening();
      view.stop();
      resolve(EXIT.ok);
    });
  });
}

/** It may pass: the watch goes on. */
function orTrouble(lines: () => string[]): string[] {
  try {
    return lines();
  } catch (error) {
    return [printable(error instanceof Error ? error.message : String(error))];
  }
}
