import assert from "node:assert/strict";
import type { CallRecord, OpenAttempt } from "../../domain/record.js";
import type { Recorder } from "../../ports/recorder.js";

/** What a recorder keeps, read back by other means: rows by column name in their order, and the journal. */
export interface KeptTelemetry {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  readonly openCallIds: readonly string[];
}

export interface RecorderUnderTest {
  readonly recorder: Recorder;
  /** Reads what is durable now. */
  readonly read: () => Promise<KeptTelemetry>;
  /** Called after the test; the recorder is closed by then. */
  readonly dispose?: () => Promise<void>;
}

export interface RecorderContractOptions {
  /** The runner's own function; nothing else of a runner is needed. */
  readonly test: (name: string, body: () => Promise<void>) => void;
  /** An empty store of its own each time. `queueSize` bounds the entries kept in memory. */
  readonly makeRecorder: (options: { readonly queueSize?: number }) => Promise<RecorderUnderTest>;
  /** Tests this implementation can't pass, each with the reason; the reason shows in the test's name. */
  readonly skip?: readonly { readonly test: string; readonly reason: string }[];
}

interface ContractTest {
  readonly name: string;
  readonly queueSize?: number;
  readonly body: (bench: RecorderUnderTest) => Promise<void>;
}

/** A complete record; ids are made from `number`. */
export function sampleRecord(number: number, changes: Partial<CallRecord> = {}): CallRecord {
  return {
    callId: sampleId(number),
    sessionId: "session",
    parentCallId: `line-${number}`,
    scope: "LLM",
    operation: "chat",
    provider: "acme",
    sourceName: "acme_1",
    model: "model-a",
    messages: '[{"role":"user","content":"hi"}]',
    response: "hello",
    thinking: null,
    promptTokens: 12,
    completionTokens: 34,
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
    requestId: sampleId(900_000 + number),
    statusCode: 200,
    finishReason: "stop",
    worker: "host:1:abc",
    waitedMs: 0,
    route: null,
    final: true,
    ...changes,
  };
}

export function sampleOpen(number: number, changes: Partial<OpenAttempt> = {}): OpenAttempt {
  return {
    callId: sampleId(number),
    requestId: sampleId(900_000 + number),
    scope: "LLM",
    sourceName: "acme_1",
    worker: "host:1:abc",
    startedAtMs: 1_764_000_000_000,
    estTokens: 100,
    sessionId: null,
    parentCallId: null,
    operation: "chat",
    ...changes,
  };
}

/** A UUIDv7 of a fixed time. */
export function sampleId(number: number): string {
  return `019ab000-0000-7000-8000-${number.toString(16).padStart(12, "0")}`;
}

const COLUMNS =
  "call_id session_id parent_call_id scope operation provider source_name model messages response thinking " +
  "prompt_tokens completion_tokens usage_source latency_ms ttft_ms cost error created_at cached_prompt_tokens " +
  "model_reported sampling reasoning_tokens outcome attempt request_id status_code finish_reason worker waited_ms " +
  "route final";

const LONG_TEXT_UNITS = 300_000;
const MAX_COLUMN_BYTES = 64 * 1024;

