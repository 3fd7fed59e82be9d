import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
} from "node:fs";
import { hostname } from "node:os";
import { beforeEach, describe, expect, it } from "vitest";
import type { Finished } from "./cli-harness.js";
import { expectExit1, summaryOf, useProviderBench } from "./support-batch/provider-bench.js";
import { questionLine, questionLines } from "./support-batch/questions.js";
import { canMount, DEFINE_COMMAND, OWN_MOUNTS, runShell, userWithoutRights } from "./support-batch/shell.js";

/** What spec 08 says of the output of `batch`, case by case, with the built command. */

const bench = useProviderBench();

/** Exit 1, the reason, and nothing was sent. */
function expectRefused(run: Finished, ...words: (string | RegExp)[]): void {
  expectExit1(run, ...words);
  expect(bench.provider.stats().arrived).toBe(0);
}

describe("outputs that can't be written", () => {
  beforeEach(() => void bench.workspace.write("in.jsonl", questionLines(2)));

  const into = (path: string): Promise<Finished> => bench.run(["batch", "in.jsonl", "-o", path]);

  it("are refused before anything is sent: a folder, a missing folder, stdout, gzip", async () => {
    mkdirSync(bench.workspace.path("folder"));
    expectRefused(await into("folder"), /The output folder can't be written: it is a folder/);
    expectRefused(await into("no/such/folder/out.jsonl"), /no\/such\/folder\/out\.jsonl can't be written: ENOENT/);
    expectRefused(await into("-"), /must be a file/);
    expectRefused(await into("out.jsonl.gz"), /choose a name without \.gz/);
    expect(readdirSync(bench.workspace.folder).sort()).toEqual(["folder", "in.jsonl"]);
  });

  it.runIf(existsSync("/proc/self"))("are refused at once where no file can be made: /proc", async () => {
    expectRefused(await into("/proc/x"), /\/proc\/x/);
    expectRefused(await into("/proc/x/y"), /\/proc\/x\/y can't be written/);
    // Nor does the file for `status` hold up a run.
    bench.workspace.write("one.jsonl", questionLines(1));
    const env = { ...bench.env, TMPDIR: "/proc/x/y" };
    const run = await bench.workspace.run(["batch", "one.jsonl", "-o", "out.jsonl", "--json"], env);
    expect(run.code, run.stderr).toBe(0);
  });

  it.runIf(existsSync("/dev/stdout"))("may be standard output, and then it holds nothing else", async () => {
    const options = { folder: bench.workspace.folder, env: bench.env };
    const piped = await runShell("polygateway batch in.jsonl -o /dev/stdout | cat", options);
    expect(
      piped.stdout
        .trim()
        .split("\n")
        .map((line) => typeof JSON.parse(line).custom_id),
    ).toEqual(["string", "string"]);
    expect(piped.stderr).toMatch(/All lines are answered/);
    const file = await runShell("polygateway batch in.jsonl -o /dev/stdout > file.jsonl", options);
    expect(file.stderr).toMatch(/All lines are answered/);
    expect(readFileSync(bench.workspace.path("file.jsonl"), "utf8").trim().split("\n")).toHaveLength(2);
    const closed = await runShell("polygateway batch in.jsonl -o /dev/stdout | true", options);
    expect(closed.stderr).not.toMatch(/\n\s+at /);
  });

  const uid = userWithoutRights();
  it.runIf(uid !== null)("are refused before anything is sent: a read-only file, a read-only folder", async () => {
    bench.workspace.write("old.jsonl", "");
    chmodSync(bench.workspace.path("old.jsonl"), 0o444);
    mkdirSync(bench.workspace.path("closed"));
    chmodSync(bench.workspace.path("closed"), 0o555);
    chmodSync(bench.workspace.folder, 0o777);
    const options = { folder: bench.workspace.folder, env: bench.env, ...(uid == null ? {} : { uid }) };
    const file = await runShell("polygateway batch in.jsonl -o old.jsonl", options);
    expectRefused(file, /old\.jsonl can't be written: EACCES/, /Choose a file you may write to/);
    const folder = await runShell("polygateway batch in.jsonl -o closed/out.jsonl", options);
    expectRefused(folder, /closed\/out\.jsonl can't be written: EACCES/);
    expect(readdirSync(bench.workspace.path("closed"))).toEqual([]);
  });

  it("are refused before anything is sent: the input itself, under any name", async () => {
    symlinkSync("in.jsonl", bench.workspace.path("sym"));
    linkSync(bench.workspace.path("in.jsonl"), bench.workspace.path("hard"));
    for (const name of ["in.jsonl", "./in.jsonl", "sym", "hard"]) {
      expectRefused(await into(name), /Input and output are the same file/);
    }
    expect(readFileSync(bench.workspace.path("in.jsonl"), "utf8")).toBe(questionLines(2));
  });

  it("are refused when they are somebody else's", async () => {
    bench.workspace.write("notes.txt", "my notes");
    expectRefused(await into("notes.txt"), /has content already/);
    expect(readFileSync(bench.workspace.path("notes.txt"), "utf8")).toBe("my notes");
  });
});

describe("an output that somebody takes away while answers are written", () => {
  it("ends the run: no more is paid for a file that nobody will find", async () => {
    bench.workspace.write("in.jsonl", questionLines(200));
    bench.provider.change({ latency: { ttftMedianMs: 200 } });
    const run = bench.startBatch(["--json", "--concurrency", "2"]);
    await bench.arrived(6);
    renameSync(bench.workspace.path("out.jsonl"), bench.workspace.path("mine.jsonl"));
    const ended = await run.finished;
    expect(ended.code, ended.stderr).toBe(3);
    const { stop, done } = summaryOf(ended);
    expect(stop).toMatchObject({ kind: "write_failed" });
    expect(stop.reason).toMatch(/out\.jsonl was removed, moved or replaced during the run, and its answers with it/);
    expect(done).toBeLessThan(200);
  });
});

describe("a disk that fills up", () => {
  const NO_TELEMETRY = { PGW_TELEMETRY_BACKEND: "none" };

  it("ends the run with the reason and a whole last line; with room again the same command does the rest", async () => {
    bench.workspace.write("in.jsonl", questionLines(200));
    const folder = bench.workspace.folder;
    // Kilobytes a file may have; the 200 lines need about 90.
    const limited = "ulimit -f 16; polygateway batch in.jsonl -o out.jsonl";
    const run = await runShell(limited, { folder, env: { ...bench.env, ...NO_TELEMETRY } });
    expect(run.code, run.stderr).toBe(3);
    expect(run.stdout).toMatch(/The output can't be written: EFBIG.*Run the same command again/);
    expect(run.stdout).toMatch(/answers? could not be written: paid again by the next run/);
    const written = bench.out().length;
    expect(written).toBeGreaterThan(10);
    // No new line started after the failure: at most those in flight were paid for and lost.
    expect(bench.provider.stats().arrived - written).toBeLessThanOrEqual(8);
    expect(existsSync(bench.workspace.path("out.jsonl.lock"))).toBe(false);
    const rest = await bench.batch(["--json"]);
    expect(summaryOf(rest)).toMatchObject({ exitCode: 0, skipped: written, done: 200 - written });
    bench.expectAllAnswered(200);
  });

  it.runIf(canMount())("knows afterwards exactly which answers are paid twice", async () => {
    bench.workspace.write("in.jsonl", questionLines(200));
    bench.workspace.write(
      "fill.sh",
      `${DEFINE_COMMAND}
mkdir disk && mount -t tmpfs -o size=64k none disk || exit 9
polygateway batch in.jsonl -o disk/out.jsonl --json > first.json; echo $? > first.code
mount -o remount,size=4m disk
polygateway batch in.jsonl -o disk/out.jsonl --json > second.json; echo $? > second.code
cp disk/out.jsonl out.jsonl
`,
    );
    const shell = await runShell(`${OWN_MOUNTS} bash fill.sh`, { folder: bench.workspace.folder, env: bench.env });
    expect(shell.code, shell.stderr).toBe(0);
    const read = (name: string): string => readFileSync(bench.workspace.path(name), "utf8").trim();
    expect([read("first.code"), read("second.code")], shell.stderr).toEqual(["3", "0"]);
    const first = JSON.parse(read("first.json"));
    const second = JSON.parse(read("second.json"));
    expect(first.stop).toMatchObject({ kind: "write_failed", reason: expect.stringContaining("ENOSPC") });
    expect(first.answersNotWritten).toBeGreaterThan(0);
    expect(second).toMatchObject({ skipped: first.done, answersPaidTwice: first.answersNotWritten });
    bench.expectAllAnswered(200);
    expect(bench.provider.stats().arrived).toBe(200 + first.answersNotWritten);
  });

  it.runIf(existsSync("/dev/full"))("says that a device keeps nothing, and gives the reason too", async () => {
    bench.workspace.write("in.jsonl", questionLines(50));
    const run = await bench.run(["batch", "in.jsonl", "-o", "/dev/full", "--json"]);
    expect(run.code, run.stderr).toBe(3);
    expect(run.stderr).toContain("is a device");
    expect(summaryOf(run)).toMatchObject({ done: 0, stop: { kind: "write_failed" } });
    expect(bench.provider.stats().arrived).toBeLessThanOrEqual(8);
  });
});

describe("an output that is already in use", () => {
  const SLOW = { ttftMedianMs: 600_000 };

  it("is refused while the other run is on, which goes on undisturbed", async () => {
    bench.workspace.write("in.jsonl", questionLines(30));
    bench.provider.change({ latency: SLOW });
    const first = bench.startBatch();
    await bench.arrived(4);
    symlinkSync("out.jsonl", bench.workspace.path("other-name.jsonl"));
    for (const name of ["out.jsonl", "other-name.jsonl"]) {
      const second = await bench.run(["batch", "in.jsonl", "-o", name]);
      expectExit1(second, `in use by process ${first.child.pid} on ${hostname()}`);
    }
    expect(bench.provider.stats().arrived).toBe(4);
    await bench.releaseAnswers();
    expect(await first.finished).toMatchObject({ code: 0 });
    bench.expectAllAnswered(30);
    expect(existsSync(bench.workspace.path("out.jsonl.lock"))).toBe(false);
  });

  it("is taken over when its process is gone, by exactly one of two", async () => {
    bench.workspace.write("in.jsonl", questionLines(20));
    bench.provider.change({ latency: SLOW });
    const killed = bench.startBatch();
    await bench.arrived(4);
    killed.child.kill("SIGKILL");
    await killed.finished;
    const lock = readFileSync(bench.workspace.path("out.jsonl.lock"), "utf8");
    expect(JSON.parse(lock)).toMatchObject({ pid: killed.child.pid });
    const both = [bench.startBatch(), bench.startBatch()].map(({ finished }) => finished);
    // Whoever comes second is refused while the first one waits for its answers.
    expectExit1(await Promise.race(both), "in use by");
    await bench.releaseAnswers();
    const ends = await Promise.all(both);
    expect(ends.map(({ code }) => code).sort()).toEqual([0, 1]);
    bench.expectAllAnswered(20);
    expect(readdirSync(bench.workspace.folder).filter((name) => name.includes("lock"))).toEqual([]);
  });

  it("is not taken over from another host, nor from a pid that now belongs to a living process", async () => {
    bench.workspace.write("in.jsonl", questionLines(1));
    const owner = { pid: process.pid, processStart: null, startedAt: "2026-01-01T00:00:00Z", nonce: "n" };
    for (const host of [hostname(), "elsewhere"]) {
      bench.workspace.write("out.jsonl.lock", JSON.stringify({ host, ...owner }));
      expectRefused(await bench.batch(), `in use by process ${process.pid} on ${host}`, /delete .*out\.jsonl\.lock/);
    }
    // The same pid, but started at another time: a later process that has nothing to do with it.
    const reused = { host: hostname(), ...owner, processStart: "boot:1" };
    bench.workspace.write("out.jsonl.lock", JSON.stringify(reused));
    const run = await bench.batch();
    if (process.platform === "linux") expect(run.code, run.stderr).toBe(0);
  });

  it("is refused for another input, and left as it was", async () => {
    bench.workspace.write("in.jsonl", questionLines(3));
    expect(await bench.batch()).toMatchObject({ code: 0 });
    const before = readFileSync(bench.workspace.path("out.jsonl"));
    bench.workspace.write("other.jsonl", questionLine(7));
    const other = await bench.run(["batch", "other.jsonl", "-o", "out.jsonl"]);
    expect(other.code).toBe(1);
    expect(other.stderr).toMatch(/out\.jsonl belongs to .*in\.jsonl as it was/);
    expect(readFileSync(bench.workspace.path("out.jsonl"))).toEqual(before);
    // Moved and touched, it is still the same input.
    bench.workspace.write("moved.jsonl", questionLines(3));
    expect(await bench.run(["batch", "moved.jsonl", "-o", "out.jsonl"])).toMatchObject({ code: 0 });
    expect(bench.provider.stats().arrived).toBe(3);
  });
});
