import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { servicesAreRequired } from "./binaries.js";
import { endProcess } from "./processes.js";

/** Services that one run of the tests shares: who needs one first starts it, the end of the run ends it. */
const FOLDER = "PGW_TEST_RUN";
const OWNER = "PGW_TEST_OWNER";

/** What is left behind: ended and removed when the run is over. */
export interface Traces {
  readonly pids: readonly number[];
  readonly folders: readonly string[];
}

type Outcome<T> = { readonly started: T } | { readonly failed: string };

/** Vitest's global setup: opens the run, and closes it with everything that was started. */
export default function openRun(): () => Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "pgw-services-"));
  process.env[FOLDER] = folder;
  process.env[OWNER] = String(process.pid);
  return async () => {
    for (const name of readdirSync(folder).filter((file) => file.endsWith(".json"))) {
      const outcome = readOutcome<Traces>(join(folder, name));
      if (!("started" in outcome)) continue;
      for (const pid of outcome.started.pids) await endProcess(pid, "SIGTERM");
      for (const left of outcome.started.folders) rmSync(left, { recursive: true, force: true });
    }
    rmSync(folder, { recursive: true, force: true });
  };
}

function readOutcome<T>(file: string): Outcome<T> {
  return JSON.parse(readFileSync(file, "utf8")) as Outcome<T>;
}

/**
 * The run's service of this name; `start` is called by the first who asks, in whatever process, with the process that the
 * service must not outlive. What it gives is plain data. Where it can't be started: an error where services are required, else null with the
 * reason printed, for tests that then skip.
 */
export async function sharedService<T extends Traces>(
  name: string,
  start: (owner: number) => Promise<T>,
): Promise<T | null> {
  const folder = process.env[FOLDER];
  if (folder === undefined)
    throw new Error("services are for tests that vitest runs with test/services/run.ts as setup");
  const file = join(folder, `${name}.json`);
  if (isFirst(join(folder, `${name}.lock`))) writeWhole(file, await outcomeOf(start));
  // Longer than any start; a first one that died is noticed by it.
  for (let waitedMs = 0; !existsSync(file); waitedMs += 20) {
    if (waitedMs > 600_000) throw new Error(`${name}: who was to start it has not done so`);
    await sleep(20);
  }
  const outcome = readOutcome<T>(file);
  if ("started" in outcome) return outcome.started;
  if (servicesAreRequired()) throw new Error(`${name} can't be started: ${outcome.failed}`);
  console.warn(`skipped: tests on ${name}, because it can't be started: ${outcome.failed}`);
  return null;
}

function isFirst(lock: string): boolean {
  try {
    mkdirSync(lock);
    return true;
  } catch {
    return false;
  }
}

async function outcomeOf<T>(start: (owner: number) => Promise<T>): Promise<Outcome<T>> {
  try {
    return { started: await start(Number(process.env[OWNER])) };
  } catch (error) {
    return { failed: error instanceof Error ? error.message : String(error) };
  }
}

/** Nobody reads half a file. */
function writeWhole(file: string, outcome: unknown): void {
  writeFileSync(`${file}.new`, JSON.stringify(outcome));
  renameSync(`${file}.new`, file);
}
