import { type Command, Option } from "commander";
import { readRegularFile } from "../regular-file.js";
import type { UpstreamScript } from "../testing/provider/server.js";
import { parsePath } from "./arguments.js";
import { CliError } from "./failure.js";
import { formatCount, plural } from "./format.js";
import {
  describeProblem,
  type MockFlags,
  OCR_SERVER_KINDS,
  type OcrServerKind,
  sourceEnvironment,
  toProviderOptions,
} from "./mock-options.js";
import { processTerminal, type Terminal } from "./terminal.js";

const EXAMPLES = `
Examples:
  polygateway mock                                              a healthy provider on port 8787
  polygateway mock --rpm 60 --ttft 300 --token-time 15          a limited one with real-life latency
  polygateway mock --error-rate 5% --rate-limit-rate 5% --cut-rate 1% --hang-rate 1%
  polygateway mock --ocr monkey-ocr --latency 200 --error-rate 10%   a MonkeyOCR server, for \`polygateway ocr\`
  polygateway mock --port 0 --json --ledger arrived.jsonl       for scripts: any free port, ready line as JSON

It answers chat and embeddings, with --ocr the requests of that OCR server (options then: --port, --host, --api-key,
--latency, --json, and of monkey-ocr and mineru --seed and --error-rate), and prints lines for your .env; Ctrl-C stops it. Rates are shares (0.05) or percentages (5%), times are milliseconds.`;

/** How long answers in progress may take to end after the first Ctrl-C. */
const STOP_GRACE_MS = 5_000;

function readScripts(path: string, parse: (text: string) => UpstreamScript[]): UpstreamScript[] {
  try {
    return parse(readRegularFile(path));
  } catch (error) {
    throw new CliError(`--script ${path} can't be used: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function startFailure(error: unknown, { host, port, ledger }: MockFlags): unknown {
  if (!(error instanceof Error)) return error;
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (syscall === "open") return new CliError(`--ledger ${ledger} can't be written: ${error.message}`);
  if (code === "EADDRINUSE") {
    return new CliError(`Port ${port} is already in use. Choose another with --port; --port 0 takes any free one.`);
  }
  if (code === "EACCES") return new CliError(`Port ${port} needs more rights. Choose a --port above 1023.`);
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") {
    return new CliError(`--host ${host} is no address of this machine. 127.0.0.1 always works.`);
  }
  return error;
}

function announce(
  what: string,
  server: { readonly baseUrl: string; readonly port: number },
  env: Readonly<Record<string, string>>,
  flags: MockFlags,
  terminal: Terminal,
): void {
  if (flags.json) {
    terminal.stdout.write(`${JSON.stringify({ url: server.baseUrl, port: server.port, env })}\n`);
    return;
  }
  const lines = Object.entries(env).map(([key, value]) => `${key}=${value}`);
  terminal.stdout.write(
    `A simulated ${what} answers at ${server.baseUrl} (Ctrl-C stops it).\n\nFor your .env:\n\n${lines.join("\n")}\n\n`,
  );
}

interface Served {
  readonly arrived: number;
  readonly outcomes: Readonly<Record<string, number>>;
}

function summarise({ arrived, outcomes }: Served, flags: MockFlags, terminal: Terminal): void {
  if (flags.json) {
    terminal.stdout.write(`${JSON.stringify({ arrived, outcomes })}\n`);
  } else {
    const parts = Object.entries(outcomes).map(
      ([outcome, count]) => `${formatCount(count)} ${outcome.replaceAll("_", " ")}`,
    );
    const detail = parts.length > 0 ? `: ${parts.join(", ")}` : "";
    terminal.stdout.write(`Stopped after ${plural(arrived, "request")}${detail}.\n`);
  }
}

/** Resolves when the server is down: gracefully after the first signal, at once after the second. */
function stoppedBySignal(
  server: { stop(options?: { graceMs: number }): Promise<void> },
  terminal: Terminal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let signals = 0;
    const stopListening = terminal.onInterrupt(() => {
      signals += 1;
      const stopped = server.stop({ graceMs: signals === 1 ? STOP_GRACE_MS : 0 });
      if (signals === 1) stopped.finally(stopListening).then(resolve, reject);
    });
  });
}

