import type { BigIntStats } from "node:fs";
import { open, stat } from "node:fs/promises";
import type { CancelTimer, Runtime } from "../ports/runtime.js";
import { isSameFile } from "./same-file.js";

/** What the writer needs of a file; tests put a full disk here. */
export interface AppendFile {
  /** Appends all of it or rejects; after a rejection the file ends where it ended before. */
  append(bytes: Uint8Array): Promise<void>;
  sync(): Promise<void>;
  close(): Promise<void>;
}

export async function openAppendFile(path: string): Promise<AppendFile> {
  const handle = await open(path, "a");
  const stats = await handle.stat({ bigint: true });
  let size = Number(stats.size);
  return {
    async append(bytes) {
      try {
        for (let written = 0; written < bytes.length; ) {
          written += (await handle.write(bytes, written, bytes.length - written)).bytesWritten;
        }
        size += bytes.length;
      } catch (error) {
        // Half a line would be cut by the next run; better not to leave it at all. A device can't be cut.
        if (stats.isFile()) await handle.truncate(size).catch(() => {});
        throw error;
      }
    },
    async sync() {
      // A device has nothing to sync and says so.
      if (!stats.isFile()) return;
      await handle.sync();
      if (!(await isStillThere(path, stats))) {
        throw new Error(`${path} was removed, moved or replaced during the run, and its answers with it`);
      }
    },
    close: () => handle.close(),
  };
}

/** Whoever removes a file that is being written sees nothing of it: what is written on is lost with the last handle. */
async function isStillThere(path: string, opened: BigIntStats): Promise<boolean> {
  const now = await stat(path, { bigint: true }).catch(() => null);
  return now !== null && isSameFile(now, opened);
}

/** Where finished lines go. */
export interface ResultSink {
  /** Resolves when the line is in the file, rejects when it could not be written. `sequence` counts started lines from 0. */
  put(sequence: number, line: string): Promise<void>;
  /** false: no new line may start, `inFlight` included. */
  hasRoom(inFlight: number): boolean;
  /** Writes what is still held back, syncs and closes. */
  finish(): Promise<void>;
}

const SYNC_EVERY_MS = 1_000;

/** Results in completion order. Lines that finish during a write go together into the next one. */
export function createSink(file: AppendFile, runtime: Runtime, onSyncError: (error: unknown) => void): ResultSink {
  let waiting: { text: string; resolve: () => void; reject: (error: unknown) => void }[] = [];
  let writing: Promise<void> | undefined;
  let syncTimer: CancelTimer | undefined;
  let syncing: Promise<void> = Promise.resolve();

  function syncSoon(): void {
    syncTimer ??= runtime.setTimer(SYNC_EVERY_MS, () => {
      syncTimer = undefined;
      syncing = file.sync().catch(onSyncError);
    });
  }

  async function writeAll(): Promise<void> {
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      try {
        await file.append(Buffer.from(batch.map(({ text }) => text).join("")));
        syncSoon();
        for (const { resolve } of batch) resolve();
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    writing = undefined;
  }

  return {
    put: (_sequence, line) =>
      new Promise((resolve, reject) => {
        waiting.push({ text: `${line}\n`, resolve, reject });
        writing ??= writeAll();
      }),
    hasRoom: () => true,
    async finish() {
      await writing;
      syncTimer?.();
      await syncing;
      try {
        await file.sync();
      } finally {
        await file.close();
      }
    },
  };
}

const MAX_HELD_LINES = 1_000;
const MAX_HELD_CHARS = 64 * 1024 * 1024;

interface HeldLine {
  readonly line: string;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Results in input order: a finished line is held back until all earlier ones are written. */
export function createOrderedSink(sink: ResultSink): ResultSink {
  const held = new Map<number, HeldLine>();
  let heldChars = 0;
  let next = 0;

  function release(sequence: number, { line, resolve, reject }: HeldLine): Promise<void> {
    held.delete(sequence);
    heldChars -= line.length;
    return sink.put(sequence, line).then(resolve, reject);
  }

  return {
    put(sequence, line) {
      return new Promise((resolve, reject) => {
        held.set(sequence, { line, resolve, reject });
        heldChars += line.length;
        for (let entry = held.get(next); entry !== undefined; entry = held.get(next)) void release(next++, entry);
      });
    },
    hasRoom: (inFlight) => held.size + inFlight < MAX_HELD_LINES && heldChars < MAX_HELD_CHARS,
    async finish() {
      // The run ended before an earlier line did: an answer that is paid for is worth more than the order.
      const rest = [...held].sort(([a], [b]) => a - b);
      await Promise.all(rest.map(([sequence, entry]) => release(sequence, entry)));
      await sink.finish();
    },
  };
}
