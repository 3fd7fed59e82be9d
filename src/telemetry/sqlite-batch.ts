import { type ColumnValue, callValues, openValues } from "./columns.js";
import type { QueueEntry } from "./row-queue.js";

/** Kinds of an entry in a batch, as the worker knows them. */
const OPEN = 0;
const RECORD = 1;
const RECORD_CLOSING_OPEN = 2;

/** One transaction; flat arrays, because they are cheap to post to a thread. */
export interface Batch {
  readonly kinds: number[];
  readonly values: ColumnValue[];
}

/** Redaction and limits are applied here. A record whose redaction throws can't be stored safely: it alone is lost. */
export function renderBatch(
  taken: readonly QueueEntry[],
  lose: (entry: QueueEntry, reason: string) => void,
): { readonly entries: QueueEntry[]; readonly batch: Batch } {
  const entries: QueueEntry[] = [];
  const batch: Batch = { kinds: [], values: [] };
  for (const entry of taken) {
    try {
      const values = entry.kind === "open" ? openValues(entry.open) : callValues(entry.render(entry.record));
      for (const value of values) batch.values.push(value);
      batch.kinds.push(kindOf(entry));
      entries.push(entry);
    } catch (error) {
      lose(entry, `a row could not be rendered: ${String(error)}`);
    }
  }
  return { entries, batch };
}

function kindOf(entry: QueueEntry): number {
  if (entry.kind === "open") return OPEN;
  return entry.closesOpen ? RECORD_CLOSING_OPEN : RECORD;
}