async function mock(flags: MockFlags, set: readonly (keyof MockFlags)[], terminal: Terminal): Promise<void> {
  if (flags.ocr !== undefined) return mockOcr(flags.ocr, flags, set, terminal);
  if (flags.latency !== undefined) throw new CliError("--latency is for --ocr; a chat provider has --ttft.");
  // Loaded here: no other command needs a server.
  const { startSimulatedProvider, parseScripts } = await import("../testing/provider/server.js");
  const { checkProviderOptions } = await import("../testing/provider/options.js");
  const options = toProviderOptions(flags);
  const problems = checkProviderOptions(options).map((problem) => `  ${describeProblem(problem, flags)}`);
  if (flags.scriptForever && flags.script === undefined)
    problems.push("  --script-forever: give the file with --script");
  if (problems.length > 0) throw new CliError(["The simulated provider can't start:", ...problems].join("\n"));
  const scripts = flags.script === undefined ? [] : readScripts(flags.script, parseScripts);
  const provider = await startSimulatedProvider(options).catch((error: unknown) => {
    throw startFailure(error, flags);
  });
  const last = scripts.length - 1;
  for (const [index, script] of scripts.entries()) {
    provider.script(script, flags.scriptForever && index === last ? "always" : 1);
  }
  const stopped = stoppedBySignal(provider, terminal);
  announce("provider", provider, sourceEnvironment(provider, options), flags, terminal);
  await stopped;
  const { ledgerFileError, ...served } = provider.stats();
  summarise(served, flags, terminal);
  if (ledgerFileError !== null) throw new CliError(`--ledger ${flags.ledger} is incomplete: ${ledgerFileError}`);
}

async function mockOcr(
  kind: OcrServerKind,
  flags: MockFlags,
  set: readonly (keyof MockFlags)[],
  terminal: Terminal,
): Promise<void> {
  const { ocrEnvironment, ocrOutcomes, startOcrServer } = await import("./mock-ocr.js");
  const server = await startOcrServer(kind, flags, set).catch((error: unknown) => {
    throw startFailure(error, flags);
  });
  const stopped = stoppedBySignal(server, terminal);
  announce(`${kind} server`, server, ocrEnvironment(kind, server, flags), flags, terminal);
  await stopped;
  summarise(ocrOutcomes(server), flags, terminal);
}

function collect(value: string, before: readonly string[] = []): string[] {
  return [...before, value];
}

/** Adds `mock` to the command line. */
export function registerMock(program: Command, terminal: Terminal = processTerminal): void {
  program
    .command("mock")
    .summary("a simulated provider as a server, for your own tests")
    .description(
      "Serve chat and embeddings, or OCR, from a simulated server with limits, latencies and faults as you choose.",
    )
    .addOption(new Option("--ocr <server>", "an OCR server instead").choices(OCR_SERVER_KINDS))
    .option("--latency <ms>", "time each answer of an OCR server takes (default 0)")
    .option("--port <number>", "port to listen on; 0 = any free one", "8787")
    .option("--host <address>", "address to listen on", "127.0.0.1")
    .option("--model <name>", "model it says it serves", "sim-model")
    .option("--api-key <key>", "accept only this key; repeat for more (default: every key)", collect)
    .option("--seed <number>", "same seed, same faults and latencies (default 1)")
    .option("--rpm <number>", "requests a minute, above that 429")
    .option("--tpm <number>", "tokens a minute, above that 429")
    .option("--max-concurrency <number>", "requests in progress, above that 429")
    .addOption(
      new Option("--limit-rule <rule>", "how limits are counted (default bucket)").choices(["bucket", "window"]),
    )
    .option("--bucket-seconds <number>", "seconds of the rate a full bucket holds (default 60)")
    .option("--no-rate-limit-headers", "send 429 without Retry-After and x-ratelimit headers")
    .option("--ttft <ms>", "median time to the first token (default 0)")
    .option("--ttft-sigma <number>", "its lognormal spread, 0 to 5 (default 0)")
    .option("--token-time <ms>", "time a further token takes (default 0)")
    .option("--output-tokens <number>", "median length of answers (default: the answer's own)")
    .option("--output-sigma <number>", "its lognormal spread, 0 to 5 (default 0)")
    .option("--max-output-tokens <number>", "longest answer (default 4096)")
    .option("--error-rate <share>", "requests answered with 500, 502 or 503")
    .option("--rate-limit-rate <share>", "requests answered with 429 though no limit is reached")
    .option("--cut-rate <share>", "answers that end before their end")
    .option("--hang-rate <share>", "answers that stop and keep the socket open")
    .addOption(
      new Option("--hang-at <place>", "where they hang (default either)").choices(["start", "middle", "either"]),
    )
    .option("--reset-rate <share>", "connections reset before or in an answer")
    .option("--retry-after <ms>", "Retry-After of the drawn 429s; 0 = none (default 1000)")
    .option("--slow-start <ms>", "answer nothing before the server has been up this long")
    .option("--dead-key", "refuse every key with 401")
    .option("--ledger <file>", "append one JSON line for every request that arrived", parsePath)
    .option("--script <file>", "answer the first requests with these scripts, byte for byte", parsePath)
    .option("--script-forever", "the last script of the file answers everything after it")
    .option("--json", "print the ready line and the summary as JSON")
    .addHelpText("after", EXAMPLES)
    .action((flags: MockFlags, command: Command) => {
      const names = Object.keys(flags) as (keyof MockFlags)[];
      return mock(
        flags,
        names.filter((name) => command.getOptionValueSource(name) === "cli"),
        terminal,
      );
    });
}
