import { execFileSync } from "node:child_process";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openDatabase } from "../src/telemetry/sqlite-driver.js";
import { type SimulatedProvider, startSimulatedProvider } from "../src/testing/provider/server.js";
import { makeFolder, sourceEnv, startCli } from "./cli-harness.js";
import { eventually } from "./services/processes.js";

/**
 * F75: the file of the telemetry may grow no further, as on a full disk. The limit is one of the process (`ulimit -f`),
 * set from outside while it runs, as a disk fills up and is cleared.
 */

let folder: ReturnType<typeof makeFolder>;
let provider: SimulatedProvider;

beforeEach(async () => {
  folder = makeFolder();
  provider = await startSimulatedProvider({ latency: { ttftMedianMs: 5 }, output: { medianTokens: 8 } });
});

afterEach(async () => {
  await provider.stop();
  folder.remove();
});

const LINES = 1_500;
/** Smaller than what the rows need, larger than what the answers need. */
const FULL_BYTES = 1_000_000;

function limitFiles(pid: number | undefined, bytes: number | "unlimited"): void {
  execFileSync("prlimit", ["--pid", String(pid), `--fsize=${bytes}:unlimited`]);
}

function start() {
  const body = (n: number) => ({ messages: [{ role: "user", content: `${n} ${"x".repeat(2_000)}` }] });
  const lines = Array.from({ length: LINES }, (_, n) => JSON.stringify({ custom_id: `q${n}`, body: body(n) }));
  writeFileSync(join(folder.path, "in.jsonl"), `${lines.join("\n")}\n`);
  const env = { ...sourceEnv(provider.baseUrl), PGW_TELEMETRY_CAPTURE: "full" };
  return startCli(["batch", "in.jsonl", "-o", "out.jsonl"], { folder: folder.path, env });
}

const answers = () => readFileSync(join(folder.path, "out.jsonl"), "utf8").split("\n").length - 1;

function rows(): unknown {
  const file = openDatabase(join(folder.path, "polygateway.db"), { readOnly: true });
  try {
    expect(file.prepare("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
    return file.prepare("SELECT count(*) AS rows, count(DISTINCT request_id) AS calls FROM llm_calls").all()[0];
  } finally {
    file.close();
  }
}

const hasLimits = process.platform === "linux";

describe.skipIf(!hasLimits)("F75 a telemetry file that can't grow", () => {
  test("costs no call, and what could not be kept is told with its number and reason", async () => {
    const run = start();
    await eventually(async () => statSync(join(folder.path, "out.jsonl")));
    limitFiles(run.child.pid, FULL_BYTES);
    const ended = await run.finished;
    expect(ended.code, ended.stderr + ended.stdout).toBe(0);
    expect(answers()).toBe(LINES);
    const lost = Number(/([\d,]+) rows? (?:is|are) lost/.exec(ended.stderr)?.[1]?.replaceAll(",", ""));
    expect(rows()).toMatchObject({ rows: LINES - lost });
    expect(ended.stderr).toMatch(/polygateway\.db.*(full|disk)/);
  });

  test("loses nothing when there is room again", async () => {
    const run = start();
    await eventually(async () => statSync(join(folder.path, "out.jsonl")));
    limitFiles(run.child.pid, FULL_BYTES);
    await run.said("tried again");
    limitFiles(run.child.pid, "unlimited");
    const ended = await run.finished;
    expect(ended.code, ended.stderr + ended.stdout).toBe(0);
    expect(ended.stderr).toContain("rows are written again; none was lost");
    expect(rows()).toEqual({ rows: LINES, calls: LINES });
  });
});
