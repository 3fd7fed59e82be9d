import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../..");

interface Mutant {
  readonly id: string;
  readonly find: string;
  readonly replace: string;
  readonly tests?: readonly string[];
  readonly seeds?: number;
}

const MUTANTS: readonly Mutant[] = JSON.parse(readFileSync(join(ROOT, "test/mutants/mutants.json"), "utf8"));

test("every deliberate mutant fits the code exactly once", () => {
  const { status, stdout } = spawnSync(process.execPath, ["scripts/mutate.mjs", "--check"], {
    cwd: ROOT,
    encoding: "utf8",
  });
  expect(stdout).toBe(`${MUTANTS.length} of ${MUTANTS.length} mutants fit the code.\n`);
  expect(status).toBe(0);
});

test("every mutant has a name of its own and something that must notice it", () => {
  expect(new Set(MUTANTS.map(({ id }) => id)).size).toBe(MUTANTS.length);
  for (const { id, find, replace, tests, seeds } of MUTANTS) {
    expect(find, id).not.toBe(replace);
    expect((tests ?? []).length > 0, id).toBe(seeds === undefined);
    for (const file of tests ?? []) expect(existsSync(join(ROOT, file)), `${id}: ${file}`).toBe(true);
    // The promise is "within 200 seeds".
    expect(seeds ?? 0, id).toBeLessThanOrEqual(200);
  }
});

test("at least sixteen mutants are noticed by the simulated fleet", () => {
  expect(MUTANTS.filter(({ seeds }) => seeds !== undefined).length).toBeGreaterThanOrEqual(16);
});
