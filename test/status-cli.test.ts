import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type SimulatedProvider, startSimulatedProvider } from "../src/testing/provider/server.js";
import { type Finished, makeFolder, type Running, sourceEnv, startCli } from "./cli-harness.js";

/** The built command: batches that show themselves, and `polygateway status` that finds them. */

let folder: ReturnType<typeof makeFolder>;
let provider: SimulatedProvider;
let env: Record<string, string>;
const running: Running[] = [];

beforeEach(async () => {
  folder = makeFolder();
  provider = await startSimulatedProvider({ latency: { ttftMedianMs: 60_000 } });
  env = sourceEnv(provider.baseUrl, { MAX_CONCURRENCY: "2", RPM: "600" });
});

afterEach(async () => {
  for (const { child, finished } of running.splice(0)) {
    child.kill("SIGKILL");
    await finished;
  }
  await provider.stop();
  folder.remove();
});

function startBatch(name: string): Running {
  const lines = Array.from({ length: 5 }, (_, index) => JSON.stringify({ id: `${name}${index}`, prompt: "hello" }));
  writeFileSync(join(folder.path, `${name}.jsonl`), `${lines.join("\n")}\n`);
  const args = ["batch", `${name}.jsonl`, "-o", `${name}-out.jsonl`, "--concurrency", "5", "--quiet"];
  const batch = startCli(args, { folder: folder.path, env });
  running.push(batch);
  return batch;
}

const status = (...args: string[]): Promise<Finished> =>
  startCli(["status", ...args], { folder: folder.path, env }).finished;

/** Asked until it says so; a batch takes its time to start. */
async function statusWith(text: string): Promise<Finished> {
  for (;;) {
    const told = await status();
    if (told.stdout.includes(text)) return told;
  }
}

describe("status of real batches", () => {
  it("shows each of two, what their calls wait for, and nothing once they have ended", async () => {
    const first = startBatch("a");
    const second = startBatch("b");
    const pids = [first.child.pid, second.child.pid];
    await statusWith(`process ${pids[0]} `);
    const { code, stdout } = await statusWith(`process ${pids[1]} `);
    expect(code).toBe(0);
    for (const pid of pids) expect(stdout).toContain(`LLM: process ${pid} in ${folder.path}`);
    const waits = (await statusWith("3 calls wait")).stdout;
    expect(waits).toMatch(/sim_1 +2\/2 +600, \d ahead .*full: no free place/);
    expect(waits).toMatch(/3 calls wait, the longest .*: 3 for no free place/);
    const { processes } = JSON.parse((await status("LLM", "--json")).stdout);
    expect(processes.map(({ scope }: { scope: string }) => scope)).toEqual(["LLM", "LLM"]);
    expect(JSON.stringify(processes)).not.toContain("sk-test");
    for (const { child } of [first, second]) child.kill("SIGINT");
    await Promise.all([first, second].map((batch) => batch.said("Press Ctrl-C again")));
    for (const { child } of [first, second]) child.kill("SIGINT");
    expect((await first.finished).code).toBe(3);
    expect((await second.finished).code).toBe(3);
    const nothing = await status();
    expect(nothing.code).toBe(1);
    expect(nothing.stderr).toContain("No process shows itself in");
    expect(readdirSync(folder.path).filter((name) => /^polygateway-/.test(name))).toEqual([]);
  });

  it("refuses two scopes at once, and none by an empty name", async () => {
    const two = await status("A", "--scope", "B");
    expect(two.code).toBe(1);
    expect(two.stderr).toContain("Two scopes are named, A and --scope B. Name one of them.");
    expect((await status("A", "--scope", "A")).stderr).toContain("No process with calls of scope A");
    for (const empty of [[""], ["--scope", " "]]) {
      expect((await status(...empty)).stderr).toContain("The scope is empty.");
    }
  });

  it("a killed batch is named once, and its file is gone", async () => {
    const batch = startBatch("a");
    await statusWith(`process ${batch.child.pid} `);
    batch.child.kill("SIGKILL");
    await batch.finished;
    const told = await status();
    expect(told.code).toBe(1);
    expect(told.stderr).toContain(`LLM: process ${batch.child.pid} is gone`);
    expect((await status()).stderr).not.toContain("is gone");
  });

  it("--watch writes a line where nothing can be drawn over, until it is stopped", async () => {
    const batch = startBatch("a");
    await statusWith(`process ${batch.child.pid} `);
    const watching = startCli(["status", "--watch"], { folder: folder.path, env });
    running.push(watching);
    let written = "";
    watching.child.stdout?.on("data", (chunk) => {
      written += chunk;
    });
    await expect.poll(() => written.split("\n").length, { timeout: 20_000 }).toBeGreaterThan(2);
    watching.child.kill("SIGINT");
    expect((await watching.finished).code).toBe(0);
    expect(written).toMatch(/^LLM: process \d+ · sim_1 2\/2 full: no free place · 3 wait \(3 no free place\)$/m);
  });
});
