import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSystemRuntime, formatLogLine } from "../backends/system.js";
import { defaultConcurrency } from "../batch/concurrency.js";
import { runBatch } from "../batch/engine.js";
import { chatLines } from "../batch/kinds/chat.js";
import type { BatchSummary } from "../batch/types.js";
import { GatewayClient } from "../gateway.js";
import { openTelemetryFile } from "../telemetry/reader.js";
import { reconcileStore } from "../telemetry/reconcile.js";
import { createReport } from "../telemetry/report.js";
import { echoAnswer } from "../testing/provider/server.js";
import { batchScreen, listenForStop } from "./batch.js";
import { summaryLines } from "./batch-view.js";
import { recorderFor, type TelemetryStore, telemetryStores } from "./client.js";
import { type DemoStage, demoPrices, startDemoStage } from "./demo-stage.js";
import {
  type AttemptRow,
  type Check,
  checkAnswers,
  checkBooks,
  checkLimits,
  checkRows,
  type DemoQuestion,
  type OutLine,
} from "./demo-verdict.js";
import { formatCost, formatCount, plural } from "./format.js";
import { reportLines } from "./report.js";
import { tableLines } from "./table.js";
import { columnsOf, type Style, styleOf, type Terminal } from "./terminal.js";

const SCOPE = "DEMO";

export interface DemoRun {
  /** Results and telemetry go here. */
  readonly folder: string;
  /** JSONL in OpenAI's batch form. */
  readonly questions: string;
  readonly terminal: Terminal;
}

interface Places {
  readonly inPath: string;
  readonly outPath: string;
  readonly store: TelemetryStore;
}

/** Runs the demo and answers what became of its promises; undefined when it was stopped. */
export async function runDemo(run: DemoRun): Promise<Check[] | undefined> {
  const { terminal } = run;
  const say = (text: string): void => void terminal.stdout.write(`${text}\n`);
  const style = styleOf(terminal.stdout, terminal.env);
  const places = preparePlaces(run);
  const questions = parseQuestions(run.questions);
  const stage = await startDemoStage();
  try {
    introduce(stage, questions.length, terminal);
    const summary = await runQuestions(stage, places, terminal);
    say(`\n${summaryLines(summary, undefined, style).join("\n")}`);
    if (summary.stop?.kind === "drained" || summary.stop?.kind === "aborted") return undefined;
    say(`\n${(await describeTelemetry(places.store, style, columnsOf(terminal.stdout))).join("\n")}`);
    return await judge(stage, places, questions);
  } finally {
    await stage.close();
  }
}

function preparePlaces({ folder, questions, terminal }: DemoRun): Places {
  const inPath = join(folder, "questions.jsonl");
  writeFileSync(inPath, questions);
  const paths = {
    telemetryBackends: undefined,
    sqlitePath: join(folder, "polygateway.db"),
    jsonlPath: "",
    postgresDsn: undefined,
  };
  const [store] = telemetryStores(paths, undefined, (text) => terminal.stderr.write(`${text}\n`));
  if (store === undefined) throw new Error("the demo has no telemetry store");
  return { inPath, outPath: join(folder, "answers.jsonl"), store };
}

interface QuestionLine {
  readonly custom_id: string;
  readonly body: { readonly messages: readonly { readonly role: string; readonly content: string }[] };
}

/** What each line must be answered: the simulated providers repeat the question under its fingerprint. */
function parseQuestions(text: string): DemoQuestion[] {
  return text
    .trimEnd()
    .split("\n")
    .map((line) => {
      const { custom_id: id, body }: QuestionLine = JSON.parse(line);
      return { id, answer: echoAnswer(body.messages.findLast(({ role }) => role === "user")?.content ?? "") };
    });
}

