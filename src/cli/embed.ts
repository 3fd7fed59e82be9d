import type { Command } from "commander";
import { parseCount, parsePath } from "./arguments.js";
import { type RunFlags, runLines, withRunOptions } from "./batch.js";
import type { CommandContext } from "./context.js";
import { TEXT_WORDS } from "./run-words.js";
import type { Terminal } from "./terminal.js";

interface EmbedFlags extends RunFlags {
  base64?: boolean;
  jsonl?: boolean;
  dimensions?: number;
}

const EXAMPLES = `
Input: a text a line; or, in a file named .jsonl or with --jsonl, one JSON object a line:
  {"id": "t1", "text": "The first text"}
Plain or .gz, - for standard input. Blank lines are left out.

Output, one JSON object a line, in the order of completion (--ordered: of the input):
  {"id": "t1", "index": 0, "embedding": [0.12, …], "call_id": "…"}
  {"id": "t2", "index": 1, "embedding": null, "error": {"code": "bad_request", "message": "…", "class": "…"}}
"index" counts the lines of the input from 0.

Examples:
  polygateway embed texts.txt -o vectors.jsonl
  polygateway embed texts.jsonl.gz -o vectors.jsonl --base64 --concurrency 8
  polygateway embed texts.jsonl -o vectors.jsonl --retry-failed
  cat *.txt | polygateway embed - -o vectors.jsonl

It needs a scope for embeddings, that is one with a BATCH_SIZE: so many texts go into one request. A text that a source
refuses becomes an error line; the others of its request are embedded all the same.
Stopped or killed at any moment, the same command goes on where it was: every text is once in OUT.
Exit codes: 0 all embedded · 1 could not run · 2 some texts failed · 3 gave up or was stopped, run it again.`;

const JSONL_NAME = /\.(?:jsonl|ndjson)(?:\.gz)?$/i;

async function embed(inPath: string, flags: EmbedFlags, terminal: Terminal): Promise<number> {
  const { openEmbedCaller } = await import("./embed-caller.js");
  const { base64 = false, jsonl = JSONL_NAME.test(inPath), ...rest } = flags;
  return runLines(
    inPath,
    flags,
    terminal,
    (note) => openEmbedCaller({ ...rest, base64, jsonl, terminal, note }),
    TEXT_WORDS,
  );
}

export function registerEmbed(program: Command, context: CommandContext): void {
  const command = program
    .command("embed")
    .summary("turn a file of texts into vectors: governed, resumable, nothing lost")
    .description("Embed every text of a file through the governed sources and write one line with its vector for each.")
    .argument("<in>", "text or JSONL file, plain or gzip; `-`: standard input", parsePath)
    .option("--concurrency <n>", "requests in flight (default: what the sources' limits allow, at most 16)", parseCount)
    .option("--base64", "write vectors as base64 of little-endian float32, a quarter of the size")
    .option("--jsonl", "the input is JSONL, whatever its name is")
    .option("--dimensions <n>", "width to ask for, of models that can shorten their vectors", parseCount)
    .option("--scope <name>", "scope to use (default: the only one for embeddings)");
  withRunOptions(command, TEXT_WORDS)
    .addHelpText("after", EXAMPLES)
    .action(async (inPath: string, flags: EmbedFlags) => {
      context.exitCode = await embed(inPath, flags, context.terminal);
    });
}
