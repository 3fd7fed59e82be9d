import { once } from "node:events";
import { existsSync, readdirSync, statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { echoAnswer } from "../src/testing/provider/answer.js";
import { seededStream } from "../src/testing/seeded-random.js";
import { type Running, sourceEnv } from "./cli-harness.js";
import { GSM8K_PATH, gsm8kIsHere, gsm8kQuestions } from "./support-batch/gsm8k.js";
import { startMock } from "./support-batch/mock-process.js";
import { answersById, idsOfTornOut, readOut } from "./support-batch/out-file.js";
import { readRecords } from "./support-batch/telemetry.js";
import { openWorkspace, type Workspace } from "./support-batch/workspace.js";

/** Killed at 20 random moments, the same command each time: nothing lost, nothing twice, every send explained. */

const KILLS = 20;
const BATCH = ["batch", GSM8K_PATH, "-o", "out.jsonl", "--json"];
/** Set PGW_TEST_SEED to the printed number to draw the same moments again. */
const SEED = Number(process.env.PGW_TEST_SEED ?? Date.now() % 1_000_000);
const MOCK_ARGS = [
  ...["--error-rate", "5%", "--rate-limit-rate", "5%", "--cut-rate", "1%", "--hang-rate", "1%"],
  ...["--ttft", "100", "--ttft-sigma", "0.5", "--retry-after", "100", "--seed", String(SEED)],
];
/** About 70 answers a second: 20 times 0.9 s at most leave lines for the last run. */
const SOURCE = { MAX_CONCURRENCY: "8", TIMEOUT_S: "3", TTFT_TIMEOUT_S: "1.5", INTER_TOKEN_TIMEOUT_S: "1.5" };

/** With the usual four, in 3 of 100 runs one of 1,319 lines meets nothing but faults and fails, as it should. */
const PATIENT = { LLM__RETRY__MAX_ATTEMPTS: "10" };

let workspace: Workspace;

beforeEach(() => {
  workspace = openWorkspace();
});

afterEach(() => workspace.close());

const next = seededStream(SEED, 0);
const draw = (from: number, to: number): number => from + Math.floor((next() / 2 ** 32) * (to - from));

function sizeOfOut(): number {
  const out = workspace.path("out.jsonl");
  return existsSync(out) ? statSync(out).size : 0;
}

/** Every fourth kill strikes while the run starts (lock, repair of the books, first sends), the others in full flow. */
async function killAtRandom(run: Running, count: number): Promise<string> {
  const duringStart = count % 4 === 3;
  const sizeBefore = sizeOfOut();
  while (!duringStart && sizeOfOut() === sizeBefore) {
    if (run.child.exitCode !== null) break;
    await sleep(5);
  }
  const delayMs = duringStart ? draw(50, 1_000) : draw(0, 900);
  await sleep(delayMs);
  run.child.kill("SIGKILL");
  await once(run.child, "close");
  expect(run.child.signalCode, (await run.finished).stderr).toBe("SIGKILL");
  return `${delayMs}${duringStart ? " (start)" : ""}`;
}

describe.runIf(gsm8kIsHere())("killed again and again", () => {
  it("answers each line once, and every send is explained", { timeout: 300_000 }, async () => {
    const mock = await startMock(workspace, MOCK_ARGS);
    const env = { ...sourceEnv(mock.baseUrl, SOURCE), ...PATIENT };
    const moments: string[] = [];
    for (let count = 0; count < KILLS; count++) moments.push(await killAtRandom(workspace.start(BATCH, env), count));
    console.log(`seed ${SEED}; killed after ms: ${moments.join(", ")}`);

    const outBefore = idsOfTornOut(workspace.path("out.jsonl"));
    const before = await readRecords(workspace.path("polygateway.db"));
    const run = await workspace.run(BATCH, env);
    expect(run.code, run.stderr).toBe(0);
    const books = await workspace.run(["reconcile", "--out", "out.jsonl", "--json"], env);
    const { ledger, outcomes: seen } = await mock.stop();

    const questions = gsm8kQuestions();
    const answers = answersById(readOut(workspace.path("out.jsonl")));
    expect(answers).toEqual(new Map([...questions].map(([id, question]) => [id, echoAnswer(question)])));
    const summary = JSON.parse(run.stdout);
    expect(summary).toMatchObject({ exitCode: 0, stop: null, failed: 0, left: 0, total: 1_319 });
    expect(summary.done + summary.skipped).toBe(1_319);
    expect(summary.skipped).toBe(outBefore.size);

    const { sends, rows, outcomes, openAttempts } = await readRecords(workspace.path("polygateway.db"));
    expect(books.code, books.stdout).toBe(0);
    expect(JSON.parse(books.stdout)).toMatchObject({ balanced: true, open: 0, openAttempts: 0 });
    expect(openAttempts).toBe(0);
    // Killed between the journal's commit and the first byte, an attempt has a row and never arrived.
    const neverArrived = sends.length - ledger.length;
    expect(neverArrived).toBeGreaterThanOrEqual(0);
    expect(neverArrived).toBeLessThanOrEqual(outcomes.abandoned ?? 0);
    const finals = rows.filter((row) => row.final === 1);
    expect(new Set(rows.map((row) => row.request_id)).size).toBe(finals.length);

    // Paid for and not in OUT when the last run began: its lines were due again.
    const lost = before.sends.filter(
      (row) =>
        row.outcome === "success" && row.session_id === summary.batchId && !outBefore.has(String(row.parent_call_id)),
    );
    expect(summary.answersPaidTwice).toBe(lost.length);
    const paidTwice = (outcomes.success ?? 0) - 1_319;
    expect(paidTwice).toBeGreaterThanOrEqual(lost.length);
    const unknown = sends.filter((row) => row.outcome === "abandoned" && !outBefore.has(String(row.parent_call_id)));
    expect(sends.filter((row) => row.session_id !== summary.batchId || row.parent_call_id === null)).toEqual([]);
    expect(summary.possiblyPaidTwice).toBe(unknown.length);

    // A kill between writing a lock and linking it into place leaves a few bytes under a name of their own, and the last
    // state of a killed process stays until `status` tells of it.
    const left = readdirSync(workspace.folder).filter((name) => !/^polygateway(\.db|-\d+$)|\.lock\./.test(name));
    expect(left.sort()).toEqual(["ledger.jsonl", "out.jsonl", "out.jsonl.pgw.json"]);
    console.log(
      `${KILLS} kills: ${ledger.length} requests for 1,319 lines, ${outcomes.abandoned ?? 0} abandoned (${neverArrived} of them never sent), ${paidTwice} answers recorded twice; last run: ${summary.answersPaidTwice} paid twice, ${summary.possiblyPaidTwice} possibly; the provider: ${JSON.stringify(seen)}`,
    );
  });
});
