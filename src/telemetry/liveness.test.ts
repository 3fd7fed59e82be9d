import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { createLiveness, type ProcessState, readProcessState } from "./liveness.js";
import { createWorkerId, parseWorkerId } from "./worker-id.js";

const NOW = 1_764_000_000_000;
const HOUR = 3_600_000;

function judge(state: ProcessState) {
  return createLiveness({ nowMs: NOW, staleAfterMs: HOUR, host: "here", processState: () => state });
}

test("on this host the process decides: gone, or started after the row was written", () => {
  expect(judge({ kind: "gone" })("here:5:x", NOW)).toBe(true);
  expect(judge({ kind: "running", startedAtMs: NOW - 10_000 })("here:5:x", NOW)).toBe(false);
  expect(judge({ kind: "running", startedAtMs: NOW - 10_000 })("here:5:x", NOW - 60_000)).toBe(true);
  expect(judge({ kind: "running", startedAtMs: null })("here:5:x", NOW - 9 * HOUR)).toBe(false);
});

test("on other hosts, and for names nobody can read, the age of the row decides", () => {
  const isDead = judge({ kind: "gone" });
  expect(isDead("there:5:x", NOW - HOUR)).toBe(false);
  expect(isDead("there:5:x", NOW - HOUR - 1)).toBe(true);
  expect(isDead("nonsense", NOW)).toBe(false);
  expect(isDead("", null)).toBe(true);
});

test("a real process is seen with its start, and is gone once it ended", async () => {
  const before = Date.now();
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
  await once(child, "spawn");
  const state = readProcessState(child.pid ?? 0);
  expect(state.kind).toBe("running");
  const startedAtMs = state.kind === "running" ? state.startedAtMs : null;
  if (startedAtMs !== null) expect(Math.abs(startedAtMs - before)).toBeLessThan(10_000);
  child.kill("SIGKILL");
  await once(child, "exit");
  expect(readProcessState(child.pid ?? 0)).toEqual({ kind: "gone" });
});

test("a worker's name is host, pid and a random part, and can be read back", () => {
  const worker = createWorkerId({ random: () => 0.5 });
  expect(parseWorkerId(worker)?.pid).toBe(process.pid);
  expect(parseWorkerId("fe80::1:42:abc")).toEqual({ host: "fe80::1", pid: 42 });
  expect(parseWorkerId("host")).toBeNull();
});

test.runIf(process.platform === "linux")("a process that ended but was not waited for is gone", async () => {
  // The child ends when `sleep` has long taken the shell's place; it never waits for a child, which a shell might.
  const parent = spawn("sh", ["-c", "sleep 0.5 & echo $!; exec sleep 60"], { stdio: ["ignore", "pipe", "ignore"] });
  try {
    const [output] = await once(parent.stdout, "data");
    const pid = Number(String(output).trim());
    const isZombie = () => / Z /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
    while (!isZombie()) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(readProcessState(pid)).toEqual({ kind: "gone" });
  } finally {
    parent.kill("SIGKILL");
  }
});
