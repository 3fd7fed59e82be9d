import { closeSync, openSync, writeSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { CancelTimer } from "../../ports/runtime.js";
import type { ProviderClock } from "./clock.js";

export type LedgerOutcome =
  | "answered"
  /** A limit of the provider refused it. */
  | "limit_exceeded"
  /** A drawn 429: no limit was reached. */
  | "rate_limited"
  | "error"
  | "cut"
  | "hang"
  | "reset"
  | "unauthorized"
  | "bad_request"
  | "not_found"
  | "outage"
  | "scripted"
  /** The client left before the answer was complete. */
  | "client_closed"
  /** The provider was stopped first. */
  | "stopped";

/** What a provider saw of one request: the independent witness beside the client's own telemetry. */
export interface LedgerEntry {
  readonly provider: string;
  /** 1, 2, 3… by arrival. */
  readonly id: number;
  readonly path: string;
  /** Epoch ms with fractions; never goes backwards within one provider, even when the wall clock is set. */
  readonly arrivedAtMs: number;
  /** null = still in progress. */
  endedAtMs: number | null;
  /** HTTP status sent; 0 = none. */
  status: number;
  /** Masked. */
  readonly apiKey: string;
  /** From the client's `x-pgw-call-id`, `x-request-id` or `x-client-request-id` header. */
  readonly requestId: string | null;
  promptTokens: number;
  /** Tokens really sent. */
  completionTokens: number;
  /** The request's token limit, when it had one. */
  maxTokens: number | null;
  /** Tokens this request used up: prompt + completion, 0 when it was refused. */
  billedTokens: number;
  /** Response bytes, head included. */
  bytes: number;
  clientClosed: boolean;
  outcome: LedgerOutcome;
}

export interface LedgerOptions {
  /** Newest entries kept in memory; older ones are dropped and counted. 0 = none. Default 200000. */
  readonly keep?: number;
  /** Ended requests are appended to this file, one JSON line each, at the latest 100 ms later. */
  readonly file?: string;
}

export interface Arrival {
  readonly path: string;
  readonly apiKey: string;
  readonly requestId: string | null;
}

export interface Ledger {
  open(arrival: Arrival): LedgerEntry;
  /** Once an entry; later calls change nothing. */
  close(
    entry: LedgerEntry,
    end: { status: number; outcome: LedgerOutcome; clientClosed: boolean; bytes: number },
  ): void;
  /** By arrival; requests still in progress included. */
  entries(): readonly LedgerEntry[];
  readonly dropped: number;
  /** How many ended in which way; counts all, also what memory dropped. */
  outcomes(): Partial<Record<LedgerOutcome, number>>;
  /** Why the file could not be written any more; null = it could. */
  readonly fileError: string | null;
  /** Everything ended is in the file. */
  flush(): void;
  stop(): void;
}

const DEFAULT_KEEP = 200_000;
const WRITE_EVERY_MS = 100;

interface LedgerFile {
  append(entry: LedgerEntry): void;
  readonly error: string | null;
  flush(): void;
  stop(): void;
}

/** Lines are written whole, one write a batch; a process killed between two batches loses the last 100 ms. */
function openLedgerFile(path: string, clock: ProviderClock): LedgerFile {
  const fd = openSync(path, "a");
  let lines: string[] = [];
  let timer: CancelTimer | null = null;
  let error: string | null = null;

  function flush(): void {
    timer?.();
    timer = null;
    if (lines.length === 0) return;
    try {
      for (let left = Buffer.from(lines.join("")); left.length > 0; ) left = left.subarray(writeSync(fd, left));
    } catch (problem) {
      error = problem instanceof Error ? problem.message : String(problem);
    }
    lines = [];
  }

  return {
    append(entry) {
      if (error !== null) return;
      lines.push(`${JSON.stringify(entry)}\n`);
      timer ??= clock.setTimer(WRITE_EVERY_MS, flush);
    },
    get error() {
      return error;
    },
    flush,
    stop() {
      flush();
      closeSync(fd);
    },
  };
}

/** Keeps the newest `keep` entries without moving the array on every arrival. */
function createMemory(keep: number) {
  let kept: LedgerEntry[] = [];
  let dropped = 0;
  return {
    add(entry: LedgerEntry): void {
      kept.push(entry);
      if (kept.length < 2 * keep + 1_000) return;
      dropped += kept.length - keep;
      kept = kept.slice(kept.length - keep);
    },
    newest: (): LedgerEntry[] => kept.slice(Math.max(0, kept.length - keep)),
    dropped: (): number => dropped + Math.max(0, kept.length - keep),
  };
}

/** @throws the file system's own error when the ledger file can't be opened. */
export function createLedger(provider: string, clock: ProviderClock, options: LedgerOptions): Ledger {
  const file = options.file === undefined ? null : openLedgerFile(options.file, clock);
  const memory = createMemory(options.keep ?? DEFAULT_KEEP);
  const epochMs = clock.wallNow() - clock.now();
  const outcomes: Partial<Record<LedgerOutcome, number>> = {};
  let arrivals = 0;

  return {
    open({ path, apiKey, requestId }) {
      arrivals += 1;
      const entry: LedgerEntry = {
        provider,
        id: arrivals,
        path,
        arrivedAtMs: epochMs + clock.now(),
        endedAtMs: null,
        status: 0,
        apiKey,
        requestId,
        promptTokens: 0,
        completionTokens: 0,
        maxTokens: null,
        billedTokens: 0,
        bytes: 0,
        clientClosed: false,
        outcome: "answered",
      };
      memory.add(entry);
      return entry;
    },
    close(entry, end) {
      if (entry.endedAtMs !== null) return;
      Object.assign(entry, end);
      entry.endedAtMs = epochMs + clock.now();
      outcomes[entry.outcome] = (outcomes[entry.outcome] ?? 0) + 1;
      file?.append(entry);
    },
    outcomes: () => ({ ...outcomes }),
    entries: memory.newest,
    get dropped() {
      return memory.dropped();
    },
    get fileError() {
      return file?.error ?? null;
    },
    flush: () => file?.flush(),
    stop: () => file?.stop(),
  };
}

/** Reads a ledger file back, a torn last line left out. Entries are by end; judges sort for themselves. */
export async function readLedger(path: string): Promise<LedgerEntry[]> {
  const lines = (await readFile(path, "utf8")).split("\n");
  // What follows the last line end was never finished, or is empty.
  return lines.slice(0, -1).map((line) => JSON.parse(line) as LedgerEntry);
}
