import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { sourceEnv } from "./cli-harness.js";
import { summaryOf, useProviderBench } from "./support-batch/provider-bench.js";
import { questionLines } from "./support-batch/questions.js";
import { readRecords } from "./support-batch/telemetry.js";

/** How a batch ends before its end, by hand or because nothing answers, and how the same command goes on. */

const bench = useProviderBench();

describe("Ctrl-C", () => {
  it.each(["SIGINT", "SIGTERM"] as const)("%s once: what is in flight is answered and written", async (signal) => {
    bench.workspace.write("in.jsonl", questionLines(100));
    bench.provider.change({ latency: { ttftMedianMs: 200 } });
    const first = bench.startBatch(["--json"]);
    await bench.arrived(6);
    first.child.kill(signal);
    const stopped = await first.finished;
    expect(stopped.code, stopped.stderr).toBe(3);
    expect(stopped.stderr).toContain("calls in flight are finishing");
    expect(summaryOf(stopped)).toMatchObject({ stop: { kind: "drained" }, done: bench.provider.stats().arrived });
    expect(bench.out()).toHaveLength(bench.provider.stats().arrived);
    bench.provider.change({ latency: {} });
    expect(await bench.batch()).toMatchObject({ code: 0 });
    bench.expectAllAnswered(100);
    expect(bench.provider.stats().arrived).toBe(100);
  });

  it("twice: what is in flight is cancelled, recorded as that, and run again by the next run", async () => {
    bench.workspace.write("in.jsonl", questionLines(10));
    bench.provider.change({ latency: { ttftMedianMs: 50_000 } });
    const first = bench.startBatch(["--json"]);
    await bench.arrived(4);
    first.child.kill("SIGINT");
    await first.said("Press Ctrl-C again");
    first.child.kill("SIGINT");
    const stopped = await first.finished;
    expect(stopped.code, stopped.stderr).toBe(3);
    expect(summaryOf(stopped)).toMatchObject({ done: 0, failed: 0, left: 10 });
    expect(bench.out()).toEqual([]);
    while (bench.provider.stats().inProgress > 0) await sleep(10);
    const { outcomes, openAttempts } = await readRecords(bench.workspace.path("polygateway.db"));
    expect({ outcomes, openAttempts }).toEqual({ outcomes: { cancelled: 4 }, openAttempts: 0 });
    bench.provider.change({ latency: {} });
    expect(await bench.batch()).toMatchObject({ code: 0 });
    bench.expectAllAnswered(10);
    const books = await bench.run(["reconcile", "--out", "out.jsonl"]);
    expect(books).toMatchObject({ code: 0, stdout: expect.stringContaining("nothing was left open") });
  });
});

