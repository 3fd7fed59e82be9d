import { readdirSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { echoAnswer } from "../src/testing/provider/answer.js";
import { judgeLimits } from "../src/testing/provider/judge.js";
import { sourceEnv } from "./cli-harness.js";
import { GSM8K_PATH, gsm8kIsHere, gsm8kQuestions } from "./support-batch/gsm8k.js";
import { startMock } from "./support-batch/mock-process.js";
import { answersById, readOut } from "./support-batch/out-file.js";
import { readRecords } from "./support-batch/telemetry.js";
import { openWorkspace, type Workspace } from "./support-batch/workspace.js";

/** The main job as a user runs it: the built command against a provider in another process, with every common fault. */

const LIMITS = { maxConcurrency: 16, rpm: 6_000, tpm: 3_000_000 };
const MOCK_ARGS = [
  ...["--error-rate", "5%", "--rate-limit-rate", "5%", "--cut-rate", "1%", "--hang-rate", "1%"],
  ...["--max-concurrency", String(LIMITS.maxConcurrency), "--rpm", String(LIMITS.rpm), "--tpm", String(LIMITS.tpm)],
  // A bucket of two seconds: it refuses long before a minute is over when requests come too fast.
  ...["--bucket-seconds", "2", "--ttft", "20", "--ttft-sigma", "0.5", "--retry-after", "100", "--seed", "42"],
];
const SOURCE = {
  MAX_CONCURRENCY: String(LIMITS.maxConcurrency),
  RPM: String(LIMITS.rpm),
  TPM: String(LIMITS.tpm),
  TIMEOUT_S: "3",
  TTFT_TIMEOUT_S: "1.5",
  INTER_TOKEN_TIMEOUT_S: "1.5",
};

/** With the usual four, in 3 of 100 runs one of 1,319 lines meets nothing but faults and fails, as it should. */
const PATIENT = { LLM__RETRY__MAX_ATTEMPTS: "10" };

let workspace: Workspace;

beforeEach(() => {
  workspace = openWorkspace();
});

afterEach(() => workspace.close());

describe.runIf(gsm8kIsHere())("1,319 questions against a faulty provider", () => {
  it("answers each once and rightly, within the limits, with books that balance", { timeout: 180_000 }, async () => {
    const mock = await startMock(workspace, MOCK_ARGS);
    const env = { ...sourceEnv(mock.baseUrl, SOURCE), ...PATIENT };
    const run = await workspace.run(["batch", GSM8K_PATH, "-o", "out.jsonl", "--json"], env);
    expect(run.code, run.stderr).toBe(0);
    const books = await workspace.run(["reconcile", "--out", "out.jsonl", "--json"], env);
    const { ledger, outcomes: seen } = await mock.stop();

    const questions = gsm8kQuestions();
    expect(questions.size).toBe(1_319);
    const answers = answersById(readOut(workspace.path("out.jsonl")));
    expect(answers).toEqual(new Map([...questions].map(([id, question]) => [id, echoAnswer(question)])));
    const summary = JSON.parse(run.stdout);
    expect(summary).toMatchObject({ exitCode: 0, done: 1_319, failed: 0, left: 0, stop: null, answersPaidTwice: 0 });

    // Every kind of fault has struck.
    for (const fault of ["error", "rate_limited", "cut", "hang"]) expect(seen[fault], fault).toBeGreaterThan(0);

    const { sends, rows, outcomes, openAttempts } = await readRecords(workspace.path("polygateway.db"));
    expect(openAttempts).toBe(0);
    expect(sends.length).toBe(ledger.length);
    expect([outcomes.success, seen.answered]).toEqual([1_319, 1_319]);
    expect(outcomes.rate_limited).toBe((seen.rate_limited ?? 0) + (seen.limit_exceeded ?? 0));
    expect(rows.filter((row) => row.session_id !== summary.batchId)).toEqual([]);
    expect(rows.filter((row) => !questions.has(String(row.parent_call_id)))).toEqual([]);
    expect(books.code, books.stdout).toBe(0);
    expect(JSON.parse(books.stdout)).toMatchObject({
      balanced: true,
      open: 0,
      attempts: ledger.length,
      repaired: { abandoned: 0, answered: 0, ended: 0 },
    });

    expect(judgeLimits(ledger, LIMITS).violations).toEqual([]);
    // The provider itself refuses at most what overlaps when a hung request was given up.
    expect(seen.limit_exceeded ?? 0).toBeLessThanOrEqual(seen.hang ?? 0);

    const left = readdirSync(workspace.folder).filter((name) => !name.startsWith("polygateway.db"));
    expect(left.sort()).toEqual(["ledger.jsonl", "out.jsonl", "out.jsonl.pgw.json"]);
    const perSecond = Math.round(1_319_000 / summary.elapsedMs);
    console.log(`main job: ${ledger.length} requests, ${perSecond} answers/s; the provider: ${JSON.stringify(seen)}`);
  });
});
