import { rename, rm, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { SourceSnapshot } from "../domain/tick.js";
import { GovernanceBackendError } from "../errors.js";
import type { CancelTimer, Runtime } from "../ports/runtime.js";
import { makeOwnFolder, refuseForeignFolder } from "./own-folder.js";
import { defaultStatusFolder, type StatusFile, type StatusSnapshot, statusFileName } from "./status-file.js";

export interface StatusWriterOptions {
  readonly folder: string;
  readonly scope: string;
  readonly worker: string;
  readonly limits: StatusFile["limits"];
  readonly global: StatusFile["global"];
  readonly runtime: Runtime;
  /** Masks every known secret in a text. */
  readonly redact: (text: string) => string;
  /** false: what the other side said stays out, only its code is told. */
  readonly keepsTexts: boolean;
  readonly snapshot: () => StatusSnapshot | Promise<StatusSnapshot>;
}

/** Told when the first call begins and the last one ends; everything else happens on a timer, off the call path. */
export interface StatusWriter {
  enter(): void;
  leave(): void;
  /** Takes the file away. */
  close(): Promise<void>;
}

const EVERY_MS = 1_000;
/** What is over sooner leaves no file. */
const FIRST_MS = 100;

/**
 * Keeps the file while calls are under way, once a second. An idle process writes once more and then sets no timer, so
 * that it can end; one that ends without `close()` leaves a file that readers recognise by its dead process.
 */
export function createStatusWriter(options: StatusWriterOptions): StatusWriter {
  const { runtime, folder } = options;
  const path = join(folder, statusFileName(options.scope, options.worker));
  const startedAtMs = runtime.wallNow();
  let users = 0;
  let cancel: CancelTimer | null = null;
  let isAsking = false;
  let filing: Promise<void> | null = null;
  let isClosed = false;
  let hasFailed = false;
  let last: StatusSnapshot | null = null;

  /** While the store that others share doesn't answer: what was known of it, said to be old. */
  async function snapshotOrLast(): Promise<StatusSnapshot> {
    try {
      last = await options.snapshot();
      return last;
    } catch (error) {
      if (last === null || !GovernanceBackendError.isInstance(error)) throw error;
      return { ...last, backend: { ...last.backend, ok: false } };
    }
  }

  /** A store that hangs must not hold up the end: only the file itself is waited for. */
  async function write(): Promise<void> {
    isAsking = true;
    try {
      const idle = users === 0;
      const snapshot = await snapshotOrLast();
      if (isClosed) return;
      filing = replaceFile(folder, path, statusOf(options, snapshot, startedAtMs, idle));
      await filing;
    } catch (error) {
      failed(error);
    } finally {
      isAsking = false;
      filing = null;
    }
  }

  /** Said once: state that can't be shown must never be in anybody's way. */
  function failed(error: unknown): void {
    if (hasFailed) return;
    hasFailed = true;
    // Where nobody asked for it, nobody misses it.
    const level = folder === defaultStatusFolder() ? "info" : "warn";
    const why = error instanceof Error ? error.message : String(error);
    runtime.log(level, `the live state of scope ${options.scope} can't be written to ${folder}: ${why}`);
  }

  function due(): void {
    cancel = null;
    // A slow disk, or a store that does not answer: the file is older for once.
    const isSkipped = isAsking;
    if (!isSkipped) void write();
    if (users > 0 || isSkipped) arm(EVERY_MS);
  }

  function arm(delayMs: number): void {
    if (cancel === null && !isClosed) cancel = runtime.setTimer(delayMs, due);
  }

  return {
    enter() {
      users += 1;
      arm(FIRST_MS);
    },
    leave() {
      users -= 1;
    },
    async close() {
      isClosed = true;
      cancel?.();
      cancel = null;
      await filing?.catch(() => {});
      await remove(path, folder);
    },
  };
}

function statusOf(
  options: StatusWriterOptions,
  snapshot: StatusSnapshot,
  startedAtMs: number,
  idle: boolean,
): StatusFile {
  const { scope, worker, limits, global, runtime } = options;
  return {
    version: 1,
    scope,
    worker,
    folder: process.cwd(),
    startedAtMs,
    writtenAtMs: runtime.wallNow(),
    idle,
    limits,
    global,
    snapshot: { ...snapshot, sources: snapshot.sources.map((source) => shown(options, source)) },
  };
}

async function replaceFile(folder: string, path: string, status: StatusFile): Promise<void> {
  if (folder === defaultStatusFolder()) refuseForeignFolder(folder);
  makeOwnFolder(folder);
  const temporary = `${path}.tmp`;
  await writeFile(temporary, JSON.stringify(status), { mode: 0o600 });
  await rename(temporary, path);
}

function shown({ redact, keepsTexts }: StatusWriterOptions, source: SourceSnapshot): SourceSnapshot {
  const { lastError } = source;
  if (lastError === null) return source;
  const message = keepsTexts ? redact(lastError.message) : lastError.code;
  return { ...source, lastError: { code: lastError.code, message } };
}

/** The last one out takes the default folder away. */
async function remove(path: string, folder: string): Promise<void> {
  await rm(path, { force: true }).catch(() => {});
  if (folder === defaultStatusFolder()) await rmdir(folder).catch(() => {});
}
