// Breaks the code on purpose and checks that the tests notice: `node scripts/mutate.mjs [--for 10m] [--only id,id]`.
// The mutants stand in test/mutants/mutants.json: one textual change each, and the tests that must then fail. Those with
// "seeds" instead of "tests" must break a promise of the simulated fleet within so many seeds (test/mutants/seeds.test.ts).
// Works in a temporary copy; the repository is only read. Ends with 1 when a mutant survives, no longer fits the code,
// or the unchanged code is red; what the time did not suffice for is listed, and is no failure.
// With --check nothing is run: it only tells which mutants no longer fit the code.
import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const COPIED = ["src", "test", "package.json", "tsconfig.json", "vitest.config.ts"];
const STALE_HINT = "A stale mutant no longer fits the code: adapt it in test/mutants/mutants.json.";
const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000 };
/** Plays fleets until a promise breaks; takes the number of seeds from the environment. */
const SEEDS_TEST = "test/mutants/seeds.test.ts";
/** A mutant may make a test wait for ever: that is noticed too. */
const HANGS_AFTER_MS = 120_000;

const { values: flags } = parseArgs({
  options: {
    for: { type: "string", default: "15m" },
    only: { type: "string" },
    check: { type: "boolean", default: false },
  },
});

function lengthMs(text) {
  const match = /^(\d+)([smh])$/.exec(text);
  if (match === null) throw new Error(`--for ${text}: give a length like 90s, 10m or 1h`);
  return Number(match[1]) * UNIT_MS[match[2]];
}

function chosenMutants() {
  const all = JSON.parse(readFileSync(join(ROOT, "test/mutants/mutants.json"), "utf8"));
  if (flags.only === undefined) return all;
  const wanted = flags.only.split(",");
  const unknown = wanted.filter((id) => !all.some((mutant) => mutant.id === id));
  if (unknown.length > 0) throw new Error(`--only ${unknown.join(",")}: no such mutant`);
  return all.filter((mutant) => wanted.includes(mutant.id));
}

/** Runs the tests in the copy; resolves with "green", "red" or "hung", and what was printed. */
function runTests(folder, tests, seeds) {
  return new Promise((resolve, reject) => {
    const vitest = join(ROOT, "node_modules/vitest/vitest.mjs");
    const child = spawn(process.execPath, [vitest, "run", "--bail=1", "--no-color", ...tests], {
      cwd: folder,
      env: { ...process.env, MUTANT_SEEDS: String(seeds) },
      stdio: ["ignore", "pipe", "pipe"],
      // A group of its own, so that its workers end with it.
      detached: true,
    });
    let output = "";
    let hung = false;
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk) => {
        output += chunk;
      });
    }
    const timer = setTimeout(() => {
      hung = true;
      process.kill(-child.pid, "SIGKILL");
    }, HANGS_AFTER_MS);
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      resolve({ ending: hung ? "hung" : code === 0 ? "green" : "red", output });
    });
  });
}

/** The mutated text; null when the place is not found exactly once. */
function mutate(original, { find, replace }) {
  const parts = original.split(find);
  return parts.length === 2 ? parts.join(replace) : null;
}

/** The mutants whose place in the code has changed or is ambiguous. */
function staleMutants(mutants) {
  return mutants.filter((mutant) => {
    const path = join(ROOT, mutant.file);
    return !existsSync(path) || mutate(readFileSync(path, "utf8"), mutant) === null;
  });
}

function check(mutants) {
  const stale = staleMutants(mutants);
  for (const mutant of stale) print("stale", mutant);
  console.log(`${mutants.length - stale.length} of ${mutants.length} mutants fit the code.`);
  if (stale.length > 0) console.error(STALE_HINT);
  return stale.length === 0 ? 0 : 1;
}

const testsOf = (mutant) => mutant.tests ?? [SEEDS_TEST];

/** Which seed showed it. */
function seedIn(output) {
  return /broken at seed (\d+)/.exec(output)?.[1];
}

async function judge(folder, mutant) {
  const path = join(folder, mutant.file);
  const original = readFileSync(path, "utf8");
  const mutated = mutate(original, mutant);
  if (mutated === null) return { verdict: "stale" };
  writeFileSync(path, mutated);
  try {
    const { ending, output } = await runTests(folder, testsOf(mutant), mutant.seeds ?? 0);
    return ending === "green" ? { verdict: "survived" } : { verdict: "caught", seed: seedIn(output) };
  } finally {
    writeFileSync(path, original);
  }
}

function print(verdict, { id, what }, seed) {
  console.log(`${verdict.padEnd(9)}${id.padEnd(34)}${what}${seed === undefined ? "" : ` (seed ${seed})`}`);
}

async function main() {
  const mutants = chosenMutants();
  if (flags.check) return check(mutants);
  const endsAt = Date.now() + lengthMs(flags.for);
  const folder = mkdtempSync(join(tmpdir(), "polygateway-mutants-"));
  const counts = { caught: 0, survived: 0, stale: 0, "not run": 0 };
  try {
    for (const name of COPIED) cpSync(join(ROOT, name), join(folder, name), { recursive: true });
    symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
    const tests = [...new Set(mutants.flatMap(testsOf))];
    const unchanged = await runTests(folder, tests, Math.max(...mutants.map(({ seeds }) => seeds ?? 0)));
    if (unchanged.ending !== "green") {
      console.error(unchanged.output.slice(-4_000));
      console.error("The unchanged code fails these tests already, so they would prove nothing: run `npm test` first.");
      return 1;
    }
    for (const mutant of mutants) {
      const { verdict, seed } = Date.now() < endsAt ? await judge(folder, mutant) : { verdict: "not run" };
      counts[verdict] += 1;
      print(verdict, mutant, seed);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  console.log(
    `\n${Object.entries(counts)
      .map(([verdict, count]) => `${count} ${verdict}`)
      .join(", ")}`,
  );
  if (counts.stale > 0) console.error(STALE_HINT);
  return counts.survived + counts.stale === 0 ? 0 : 1;
}

process.exitCode = await main();