describe("a batch that can't go on", () => {
  const GIVE_UP = ["--give-up-after", "2s"];

  it("ends with exit 3 and each source's own words when every source is dead; with good keys it goes on", async () => {
    bench.workspace.write("in.jsonl", questionLines(30));
    bench.provider.change({ faults: { deadKey: true } });
    const { baseUrl } = bench.provider;
    const second = Object.entries(sourceEnv(baseUrl)).map(([key, value]) => [key.replace("SIM__1", "SIM__2"), value]);
    const env = { ...bench.env, ...Object.fromEntries(second) };
    const args = ["batch", "in.jsonl", "-o", "out.jsonl", "--json"];
    const dead = await bench.workspace.run(args, env);
    expect(dead.code, dead.stderr).toBe(3);
    const { stop, failed } = summaryOf(dead);
    expect(failed).toBe(0);
    expect(stop).toMatchObject({ kind: "all_sources_dead" });
    expect(stop.reason).toMatch(/^All sources of scope LLM are dead \(sim_1 .*401.*; sim_2 .*401/);
    expect(dead.stdout + dead.stderr).not.toContain("sk-test-0123456789abcdef");
    expect(bench.out()).toEqual([]);
    const said = await bench.workspace.run(args.slice(0, -1), env);
    expect(said).toMatchObject({ code: 3, stdout: expect.stringContaining("Run the same command again") });
    bench.provider.change({ faults: {} });
    expect(await bench.workspace.run(args, env)).toMatchObject({ code: 0 });
    bench.expectAllAnswered(30);
  });

  it("ends with exit 1 when no source is enabled; once one is, it goes on", async () => {
    bench.workspace.write("in.jsonl", questionLines(5));
    const args = ["batch", "in.jsonl", "-o", "out.jsonl"];
    const none = await bench.workspace.run(args, {
      ...bench.env,
      ...sourceEnv(bench.provider.baseUrl, { DISABLED: "on" }),
    });
    expect(none.code, none.stderr).toBe(1);
    expect(none.stdout).toMatch(
      /has no source that can serve the lines.*Correct that, then run the same command again/,
    );
    expect(bench.provider.stats().arrived).toBe(0);
    expect(await bench.batch()).toMatchObject({ code: 0 });
    bench.expectAllAnswered(5);
  });

  it("gives up with exit 3 and the reason when nothing succeeds; once the provider is back, it goes on", async () => {
    bench.workspace.write("in.jsonl", questionLines(30));
    await bench.provider.setOutage("503");
    const run = await bench.batch([...GIVE_UP, "--json"]);
    expect(run.code, run.stderr).toBe(3);
    expect(summaryOf(run)).toMatchObject({ done: 0, failed: 0, left: 30, stop: { kind: "no_success" } });
    expect(summaryOf(run).stop.reason).toMatch(
      /^No line succeeded for 2 s\. The last reason: sim_1 transient failure: 503/,
    );
    await bench.provider.setOutage("off");
    expect(await bench.batch(GIVE_UP)).toMatchObject({ code: 0 });
    bench.expectAllAnswered(30);
    const books = await bench.run(["reconcile", "--out", "out.jsonl"]);
    expect(books, books.stderr).toMatchObject({ code: 0 });
  });
});

describe("a provider that is down for seconds", () => {
  it.each(["refuse", "503"] as const)("costs no line: %s", async (outage) => {
    bench.workspace.write("in.jsonl", questionLines(300));
    bench.provider.change({ latency: { ttftMedianMs: 40 } });
    const impatient = {
      ...sourceEnv(bench.provider.baseUrl, { MAX_CONCURRENCY: "8", TIMEOUT_S: "2", TTFT_TIMEOUT_S: "1" }),
      LLM__BREAKER__COOLDOWN_S: "0.3",
      LLM__BREAKER__COOLDOWN_MAX_S: "1",
      // Shorter than the outage: calls give up waiting and their lines are put back.
      LLM__BACKPRESSURE__STALL_WINDOW_S: "2",
      LLM__RETRY__BACKOFF_BASE_S: "0.1",
      // Whoever gives up while a probe is out is told to come back when its lease has surely ended.
      PGW_LEASE_TTL_S: "3",
    };
    const run = bench.workspace.start(["batch", "in.jsonl", "-o", "out.jsonl", "--json"], impatient);
    await bench.arrived(80);
    await bench.provider.setOutage(outage);
    await sleep(5_000);
    await bench.provider.setOutage("off");
    const ended = await run.finished;
    expect(ended.code, ended.stderr).toBe(0);
    const summary = summaryOf(ended);
    expect(summary).toMatchObject({ done: 300, failed: 0, stop: null });
    expect(summary.requeues).toBeGreaterThan(0);
    bench.expectAllAnswered(300);
    const { sends, openAttempts } = await readRecords(bench.workspace.path("polygateway.db"));
    expect(openAttempts).toBe(0);
    // A refused connection is a send that never arrived.
    const { arrived } = bench.provider.stats();
    if (outage === "503") expect(sends.length).toBe(arrived);
    else expect(sends.length).toBeGreaterThan(arrived);
    const books = await bench.run(["reconcile", "--out", "out.jsonl"]);
    expect(books, books.stderr).toMatchObject({ code: 0 });
  });
});
