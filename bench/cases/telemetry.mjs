// G12: rows a second that the PostgreSQL recorder writes, against COPY of the same rows, and what a row costs its call.
import pg from "pg";
import { PostgresRecorder } from "polygateway/postgres";
import { median } from "../measure.mjs";
import { startPostgres } from "../postgres.mjs";

const ROUNDS = 7;
const COPY_ROWS = 256;
/** Below the bound of the queue, so that nothing is lost. */
const PORTION = 5_000;

const COLUMNS =
  "call_id session_id parent_call_id scope operation provider source_name model messages response thinking prompt_tokens completion_tokens usage_source latency_ms ttft_ms cost error cached_prompt_tokens model_reported sampling reasoning_tokens outcome attempt request_id status_code finish_reason worker waited_ms route final".split(
    " ",
  );

let made = 0;
function record() {
  made += 1;
  const id = `019ab000-0000-7000-8000-${made.toString(16).padStart(12, "0")}`;
  return {
    callId: id,
    sessionId: "session",
    parentCallId: `line-${made}`,
    scope: "LLM",
    operation: "chat",
    provider: "acme",
    sourceName: "acme_1",
    model: "model-a",
    messages: `[{"role":"user","content":"${"a question of some length ".repeat(12)}"}]`,
    response: "an answer of some length ".repeat(20),
    thinking: null,
    promptTokens: 120,
    completionTokens: 340,
    usageSource: "measured",
    latencyMs: 56.5,
    ttftMs: 7.25,
    costNanos: 123_456n,
    error: null,
    cachedPromptTokens: 4,
    modelReported: "model-a-2025",
    sampling: '{"temperature":0}',
    reasoningTokens: 8,
    outcome: "success",
    attempt: 1,
    requestId: id,
    statusCode: 200,
    finishReason: "stop",
    worker: "host:1:abc",
    waitedMs: 0,
    route: null,
    final: true,
  };
}

const valuesOf = (row) => {
  const { costNanos, final, ...rest } = row;
  const named = { ...rest, cost: Number(costNanos) / 1e9, final: final ? 1 : 0 };
  return COLUMNS.map((column) => named[column.replace(/_(\w)/g, (_, letter) => letter.toUpperCase())]);
};

const ESCAPES = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };
const escaped = (value) =>
  value === null ? "\\N" : String(value).replace(/[\\\n\r\t]/g, (character) => ESCAPES[character]);

/** One COPY over the protocol as the package `pg` speaks it. */
function copyIn(client, text, lines) {
  return new Promise((resolve, reject) => {
    let failure;
    client.query({
      submit: (connection) => connection.query(text),
      handleCopyInResponse(connection) {
        connection.sendCopyFromChunk(Buffer.from(lines));
        connection.endCopyFrom();
      },
      handleCommandComplete() {},
      handleRowDescription() {},
      handleDataRow() {},
      handleError(error) {
        failure = error;
      },
      handleReadyForQuery: () => (failure ? reject(failure) : resolve()),
    });
  });
}

async function byCopy(client, count) {
  const text = `COPY llm_calls (${COLUMNS.join(", ")}) FROM STDIN`;
  for (let done = 0; done < count; done += COPY_ROWS) {
    const rows = Array.from({ length: Math.min(COPY_ROWS, count - done) }, record);
    await copyIn(client, text, rows.map((row) => `${valuesOf(row).map(escaped).join("\t")}\n`).join(""));
  }
}

async function byRecorder(recorder, count) {
  for (let done = 0; done < count; done += PORTION) {
    for (let index = 0; index < PORTION; index += 1) recorder.record(record(), false);
    await recorder.flush();
  }
}

async function rate(work, count) {
  const startedAt = performance.now();
  await work(count);
  return (count / (performance.now() - startedAt)) * 1_000;
}

/** Microseconds of one `record()`, with the rows made beforehand. */
async function enqueueUs(recorder) {
  const rows = Array.from({ length: PORTION }, record);
  const startedAt = performance.now();
  for (const row of rows) recorder.record(row, false);
  const us = ((performance.now() - startedAt) * 1_000) / PORTION;
  await recorder.flush();
  return us;
}

export async function telemetryCases({ root, scale }) {
  const started = await startPostgres(root);
  if (!started.ok) {
    console.error(`  left out: ${started.reason}`);
    return [];
  }
  const { server } = started;
  const client = new pg.Client({ connectionString: server.url() });
  const recorder = new PostgresRecorder(server.url());
  try {
    await client.connect();
    const count = Math.max(1, Math.round(4 * scale)) * PORTION;
    await byRecorder(recorder, PORTION);
    await byCopy(client, PORTION);
    const ratios = [];
    const rates = [];
    const enqueue = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      await client.query("TRUNCATE llm_calls");
      const base = await rate((rows) => byCopy(client, rows), count);
      await client.query("TRUNCATE llm_calls");
      const ours = await rate((rows) => byRecorder(recorder, rows), count);
      rates.push(ours);
      ratios.push(ours / base);
      enqueue.push(await enqueueUs(recorder));
    }
    if (recorder.stats().dropped > 0) throw new Error(`rows were lost: ${recorder.stats().problem}`);
    return [
      {
        id: "G12",
        what: `PostgreSQL telemetry: rows/s ÷ COPY × ${COPY_ROWS}`,
        value: median(ratios),
        goal: 0.7,
        atLeast: true,
        stretch: 0.9,
        must: true,
      },
      { id: "—", what: "PostgreSQL telemetry, rows/s", value: median(rates), unit: "/s", goal: null },
      {
        id: "G12",
        what: "PostgreSQL telemetry: a row on the call path",
        value: median(enqueue),
        unit: "µs",
        goal: 2,
        must: true,
      },
    ];
  } finally {
    await recorder.close();
    await client.end();
    await server.dispose();
  }
}
