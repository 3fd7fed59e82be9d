// Everything a contributor must keep green, in one command: `npm test`.
//   npm test                      all steps
//   npm test -- --quick           types, lint and tests, without coverage and package checks
//   npm test -- src/domain -t gcra   other arguments go to vitest (and imply --quick)
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const ARGS = process.argv.slice(2);
const VITEST_ARGS = ARGS.filter((arg) => arg !== "--quick");
const QUICK = ARGS.includes("--quick") || VITEST_ARGS.length > 0;

/** Spec 09 layer 6: percent of lines and of branches. */
const COVERAGE_GOALS = [
  { folder: "src", percent: 80 },
  { folder: "src/domain", percent: 95 },
  { folder: "src/governance", percent: 95 },
];
/** Loading the core must not load these: they are for the first request, a configuration file or the CLI. */
const NOT_IN_CORE = [
  "undici",
  "zod",
  "commander",
  "better-sqlite3",
  "ioredis",
  "pg",
  "lru-cache",
  "hono",
  "pino",
  "jsonrepair",
  "@cfworker",
  "yaml",
];
const REQUIRED_IN_PACKAGE = [
  "dist/index.js",
  "dist/index.d.ts",
  "dist/cli.js",
  "dist/batch-worker.js",
  "dist/sqlite-worker.js",
];
const SHIPPED = /^(dist\/|assets\/|README[^/]*\.md$|CHANGELOG\.md$|LICENSE$|package\.json$)/;

const temp = mkdtempSync(join(tmpdir(), "polygateway-test-"));
const totals = { passed: 0, failed: 0, skipped: 0, leaks: [] };

// ── Running things ──────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * What the tests put in every place of a secret begins like this (test/support-hostile/canary.ts). None of it may stand in
 * the run's output or in a file that it leaves behind.
 */
const CANARY = /sk-canary-(?:[a-z0-9]+-)?[0-9a-f]{8}/i;

function leaksIn(place, text) {
  const found = CANARY.exec(text)?.[0];
  // A test's own title may name the kind of secret, never its value.
  if (found !== undefined) totals.leaks.push(`${place}: ${found.slice(0, 14)}…`);
}

function searchFolder(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath ?? entry.path, entry.name);
    leaksIn(path, readFileSync(path, "latin1"));
  }
}

/** Runs a Node program in the repository. `show`: its output is the user's; else it is kept and shown on failure. */
function node(args, { show = false, input, env = process.env } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
      cwd: ROOT,
      env,
      stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    });
    let output = "";
    child.stdout.on("data", (chunk) => {
      output += chunk;
      if (show) process.stdout.write(chunk);
    });
    child.stderr.on("data", (chunk) => {
      output += chunk;
      if (show) process.stderr.write(chunk);
    });
    child.stdin?.end(input);
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ ok: code === 0, output, ended: signal ?? `exit code ${code}` }));
  });
}

/** The program behind a package's command, run without a shell. */
function tool(name, command = name) {
  const folder = join(ROOT, "node_modules", ...name.split("/"));
  const { bin } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return join(folder, typeof bin === "string" ? bin : bin[command]);
}

async function mustPass(args, options) {
  const { ok, output, ended } = await node(args, options);
  if (!ok) throw new Error(output.trim() || `it ended with ${ended}`);
  return output;
}

// ── The steps ───────────────────────────────────────────────────────────────────────────────────────────────────────

async function types() {
  await mustPass([tool("typescript", "tsc"), "--noEmit", "--pretty", "false"]);
}

async function lint() {
  await mustPass([tool("@biomejs/biome", "biome"), "check", "."]);
}

