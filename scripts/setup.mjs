// Brings a checkout to the point where everything runs: dependencies installed, dist/ built.
// Plain Node without dependencies, since it runs before anything is installed. Quick when nothing is to be done.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const STAMP = join(ROOT, "node_modules", ".polygateway-setup.json");
const LOCK = join(ROOT, ".polygateway", "setup.lock");
const BUILT = ["dist/index.js", "dist/sqlite.js", "dist/testing.js", "dist/cli.js", "dist/sim.js", "dist/fleet.js"];
/** Longer than any set-up: the pid in the lock then belongs to something else by now. */
const LOCK_MAX_AGE_MS = 30 * 60_000;
const IN_CI = Boolean(process.env.CI) && process.env.CI !== "false";

const PLAIN_OUTPUT = { ...process.env, NO_COLOR: "1", FORCE_COLOR: undefined };

class SetupError extends Error {}

function say(text) {
  process.stderr.write(`${text}\n`);
}

function checkNode() {
  const [major, minor] = process.versions.node.split(".").map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  throw new SetupError(
    `PolyGateway needs Node.js 20.19 or newer; this is ${process.versions.node}. Install a current version from https://nodejs.org and run the command again.`,
  );
}

// ── What state is the checkout in? ──────────────────────────────────────────────────────────────────────────────────

function readStamp() {
  try {
    return JSON.parse(readFileSync(STAMP, "utf8"));
  } catch {
    return {};
  }
}

function writeStamp(stamp) {
  writeFileSync(STAMP, `${JSON.stringify(stamp)}\n`);
}

function filesUnder(folder) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
}

/** Native modules are made for one Node ABI and platform. */
const PLATFORM = `${process.platform}-${process.arch}-${process.versions.modules}`;

function lockHash() {
  return createHash("sha256")
    .update(readFileSync(join(ROOT, "package-lock.json")))
    .digest("hex");
}

function buildKey() {
  const inputs = [
    // The programs of the fleet lie with the tests, whose servers they use.
    ...["src", "test/fleet", "test/services"]
      .flatMap((folder) => filesUnder(join(ROOT, folder)))
      .filter((file) => !/\.test\.[jt]s$/.test(file)),
    ...filesUnder(join(ROOT, "assets")),
    ...["tsdown.config.ts", "tsconfig.json", "package.json", "package-lock.json"].map((name) => join(ROOT, name)),
  ].sort();
  const hash = createHash("sha256");
  for (const file of inputs)
    hash
      .update(`${relative(ROOT, file)}\0`)
      .update(readFileSync(file))
      .update("\0");
  return hash.digest("hex");
}

/** Someone may have run `npm install` or `npm ci` by hand: npm's own record of node_modules tells. */
function installedMatchesLock() {
  try {
    const wanted = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")).packages;
    const found = JSON.parse(readFileSync(join(ROOT, "node_modules", ".package-lock.json"), "utf8")).packages;
    return Object.entries(wanted).every(
      ([path, entry]) => path === "" || entry.optional || entry.peer || found[path]?.version === entry.version,
    );
  } catch {
    return false;
  }
}

function isInstalled({ platform = PLATFORM, lock }) {
  if (!existsSync(join(ROOT, "node_modules")) || platform !== PLATFORM) return false;
  return lock === lockHash() || installedMatchesLock();
}

/** Size and time of what was built: a build made by hand, or a deleted file, is noticed. */
function builtFiles() {
  return BUILT.map((name) => {
    const info = statSync(join(ROOT, name), { throwIfNoEntry: false });
    return info ? `${info.size}:${Math.round(info.mtimeMs)}` : "missing";
  }).join(" ");
}

function isBuilt(stamp, key) {
  const built = builtFiles();
  return stamp.build === key && stamp.built === built && !built.includes("missing");
}

// ── Only one at a time ──────────────────────────────────────────────────────────────────────────────────────────────

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

function lockOwner() {
  try {
    return Number(readFileSync(LOCK, "utf8"));
  } catch {
    return undefined;
  }
}

function lockAgeMs() {
  const info = statSync(LOCK, { throwIfNoEntry: false });
  return info ? Date.now() - info.mtimeMs : 0;
}

/** A lock appears complete or not at all: written aside, then linked into place. */
function takeLock() {
  const mine = `${LOCK}.${process.pid}`;
  writeFileSync(mine, String(process.pid));
  try {
    linkSync(mine, LOCK);
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  } finally {
    unlinkSync(mine);
  }
}

/** Moves a dead process's lock away; puts it back when another waiter had already replaced it. */
function removeStaleLock(deadPid) {
  const aside = `${LOCK}.stale.${process.pid}`;
  try {
    renameSync(LOCK, aside);
    if (Number(readFileSync(aside, "utf8")) !== deadPid) linkSync(aside, LOCK);
  } catch (error) {
    if (error.code !== "ENOENT" && error.code !== "EEXIST") throw error;
  } finally {
    rmSync(aside, { force: true });
  }
}

