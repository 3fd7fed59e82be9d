import type { Settle, SourceName, TickBatch, Verdict, Want } from "../../../domain/tick.js";

/** A batch as it travels: what the script would not read, or would find by itself, stays behind. */
export interface SentBatch extends Pick<TickBatch, "worker" | "seed" | "renew"> {
  readonly settles: readonly SentSettle[];
  readonly verdicts: readonly Pick<Verdict, "leaseId" | "source" | "kind" | "ttftMs">[];
  readonly wants: readonly SentWant[];
  /** Nearly all calls of a process have the same candidates: a want says which of these lists is its own. */
  readonly candidates: readonly (readonly SourceName[])[];
}

/** The permit itself is in the lease. */
type SentSettle = Omit<Settle, "epoch" | "probe" | "windowId" | "reservedTokens" | "actualTokens"> & {
  /** Absent = the reservation stands: Lua knows no null. */
  readonly actualTokens?: number | undefined;
};

/** Empty lists are left out. */
type SentWant = Omit<Want, "callId" | "waitedMs" | "candidates" | "failedHere" | "limitedHere"> & {
  readonly candidates: number;
  readonly failedHere?: readonly SourceName[] | undefined;
  readonly limitedHere?: readonly SourceName[] | undefined;
};

const NONE: readonly SourceName[] = [];

/** Fills the gaps in place: the batch belongs to this tick alone. */
export function receivedBatch(sent: SentBatch): TickBatch {
  const { candidates } = sent;
  for (const want of sent.wants as unknown as ReceivedWant[]) {
    want.candidates = candidates[want.candidates as number]!;
    want.failedHere ??= NONE;
    want.limitedHere ??= NONE;
  }
  return sent as unknown as TickBatch;
}

type ReceivedWant = {
  candidates: number | readonly SourceName[];
  failedHere?: readonly SourceName[];
  limitedHere?: readonly SourceName[];
};
