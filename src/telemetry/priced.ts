import type { StoredRow } from "./columns.js";

/** How far a sum of costs can be trusted: an unknown price is not a price of 0 (spec 05). */
export interface PriceCount {
  /** Attempts that used tokens and whose cost is known. */
  attemptsWithPrice: number;
  /** Attempts that used tokens and whose cost is unknown. */
  attemptsWithoutPrice: number;
}

/** Counts an attempt; one that used no tokens, as far as is known, is neither. */
export function countPrice(
  count: PriceCount,
  row: Pick<StoredRow, "prompt_tokens" | "completion_tokens" | "cost">,
): void {
  const usedTokens = Number(row.prompt_tokens ?? 0) + Number(row.completion_tokens ?? 0) > 0;
  if (!usedTokens) return;
  if (typeof row.cost === "number") count.attemptsWithPrice += 1;
  else count.attemptsWithoutPrice += 1;
}
