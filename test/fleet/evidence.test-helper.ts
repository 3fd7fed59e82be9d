import type { LedgerEntry } from "../../src/testing/provider/server.js";
import type { Life, NotedGrant } from "./crew.js";

/** Evidence made for the judges: of one source, one process, and any moment. */

export const PID = 7;
export const TTL_MS = 3_000;
/** Any moment of the wall clock. */
export const T0 = 1_800_000_000_000;

export function entry(id: string, fromMs: number, toMs: number, changes: Partial<LedgerEntry> = {}): LedgerEntry {
  return {
    ...{ provider: "a", id: 1, path: "/", arrivedAtMs: T0 + fromMs, endedAtMs: T0 + toMs, status: 200, apiKey: "" },
    ...{ requestId: id, promptTokens: 5, completionTokens: 5, maxTokens: null, billedTokens: 10, bytes: 1 },
    ...{ clientClosed: false, outcome: "answered", ...changes },
  };
}

export function grant(id: string, atMs: number, changes: Partial<NotedGrant> = {}): [string, NotedGrant] {
  return [id, { id, source: "a", probe: false, tokens: 10, pid: PID, atMs: T0 + atMs, ...changes }];
}

export function life(changes: Partial<Life> = {}): Life {
  return { pid: PID, slot: 1, killedAtMs: null, frozen: [], rows: { given: 1, written: 1, dropped: 0 }, ...changes };
}

export const frozen = (fromMs: number, toMs: number): Life[] => [
  life({ frozen: [{ fromMs: T0 + fromMs, toMs: T0 + toMs }] }),
];