async function tests() {
  const report = join(temp, "vitest.json");
  const args = [tool("vitest"), "run", "--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  if (!QUICK) args.push("--coverage");
  // Temporary files of the tests go where they can be searched.
  const places = join(temp, "files");
  mkdirSync(places);
  const env = { ...process.env, TMPDIR: places, ...(process.stdout.isTTY ? { FORCE_COLOR: "1" } : {}) };
  const { ok, ended, output } = await node([...args, ...VITEST_ARGS], { show: true, env });
  leaksIn("output of the tests", output);
  searchFolder(places);
  let counts;
  try {
    counts = JSON.parse(readFileSync(report, "utf8"));
  } catch {
    throw new Error(`vitest wrote no report (it ended with ${ended}); its output is above`);
  }
  totals.passed += counts.numPassedTests;
  totals.failed += counts.numFailedTests;
  totals.skipped += counts.numPendingTests + counts.numTodoTests;
  if (totals.leaks.length > 0) throw new Error(`a secret leaked:\n  ${totals.leaks.join("\n  ")}`);
  if (ok) return;
  const files = counts.testResults.filter((result) => result.status === "failed");
  const names = files.map((result) => `  ${relative(ROOT, result.name)}`);
  throw new Error(["failing test files (details above):", ...names].join("\n"));
}

function percentIn(summary, folder, metric) {
  let covered = 0;
  let total = 0;
  for (const [file, metrics] of Object.entries(summary)) {
    if (!relative(ROOT, file).split(sep).join("/").startsWith(`${folder}/`)) continue;
    covered += metrics[metric].covered;
    total += metrics[metric].total;
  }
  return total === 0 ? undefined : (100 * covered) / total;
}

async function coverage() {
  const summary = JSON.parse(readFileSync(join(ROOT, "coverage", "coverage-summary.json"), "utf8"));
  delete summary.total;
  const missed = [];
  for (const { folder, percent } of COVERAGE_GOALS) {
    for (const metric of ["lines", "branches"]) {
      const reached = percentIn(summary, folder, metric);
      if (reached === undefined) missed.push(`${folder}: no coverage was measured`);
      else if (reached < percent)
        missed.push(`${folder}: ${reached.toFixed(2)} % of ${metric}, at least ${percent} % needed`);
    }
  }
  if (missed.length > 0) throw new Error(missed.join("\n"));
}

async function packageLint() {
  await mustPass([tool("publint"), "--strict"]);
}

async function packageContent() {
  const npm = process.env.npm_execpath;
  if (!npm?.endsWith(".js")) throw new Error("run this through npm: npm test");
  const listing = JSON.parse(
    await mustPass([npm, "pack", "--dry-run", "--json", "--ignore-scripts", "--loglevel=error"]),
  );
  const files = (Array.isArray(listing) ? listing[0] : Object.values(listing)[0]).files.map((file) => file.path);
  const problems = [
    ...REQUIRED_IN_PACKAGE.filter((name) => !files.includes(name)).map((name) => `missing: ${name}`),
    ...files.filter((name) => !SHIPPED.test(name)).map((name) => `does not belong in the package: ${name}`),
  ];
  if (problems.length > 0) throw new Error(problems.join("\n"));
}

/** Prints each module that is resolved, whoever imports it. */
const TRACE_MODULES = `import { createRequire, register } from "node:module";
const hook = "import { writeSync } from 'node:fs'; export async function resolve(s, c, next) { const r = await next(s, c); writeSync(2, 'module ' + r.url + '\\\\n'); return r; }";
register("data:text/javascript," + encodeURIComponent(hook));
await import("polygateway");
for (const file of Object.keys(createRequire(import.meta.url).cache)) console.error("module " + file);
`;

async function coreImports() {
  const output = await mustPass(["--input-type=module", "-"], { input: TRACE_MODULES });
  const loaded = output.split("\n").filter((line) => line.startsWith("module "));
  if (!loaded.some((line) => line.endsWith("/dist/index.js")))
    throw new Error(`dist/index.js was not seen:\n${output}`);
  const heavy = NOT_IN_CORE.filter((name) => loaded.some((line) => line.includes(`/node_modules/${name}/`)));
  if (heavy.length > 0) throw new Error(`importing "polygateway" loads ${heavy.join(", ")}`);
}

async function subpaths() {
  const { name, exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const paths = Object.keys(exports).filter((path) => !path.endsWith(".json"));
  const lines = paths.map((path) => {
    const specifier = JSON.stringify(join(name, path).split(sep).join("/"));
    return `if (Object.keys(await import(${specifier})).length === 0) throw new Error(${specifier} + " exports nothing");`;
  });
  await mustPass(["--input-type=module", "-"], { input: lines.join("\n") });
}

// ── The run ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const STEPS = [
  ["types (with examples/ and test/)", types],
  ["lint and format", lint],
  ["tests", tests],
  ...(QUICK
    ? []
    : [
        ["coverage", coverage],
        ["package: publint", packageLint],
        ["package: content", packageContent],
        ["package: the core loads nothing heavy", coreImports],
        ["package: every subpath imports", subpaths],
      ]),
];

async function runSteps() {
  for (const [name, step] of STEPS) {
    const startedAt = performance.now();
    let failure;
    try {
      await step();
    } catch (error) {
      failure = error;
    }
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    console.log(`${failure ? "✗" : "✓"} ${name} (${seconds} s)`);
    if (failure) {
      totals.failed += 1;
      console.log(`\n${failure.message}\n`);
      return;
    }
    totals.passed += 1;
  }
}

try {
  await runSteps();
} finally {
  rmSync(temp, { recursive: true, force: true });
}
if (totals.skipped > 0) console.log(`${totals.skipped} tests were skipped; the reasons are printed above.`);
console.log(`${totals.passed} passed, ${totals.failed} failed`);
process.exitCode = totals.failed > 0 ? 1 : 0;
