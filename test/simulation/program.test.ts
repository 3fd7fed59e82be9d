import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const PROGRAM = fileURLToPath(new URL("../../dist/sim.js", import.meta.url));
const simulate = (...args: string[]) => spawnSync(process.execPath, [PROGRAM, ...args], { encoding: "utf8" });

test("a mistaken flag ends with what is accepted", () => {
  const { status, stderr, stdout } = simulate("--scenario", "Q");
  expect(status).toBe(2);
  expect(stderr).toContain('There is no scenario "Q"; there are: A, ');
  expect(stderr).toContain("--help");
  expect(stdout).toBe("");
});

test("one bad seed is replayed with its trace and hash", () => {
  const { status, stdout, stderr } = simulate("--worst", "--seed", "3", "--trace", "--jobs", "1");
  expect(stderr).toContain("worst seed 3");
  expect(stdout).toMatch(/^hash worst gateway seed 3: [0-9a-f]{16}$/m);
  expect(stdout).toContain("every invariant held (2 runs).");
  expect(status).toBe(0);
});
