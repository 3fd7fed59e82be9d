import { closeSync, linkSync, openSync, readFileSync, renameSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { hostname } from "node:os";
import { processLife } from "./process-life.js";
import { BatchRefusedError } from "./types.js";

export interface LockOwner {
  readonly host: string;
  readonly pid: number;
  /** Tells the process from a later one with the same pid; null where the system doesn't say. */
  readonly processStart: string | null;
  /** ISO time, for people. */
  readonly startedAt: string;
  /** Tells this lock from every other one. */
  readonly nonce: string;
}

export function thisProcess(startedAt: string, nonce: string): LockOwner {
  const life = processLife(process.pid);
  return {
    host: hostname(),
    pid: process.pid,
    processStart: life.alive ? life.start : null,
    startedAt,
    nonce,
  };
}

/** A lock whose takeover was itself left behind, twice: no accident. */
const MAX_DEPTH = 3;

/**
 * Takes the lock file or throws BatchRefusedError `locked`. The lock of a process that is gone on this host is taken over;
 * of two that try, one wins. Returns the function that gives it back.
 */
export function acquireLock(path: string, owner: LockOwner, depth = 0): () => void {
  if (create(path, owner)) return () => release(path, owner);
  const holder = read(path);
  // Released this very moment: one more try, then it is really held.
  if (holder === undefined && create(path, owner)) return () => release(path, owner);
  if (holder === undefined || holder === "unreadable" || !isGone(holder) || depth >= MAX_DEPTH) {
    throw refusal(path, holder);
  }
  takeOver(path, holder, owner, depth);
  return () => release(path, owner);
}

/**
 * "Look, then replace" is two steps, so it is done under a lock of its own. Whoever looks under it sees either the dead
 * holder, whom nobody else can replace meanwhile, or the winner of an earlier takeover.
 */
function takeOver(path: string, dead: LockOwner, owner: LockOwner, depth: number): void {
  const leave = acquireLock(`${path}.takeover`, owner, depth + 1);
  try {
    const holder = read(path);
    if (holder === undefined || holder === "unreadable" || holder.nonce !== dead.nonce) throw refusal(path, holder);
    const own = `${path}.${owner.nonce}`;
    writeFileSync(own, JSON.stringify(owner));
    renameSync(own, path);
  } finally {
    leave();
  }
}

/** Puts a complete lock file there in one step; false when there is one already. */
function create(path: string, owner: LockOwner): boolean {
  const own = `${path}.${owner.nonce}`;
  try {
    writeFileSync(own, JSON.stringify(owner));
    linkSync(own, path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return false;
    if (code === "EPERM" || code === "ENOSYS" || code === "ENOTSUP" || code === "EOPNOTSUPP") {
      return createWithoutLink(path, owner);
    }
    throw new BatchRefusedError(
      "out_unwritable",
      `Can't create the lock ${path}: ${(error as Error).message}. Choose an output in a folder you may write to.`,
      error,
    );
  } finally {
    rmSync(own, { force: true });
  }
}

/** For file systems without hard links: a reader may see the file a moment before its text. */
function createWithoutLink(path: string, owner: LockOwner): boolean {
  let file: number;
  try {
    file = openSync(path, "wx");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
  try {
    writeSync(file, JSON.stringify(owner));
  } finally {
    closeSync(file);
  }
  return true;
}

function read(path: string): LockOwner | "unreadable" | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? undefined : "unreadable";
  }
  try {
    const owner = JSON.parse(text) as LockOwner;
    return Number.isInteger(owner.pid) && typeof owner.host === "string" ? owner : "unreadable";
  } catch {
    return "unreadable";
  }
}

function isGone(holder: LockOwner): boolean {
  if (holder.host !== hostname()) return false;
  const life = processLife(holder.pid);
  if (!life.alive) return true;
  return life.start !== null && holder.processStart !== null && life.start !== holder.processStart;
}

function release(path: string, owner: LockOwner): void {
  const holder = read(path);
  if (holder !== undefined && holder !== "unreadable" && holder.nonce === owner.nonce) rmSync(path, { force: true });
}

function refusal(path: string, holder: LockOwner | "unreadable" | undefined): BatchRefusedError {
  const who =
    holder === undefined || holder === "unreadable"
      ? "another run"
      : `process ${holder.pid} on ${holder.host}, since ${holder.startedAt}`;
  return new BatchRefusedError(
    "locked",
    `The output is in use by ${who}. Wait for it to end; if it is surely gone, delete ${path}.`,
  );
}