async function withLock(work) {
  mkdirSync(dirname(LOCK), { recursive: true });
  let told = false;
  while (!takeLock()) {
    const owner = lockOwner();
    if (owner !== undefined && (!isAlive(owner) || lockAgeMs() > LOCK_MAX_AGE_MS)) {
      removeStaleLock(owner);
      continue;
    }
    if (!told) say(`Another set-up (process ${owner ?? "?"}) is running here; waiting for it.`);
    told = true;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  try {
    return await work();
  } finally {
    rmSync(LOCK, { force: true });
  }
}

// ── The two steps ───────────────────────────────────────────────────────────────────────────────────────────────────

/** Runs a command quietly; its output matters only when it fails. */
function run(command, args) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: ROOT, stdio: ["ignore", "pipe", "pipe"], env: PLAIN_OUTPUT });
    let output = "";
    child.stdout.on("data", (chunk) => {
      output += chunk;
    });
    child.stderr.on("data", (chunk) => {
      output += chunk;
    });
    child.on("error", (error) => resolve({ ok: false, output: `${output}${error.message}` }));
    child.on("close", (code) => resolve({ ok: code === 0, output }));
  });
}

function npm(args) {
  const cli = process.env.npm_execpath;
  if (cli?.endsWith("npm-cli.js")) return run(process.execPath, [cli, ...args]);
  return process.platform === "win32" ? run("cmd", ["/c", "npm", ...args]) : run("npm", args);
}

function lastLines(text, count = 25) {
  const plain = stripVTControlCharacters(text);
  return plain.trimEnd().split("\n").slice(-count).join("\n");
}

/** npm names the cause first and then prints its whole usage. */
function npmErrors(output) {
  const [cause] = output.split(/^npm error Usage:/m);
  return cause.trim().split("\n").slice(0, 15).join("\n");
}

/** Can SQLite telemetry be written here: Node's own driver, or the compiled optional one? */
function sqliteWorks() {
  const probe = "try { require('node:sqlite') } catch { new (require('better-sqlite3'))(':memory:').close() }";
  return spawnSync(process.execPath, ["-e", probe], { cwd: ROOT, stdio: "ignore" }).status === 0;
}

const NO_SQLITE =
  "better-sqlite3 could not be built here (it needs a C++ compiler, make and Python when no prebuilt file fits), so telemetry falls back to a JSONL file. Install them and run `npm rebuild better-sqlite3` to get SQLite.";

async function install() {
  say("Installing dependencies (npm ci) …");
  const flags = ["--include=dev", "--no-audit", "--no-fund"];
  let result = await npm(["ci", ...flags]);
  if (!result.ok && !IN_CI) {
    const first = result;
    say("npm ci failed; trying once more without install scripts …");
    result = await npm(["ci", "--ignore-scripts", ...flags]);
    if (!result.ok) result = first;
  }
  if (!result.ok) {
    throw new SetupError(
      `npm ci failed:\n${npmErrors(result.output)}\n\nCheck the network connection (or the registry in \`npm config get registry\`) and run the command again.`,
    );
  }
  if (sqliteWorks()) return;
  if (IN_CI) throw new SetupError(`SQLite is not available, and CI must test it. ${NO_SQLITE}`);
  say(NO_SQLITE);
}

async function build() {
  say("Building dist/ …");
  const manifest = JSON.parse(readFileSync(join(ROOT, "node_modules", "tsdown", "package.json"), "utf8"));
  const bin = typeof manifest.bin === "string" ? manifest.bin : manifest.bin.tsdown;
  const result = await run(process.execPath, [join(ROOT, "node_modules", "tsdown", bin)]);
  if (!result.ok) throw new SetupError(`The build failed:\n${lastLines(result.output, 40)}`);
  const missing = BUILT.filter((name) => !existsSync(join(ROOT, name)));
  if (missing.length > 0)
    throw new SetupError(`The build left out ${missing.join(", ")}:\n${lastLines(result.output)}`);
}

async function bringUp() {
  if (!isInstalled(readStamp())) {
    const startedAt = performance.now();
    await install();
    say(`Installed in ${Math.round((performance.now() - startedAt) / 1000)} s.`);
  }
  const installed = { platform: PLATFORM, lock: lockHash() };
  writeStamp({ ...readStamp(), ...installed });
  const key = buildKey();
  if (isBuilt(readStamp(), key)) return;
  // No stamp while dist/ is in pieces: a killed build is repeated.
  writeStamp(installed);
  const startedAt = performance.now();
  await build();
  writeStamp({ ...installed, build: key, built: builtFiles() });
  say(`Built in ${((performance.now() - startedAt) / 1000).toFixed(1)} s.`);
}

function isReady() {
  const stamp = readStamp();
  return stamp.platform === PLATFORM && stamp.lock === lockHash() && isBuilt(stamp, buildKey());
}

try {
  checkNode();
  if (!isReady()) await withLock(bringUp);
} catch (error) {
  say(error instanceof SetupError ? error.message : `Set-up failed: ${error.stack ?? error}`);
  process.exitCode = 1;
}
