import { once } from "node:events";
import { existsSync, statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { seededStream } from "../src/testing/seeded-random.js";
import type { Running } from "./cli-harness.js";
import { embeddingEnv, readVectorLines, vectorsOf } from "./support-batch/embedding-lines.js";
import { startMock } from "./support-batch/mock-process.js";
import { openWorkspace, type Workspace } from "./support-batch/workspace.js";

/** Killed at random moments, the same command each time: each vector once and in its place. */

/** PGW_TEST_TEXTS=50000 plays the long form. */
const TEXTS = Number(process.env.PGW_TEST_TEXTS ?? 3_000);
const KILLS = 6;
/** Set PGW_TEST_SEED to the printed number to draw the same moments again. */
const SEED = Number(process.env.PGW_TEST_SEED ?? Date.now() % 1_000_000);
const BATCH_SIZE = 20;

let workspace: Workspace;

beforeEach(() => {
  workspace = openWorkspace();
});

afterEach(() => workspace.close());

const next = seededStream(SEED, 0);
const draw = (to: number): number => Math.floor((next() / 2 ** 32) * to);
const textOf = (at: number): string => `text number ${at} of ${TEXTS}`;

describe("embed, killed again and again", () => {
  it("writes each vector once and in its place", { timeout: 1_800_000 }, async () => {
    const faults = ["--error-rate", "3%", "--rate-limit-rate", "3%", "--retry-after", "50", "--seed", String(SEED)];
    const mock = await startMock(workspace, ["--ttft", "30", ...faults]);
    const env = embeddingEnv(mock.baseUrl, {
      EMBED__BATCH_SIZE: String(BATCH_SIZE),
      EMBED__SIM__1__MAX_CONCURRENCY: "3",
      EMBED__SIM__2__BASE_URL: mock.baseUrl,
      EMBED__SIM__2__API_KEY: "sk-other-0123456789abcdef",
      EMBED__SIM__2__MODEL: "sim-embed",
      EMBED__SIM__2__MAX_CONCURRENCY: "2",
      EMBED__RETRY__MAX_ATTEMPTS: "10",
      EMBED__RETRY__BACKOFF_BASE_S: "0.05",
    });
    workspace.write("in.txt", Array.from({ length: TEXTS }, (_, at) => `${textOf(at)}\n`).join(""));
    const start = (): Running => workspace.start(["embed", "in.txt", "-o", "out.jsonl", "--base64", "--json"], env);
    const sizeOfOut = (): number =>
      existsSync(workspace.path("out.jsonl")) ? statSync(workspace.path("out.jsonl")).size : 0;
    for (let count = 0; count < KILLS; count++) {
      const run = start();
      const before = sizeOfOut();
      // Every third strikes while the run starts, the others when vectors come.
      while (count % 3 !== 2 && sizeOfOut() === before && run.child.exitCode === null) await sleep(5);
      await sleep(draw(500));
      run.child.kill("SIGKILL");
      await once(run.child, "close");
    }
    const last = await start().finished;
    expect(last.code, `seed ${SEED}: ${last.stderr}`).toBe(0);
    const lines = readVectorLines(workspace.path("out.jsonl"));
    expect(lines.length).toBe(TEXTS);
    const vectors = new Map(lines.map(({ index, embedding }) => [index, embedding]));
    for (const { id, index } of lines) expect(id).toBe(`line-${index + 1}`);
    for (let from = 0; from < TEXTS; from += 500) {
      const texts = Array.from({ length: Math.min(500, TEXTS - from) }, (_, at) => textOf(from + at));
      for (const [at, vector] of (await vectorsOf(mock, texts)).entries()) {
        const expected = Buffer.from(new Float32Array(vector).buffer).toString("base64");
        expect(vectors.get(from + at), `text ${from + at}, seed ${SEED}`).toBe(expected);
      }
    }
    const { ledger } = await mock.stop();
    expect(ledger.length).toBeGreaterThanOrEqual(TEXTS / BATCH_SIZE);
  });
});