const TESTS: readonly ContractTest[] = [
  {
    name: "a record is one row with the columns of spec 05 in their order",
    body: async ({ recorder, read }) => {
      await recorder.record(sampleRecord(1), true);
      const { rows } = await read();
      assert.equal(rows.length, 1);
      const row = rows[0] ?? {};
      assert.equal(Object.keys(row).join(" "), COLUMNS);
      assert.equal(row.call_id, sampleId(1));
      assert.equal(row.cost, 0.000_123_456);
      assert.equal(row.latency_ms, 56.5);
      assert.equal(row.final, 1);
      assert.equal(row.route, null);
      assert.equal(Number.isFinite(Date.parse(String(row.created_at))), true);
    },
  },
  {
    name: "a commit that was asked for is durable when its promise resolves",
    body: async ({ recorder, read }) => {
      const commits = [1, 2, 3, 4, 5].map((number) => recorder.record(sampleRecord(number), true));
      await Promise.all(commits);
      assert.equal((await read()).rows.length, 5);
    },
  },
  {
    name: "without a commit nothing is returned, and flush makes it durable",
    body: async ({ recorder, read }) => {
      for (let number = 0; number < 500; number++) {
        assert.equal(recorder.record(sampleRecord(number), false), undefined);
      }
      await recorder.flush();
      assert.equal((await read()).rows.length, 500);
      assert.deepEqual(pick(recorder), { written: 500, queued: 0, dropped: 0 });
    },
  },
  {
    name: "a committed journal row is there before its record, and gone with it",
    body: async ({ recorder, read }) => {
      await recorder.open(sampleOpen(1), true);
      await recorder.open(sampleOpen(2), true);
      assert.deepEqual([...(await read()).openCallIds].sort(), [sampleId(1), sampleId(2)]);
      await recorder.record(sampleRecord(1), true);
      const kept = await read();
      assert.deepEqual(kept.openCallIds, [sampleId(2)]);
      assert.equal(kept.rows.length, 1);
    },
  },
  {
    name: "an attempt that ended before its journal row was written leaves only its record",
    body: async ({ recorder, read }) => {
      recorder.open(sampleOpen(1), false);
      recorder.record(sampleRecord(1), false);
      recorder.open(sampleOpen(2), false);
      await recorder.flush();
      const kept = await read();
      assert.deepEqual(kept.openCallIds, [sampleId(2)]);
      assert.deepEqual(
        kept.rows.map((row) => row.call_id),
        [sampleId(1)],
      );
    },
  },
  {
    name: "a full queue loses the oldest entries and counts them",
    queueSize: 10,
    body: async ({ recorder, read }) => {
      for (let number = 0; number < 25; number++) recorder.record(sampleRecord(number), false);
      await recorder.flush();
      const { rows } = await read();
      assert.deepEqual(
        rows.map((row) => row.call_id),
        Array.from({ length: 10 }, (_, index) => sampleId(15 + index)),
      );
      assert.deepEqual(pick(recorder), { written: 10, queued: 0, dropped: 15 });
    },
  },
  {
    name: "a commit whose entry is lost rejects",
    queueSize: 1,
    body: async ({ recorder }) => {
      const lost = assert.rejects(async () => recorder.record(sampleRecord(1), true));
      const kept = recorder.record(sampleRecord(2), true);
      await lost;
      await kept;
    },
  },
  {
    name: "a poisonous row is cleaned, and its neighbours are stored",
    body: async ({ recorder, read }) => {
      recorder.record(sampleRecord(1), false);
      recorder.record(
        sampleRecord(2, {
          response: "nul \0, lone \ud800 surrogate, 漢字 😀",
          messages: "😀".repeat(LONG_TEXT_UNITS / 2),
          promptTokens: 2 ** 31 + 5,
          completionTokens: Number.NaN,
          latencyMs: Number.POSITIVE_INFINITY,
        }),
        false,
      );
      recorder.record(sampleRecord(3), false);
      await recorder.flush();
      const { rows } = await read();
      assert.equal(rows.length, 3);
      const row = rows[1] ?? {};
      assert.equal(row.response, "nul \uFFFD, lone \uFFFD surrogate, 漢字 😀");
      assert.equal(row.prompt_tokens, 2 ** 31 + 5);
      assert.equal(row.completion_tokens, null);
      assert.equal(row.latency_ms, null);
      const messages = String(row.messages);
      assert.ok(Buffer.byteLength(messages) <= MAX_COLUMN_BYTES);
      const omitted = Number(/…\((\d+) chars omitted\)…/.exec(messages)?.[1]);
      const kept = messages.replace(/…\(\d+ chars omitted\)…/, "");
      assert.equal(kept.length + omitted, LONG_TEXT_UNITS);
    },
  },
  {
    name: "close writes what is queued, may be called twice, and later entries are still written",
    body: async ({ recorder, read }) => {
      recorder.record(sampleRecord(1), false);
      await Promise.all([recorder.close(), recorder.close()]);
      assert.equal((await read()).rows.length, 1);
      recorder.record(sampleRecord(2), false);
      await recorder.close();
      assert.equal((await read()).rows.length, 2);
    },
  },
  {
    name: "rows come in the order they were given, whatever is committed and flushed in between",
    body: async ({ recorder, read }) => {
      const waits: (Promise<void> | undefined)[] = [];
      for (let number = 0; number < 300; number++) {
        waits.push(recorder.record(sampleRecord(number), number % 7 === 0));
        if (number % 50 === 0) waits.push(recorder.flush());
        if (number % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      await Promise.all(waits);
      await recorder.flush();
      const ids = (await read()).rows.map((row) => row.call_id);
      assert.deepEqual(
        ids,
        Array.from({ length: 300 }, (_, number) => sampleId(number)),
      );
    },
  },
];

function pick(recorder: Recorder): { written: number; queued: number; dropped: number } {
  const { written, queued, dropped } = recorder.stats();
  return { written, queued, dropped };
}

async function runOne(test: ContractTest, makeRecorder: RecorderContractOptions["makeRecorder"]): Promise<void> {
  const bench = await makeRecorder(test.queueSize === undefined ? {} : { queueSize: test.queueSize });
  try {
    await test.body(bench);
  } finally {
    await bench.recorder.close();
    await bench.dispose?.();
  }
}

/**
 * What every recorder must do (port `Recorder`, spec 05), checked on what it left in its store.
 * The bodies are the same for every implementation.
 *
 * @throws Error when `skip` names a test that doesn't exist.
 */
export function recorderContract({ test, makeRecorder, skip = [] }: RecorderContractOptions): void {
  for (const { test: name } of skip) {
    if (!TESTS.some((known) => known.name === name)) throw new Error(`skip names no test of the suite: ${name}`);
  }
  for (const contractTest of TESTS) {
    const skipped = skip.find((entry) => entry.test === contractTest.name);
    if (skipped) test(`${contractTest.name} [skipped: ${skipped.reason}]`, async () => {});
    else test(contractTest.name, () => runOne(contractTest, makeRecorder));
  }
}