function introduce(stage: DemoStage, count: number, terminal: Terminal): void {
  const style = styleOf(terminal.stdout, terminal.env);
  const rows = stage.sources.map(({ options, story }) => [options.name, story]);
  const lines = tableLines([{ title: "source" }, { title: "what it does" }], rows).slice(1);
  terminal.stdout.write(
    `${[style.bold(`${plural(count, "question")}, four simulated sources:`), ...lines.map((line) => `  ${line}`)].join("\n")}\n\n`,
  );
}

async function runQuestions(stage: DemoStage, places: Places, terminal: Terminal): Promise<BatchSummary> {
  const screen = batchScreen(terminal, createSystemRuntime(), false);
  const runtime = createSystemRuntime({
    log: (level, message) => {
      if (level === "warn" || level === "error") screen.note(formatLogLine(message).trimEnd());
    },
  });
  const sources = stage.sources.map(({ options }) => options);
  const client = new GatewayClient({
    scope: SCOPE,
    sources,
    backpressure: { whenOpen: "wait", backendGraceMs: 60_000 },
    telemetry: recorderFor(places.store),
    telemetryOptions: { journal: "before_send", durability: "sync" },
    pricing: demoPrices(),
    runtime,
    // Loopback is never behind a proxy.
    proxyEnv: {},
  });
  const stop = listenForStop(terminal, client, screen.note);
  try {
    return await runBatch({
      inPath: places.inPath,
      outPath: places.outPath,
      client: chatLines(client, runtime),
      runtime,
      concurrency: defaultConcurrency({
        sources: sources.map(({ maxConcurrency = 0 }) => ({ maxConcurrency })),
        global: { maxConcurrency: 0 },
      }),
      drainSignal: stop.drainSignal,
      abortSignal: stop.abortSignal,
      onProgress: screen.onProgress,
      onNote: screen.note,
    });
  } finally {
    screen.stop();
    stop.stopListening();
    await client.close();
  }
}

/** What `polygateway report --by source` says. */
async function describeTelemetry(store: TelemetryStore, style: Style, columns: number | undefined): Promise<string[]> {
  const builder = createReport("source");
  const file = openTelemetryFile(store.path);
  try {
    for await (const row of file.rows({ withoutTexts: true })) builder.add(row);
    return reportLines(builder.finish(), file.path, file.unreadableLines, "source", style, columns);
  } finally {
    file.close();
  }
}

async function readAttempts(store: TelemetryStore): Promise<AttemptRow[]> {
  const file = openTelemetryFile(store.path);
  try {
    const rows: AttemptRow[] = [];
    for await (const row of file.rows({ withoutTexts: true })) {
      if (row.attempt !== null) rows.push({ callId: String(row.call_id), sourceName: String(row.source_name) });
    }
    return rows;
  } finally {
    file.close();
  }
}

async function judge(stage: DemoStage, places: Places, questions: readonly DemoQuestion[]): Promise<Check[]> {
  const outText = readFileSync(places.outPath, "utf8").trimEnd();
  const out = outText === "" ? [] : outText.split("\n").map((line): OutLine => JSON.parse(line));
  const witnessed = stage.sources.map(({ provider, options }) => ({
    name: options.name,
    limits: options,
    ledger: provider.ledger(),
  }));
  const { wallNow } = createSystemRuntime();
  const books = await reconcileStore({ store: places.store.path, outPath: places.outPath, now: wallNow() });
  const differences = books.differences.map((difference) => difference.text);
  if (books.open > 0) differences.push(`${plural(books.open, "call")} without an end`);
  if (books.repaired.abandoned > 0) differences.push(`${plural(books.repaired.abandoned, "attempt")} abandoned`);
  return [
    checkAnswers(questions, out),
    checkLimits(witnessed),
    checkRows(witnessed, await readAttempts(places.store)),
    checkBooks(
      differences,
      `${plural(books.calls, "call")} = ${formatCount(books.ended)} ended + ${books.open} open, ${plural(books.attempts, "attempt")}, cost ${formatCost(books)}`,
    ),
  ];
}
