import { EventEmitter } from "node:events";
import { type Command, InvalidArgumentError } from "commander";
import { checkThinking, readThinking, THINKING_ACCEPTED } from "../config/thinking-value.js";
import type { ChatEvent, ChatMessage, ChatRequest, ChatResponse, Thinking } from "../domain/chat.js";
import type { GatewayClient } from "../gateway.js";
import { CONFIG_OPTION, ENV_OPTION, parsePath } from "./arguments.js";
import type { CommandContext } from "./context.js";
import { CliError, EXIT } from "./failure.js";
import { formatCount, formatDuration, formatMoney, plural } from "./format.js";
import { printable, type Style, styleOf, type Terminal } from "./terminal.js";

interface ChatFlags {
  scope?: string;
  model?: string;
  system?: string;
  temperature?: number;
  maxTokens?: number;
  thinking?: Thinking;
  json?: boolean;
  config?: string;
  env?: string;
  db?: string;
}

const EXAMPLES = `
Examples:
  polygateway chat "Name three uses of a paper clip"
  polygateway chat --scope VLM --model qwen-vl-max --temperature 0 "Hello"
  cat article.txt | polygateway chat --system "Summarise in five lines." -
  polygateway chat --thinking off "What is two and two?"
  polygateway chat --json "Hello" | jq .usage

Reasoning is shown dimmed on a terminal, and left out of pipes and files.
Exit codes: 0 answered · 1 could not run · 2 refused or unusable · 3 no source could answer now · 130 stopped.`;

function parseTemperature(text: string): number {
  const value = Number(text);
  if (text.trim() === "" || !(value >= 0)) throw new InvalidArgumentError("Give a number of at least 0, such as 0.7.");
  return value;
}

function parseMaxTokens(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new InvalidArgumentError("Give a whole number of at least 1.");
  return value;
}

function parseThinking(text: string): Thinking {
  let checked: ReturnType<typeof checkThinking> = { problem: "" };
  try {
    checked = checkThinking(readThinking(text));
  } catch {}
  if ("value" in checked) return checked.value;
  throw new InvalidArgumentError(`Give ${THINKING_ACCEPTED.seconds}.`);
}

async function readAll(stream: NodeJS.ReadableStream): Promise<string> {
  stream.setEncoding("utf8");
  let text = "";
  for await (const chunk of stream) text += chunk;
  return text;
}

async function promptText(argument: string | undefined, terminal: Terminal): Promise<string> {
  if (argument !== undefined && argument !== "-") return argument;
  if (terminal.stdin.isTTY && argument === undefined) {
    terminal.stderr.write("Type the prompt, then Ctrl-D on an empty line:\n");
  }
  return await readAll(terminal.stdin);
}

function toRequest(prompt: string, flags: ChatFlags, signal: AbortSignal): ChatRequest {
  const messages: ChatMessage[] = [{ role: "user", content: prompt }];
  if (flags.system !== undefined) messages.unshift({ role: "system", content: flags.system });
  return {
    messages,
    ...(flags.model === undefined ? {} : { model: flags.model }),
    ...(flags.thinking === undefined ? {} : { thinking: flags.thinking }),
    sampling: {
      ...(flags.temperature === undefined ? {} : { temperature: flags.temperature }),
      ...(flags.maxTokens === undefined ? {} : { maxTokens: flags.maxTokens }),
    },
    signal,
  };
}

/** Writes the text as it comes; answers nothing, the whole reply is in `.final`. */
async function showEvents(events: AsyncIterable<ChatEvent>, terminal: Terminal, pipe: PipeWatch): Promise<void> {
  const isTerminal = terminal.stdout.isTTY === true;
  const style = styleOf(terminal.stdout, terminal.env);
  let last = "";
  const write = (text: string, paint = (plain: string) => plain): void => {
    if (text === "" || pipe.isClosed()) return;
    terminal.stdout.write(paint(isTerminal ? printable(text) : text));
    last = text;
  };
  let thinking = false;
  try {
    for await (const event of events) {
      if (event.type === "thinking-delta" && isTerminal) {
        thinking = true;
        write(event.text, style.dim);
      } else if (event.type === "text-delta") {
        if (thinking) write("\n\n");
        thinking = false;
        write(event.text);
      }
    }
  } finally {
    if (last !== "" && !last.endsWith("\n")) write("\n");
  }
}

/** One line about the answer: who gave it, what it took. */
export function summaryLine(reply: ChatResponse): string {
  const { usage } = reply;
  const about = usage.source === "estimated" ? "about " : "";
  const reasoning = usage.reasoningTokens ? ` (${formatCount(usage.reasoningTokens)} reasoning)` : "";
  const facts = [
    reply.sourceName,
    reply.modelReported ?? reply.model,
    `${about}${plural(usage.promptTokens, "token")} in, ${formatCount(usage.completionTokens)} out${reasoning}`,
    reply.cost === null ? "cost unknown (no price table)" : `cost ${formatMoney(reply.cost)}`,
    formatDuration(reply.latencyMs) +
      (reply.ttftMs === null ? "" : `, first token after ${formatDuration(reply.ttftMs)}`),
  ];
  if (reply.attempts > 1) facts.push(`${reply.attempts} attempts`);
  return printable(facts.join(" · "));
}

