import { once } from "node:events";
import { createWriteStream, statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { sourceEnv } from "./cli-harness.js";
import { startMock } from "./support-batch/mock-process.js";
import { answersById, readOut } from "./support-batch/out-file.js";
import { residentMb } from "./support-batch/resident-memory.js";
import { openWorkspace, type Workspace } from "./support-batch/workspace.js";

/** Memory over a long file: what grows with the number of lines shows between the first and the last third. */

const LINES = 20_000;
const ALLOWED_GROWTH_MB = 50;

let workspace: Workspace;

beforeEach(() => {
  workspace = openWorkspace();
});

afterEach(() => workspace.close());

async function writeInput(path: string): Promise<void> {
  const file = createWriteStream(path);
  // 5 KB a line: whoever kept the lines would hold 66 MB more in the last third than in the first.
  const filler = "x".repeat(5_000);
  for (let index = 0; index < LINES; index++) {
    file.write(`${JSON.stringify({ id: `line-id-${index}`, prompt: `${index} ${filler}`, max_tokens: 16 })}\n`);
  }
  file.end();
  await once(file, "finish");
}

interface Sample {
  readonly mb: number;
  /** Bytes of OUT at that moment: how far the run was. */
  readonly written: number;
}

const peak = (samples: readonly Sample[]): number => Math.max(...samples.map(({ mb }) => mb));

describe("20,000 lines", () => {
  it("need no more memory at the end than at the beginning", { timeout: 240_000 }, async () => {
    await writeInput(workspace.path("in.jsonl"));
    const mock = await startMock(workspace, []);
    const env = sourceEnv(mock.baseUrl, { MAX_CONCURRENCY: "32", STREAM: "off" });
    const run = workspace.start(["batch", "in.jsonl", "-o", "out.jsonl", "--json"], env);
    const samples: Sample[] = [];
    while (run.child.exitCode === null) {
      const mb = residentMb(run.child.pid as number);
      const written = statSync(workspace.path("out.jsonl"), { throwIfNoEntry: false })?.size ?? 0;
      if (mb !== null && written > 0) samples.push({ mb, written });
      await sleep(100);
    }
    const { code, stdout, stderr } = await run.finished;
    expect(code, stderr).toBe(0);
    expect(answersById(readOut(workspace.path("out.jsonl"))).size).toBe(LINES);

    const { size } = statSync(workspace.path("out.jsonl"));
    const first = samples.filter(({ written }) => written < size / 3);
    const last = samples.filter(({ written }) => written > (2 * size) / 3);
    expect(Math.min(first.length, last.length)).toBeGreaterThan(3);
    const { elapsedMs } = JSON.parse(stdout);
    console.log(
      `${LINES} lines: peak RSS ${peak(first).toFixed(0)} MB in the first third, ${peak(last).toFixed(0)} MB in the last; ${Math.round((1_000 * LINES) / elapsedMs)} answers/s`,
    );
    expect(peak(last) - peak(first)).toBeLessThan(ALLOWED_GROWTH_MB);
  });
});
