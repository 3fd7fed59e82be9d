import type { WorkerBook, WorkerRecord } from "../../../domain/scheduling/fairness.js";
import { WORKERS_KEY } from "./keys.js";

/** All processes of the scope, few enough to be read as a whole. */
export function loadWorkers(prefix: string, packed: Record<string, string>): WorkerBook {
  const book: WorkerBook = new Map();
  const stored = redis.call("HGETALL", prefix + WORKERS_KEY) as string[];
  for (let at = 0; at < stored.length; at += 2) {
    const name = stored[at]!;
    const text = stored[at + 1]!;
    const [virtualTime, waiting, priority, lastVisitMs] = cmsgpack.unpack(text) as [number, boolean, number, number];
    book.set(name, { virtualTime, waiting, priority, lastVisitMs });
    packed[name] = text;
  }
  return book;
}

export function saveWorkers(prefix: string, book: WorkerBook, packed: Record<string, string>, ttlMs: number): void {
  const key = prefix + WORKERS_KEY;
  let hasChanged = false;
  for (const [name, worker] of book) {
    const text = packedWorker(worker);
    if (text === packed[name]) continue;
    redis.call("HSET", key, name, text);
    hasChanged = true;
  }
  for (const name in packed) if (!book.has(name)) redis.call("HDEL", key, name);
  if (hasChanged) redis.call("PEXPIRE", key, ttlMs);
}

function packedWorker({ virtualTime, waiting, priority, lastVisitMs }: WorkerRecord): string {
  return cmsgpack.pack([virtualTime, waiting, priority, lastVisitMs]);
}