function warnAboutEnd(reply: ChatResponse, style: Style, terminal: Terminal): void {
  const warnings: Partial<Record<string, string>> = {
    length: "The answer stops here because it reached the token limit; raise --max-tokens for more.",
    content_filter: "The provider's content filter ended the answer here.",
  };
  const warning = warnings[reply.finishReason ?? ""];
  if (warning !== undefined) terminal.stderr.write(`${style.yellow(warning)}\n`);
}

/** Nobody needs parts of a millisecond. */
function wholeMs(reply: ChatResponse): ChatResponse {
  const ttftMs = reply.ttftMs === null ? null : Math.round(reply.ttftMs);
  return { ...reply, latencyMs: Math.round(reply.latencyMs), ttftMs };
}

interface PipeWatch {
  /** The reader of stdout has gone. */
  isClosed(): boolean;
  /** For a call that was complete by then. */
  throwIfClosed(): void;
  leave(): void;
}

/**
 * Takes the place of the command line's own answer to a closed pipe, which is to end at once: the call has to be
 * cancelled and recorded first.
 */
function watchPipe({ stdout }: Terminal, abort: AbortController): PipeWatch {
  let trouble: string | undefined;
  const isClosed = () => trouble !== undefined;
  const throwIfClosed = (): void => {
    if (isClosed()) throw new CliError(`${trouble}: part of the answer is lost.`, EXIT.interrupted);
  };
  if (!(stdout instanceof EventEmitter)) return { isClosed, throwIfClosed, leave() {} };
  const others = stdout.listeners("error");
  const onError = (error: Error): void => {
    trouble = describeClosed(error);
    abort.abort(new CliError(`${trouble}: the call was cancelled, and may be billed.`, EXIT.interrupted));
  };
  stdout.removeAllListeners("error");
  stdout.on("error", onError);
  return {
    isClosed,
    throwIfClosed,
    leave() {
      for (const listener of others) stdout.on("error", listener as (error: Error) => void);
      stdout.off("error", onError);
    },
  };
}

function describeClosed(error: NodeJS.ErrnoException): string {
  return error.code === "EPIPE"
    ? "The reader of the answer has gone"
    : `The answer can't be written (${error.message})`;
}

async function answer(
  client: GatewayClient,
  prompt: string,
  flags: ChatFlags,
  terminal: Terminal,
  pipe: PipeWatch,
  abort: AbortController,
): Promise<void> {
  const stopListening = terminal.onInterrupt(() => abort.abort(new CliError("Stopped.", EXIT.interrupted)));
  try {
    const stream = client.stream(toRequest(prompt, flags, abort.signal));
    if (!flags.json) await showEvents(stream, terminal, pipe);
    const reply = await stream.final;
    if (flags.json) terminal.stdout.write(`${JSON.stringify(wholeMs(reply), null, 2)}\n`);
    const style = styleOf(terminal.stderr, terminal.env);
    if (!flags.json) warnAboutEnd(reply, style, terminal);
    terminal.stderr.write(`${style.dim(summaryLine(reply))}\n`);
  } finally {
    // From here on Ctrl-C ends the process at once: nothing is left to lose.
    stopListening();
  }
}

async function chat(argument: string | undefined, flags: ChatFlags, terminal: Terminal): Promise<void> {
  const prompt = await promptText(argument, terminal);
  if (prompt.trim() === "")
    throw new CliError('There is no prompt. Give one: polygateway chat "Hello", or pipe it in.');
  const { openClient } = await import("./client.js");
  const { client, close } = await openClient({ ...flags, terminal });
  const abort = new AbortController();
  const pipe = watchPipe(terminal, abort);
  try {
    await answer(client, prompt, flags, terminal, pipe, abort);
  } finally {
    await close();
    pipe.leave();
  }
  pipe.throwIfClosed();
}

export function registerChat(program: Command, context: CommandContext): void {
  program
    .command("chat")
    .summary("stream one answer")
    .description("Send one prompt through the governed sources and stream the answer.")
    .argument("[prompt]", "the prompt; left out or `-`: read from standard input")
    .option("--scope <name>", "scope to use (default: the only one configured, else LLM)")
    .option("--model <name>", "only sources with this configured model")
    .option("--system <text>", "system message")
    .option("--temperature <number>", "sampling temperature", parseTemperature)
    .option("--max-tokens <number>", "longest answer, in tokens", parseMaxTokens)
    .option("--thinking <how>", "on, off, a level such as low or high, or a number of tokens", parseThinking)
    .option("--json", "print the whole reply as JSON when it is complete")
    .option(...CONFIG_OPTION)
    .option(...ENV_OPTION)
    .option(
      "--db <place>",
      "telemetry file, or postgres:// address (default ./polygateway.db, or what PGW_TELEMETRY_* says)",
      parsePath,
    )
    .addHelpText("after", EXAMPLES)
    .action((prompt: string | undefined, flags: ChatFlags) => chat(prompt, flags, context.terminal));
}
