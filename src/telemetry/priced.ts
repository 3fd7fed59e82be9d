import type { StoredRow } from "./columns.js";

/** How far a sum of costs can be trusted: an unknown price is not a price of 0 (spec 05). */
export interface PriceCount {
  /** Attempts that were answered or used tokens, and whose cost is known. */
  attemptsWithPrice: number;
  /** Attempts that were answered or used tokens, and whose cost is unknown. */
  attemptsWithoutPrice: number;
}

/** Counts an attempt; one that failed and used no tokens, as far as is known, is neither. */
export function countPrice(
  count: PriceCount,
  row: Pick<StoredRow, "prompt_tokens" | "completion_tokens" | "cost" | "outcome">,
): void {
  const usedTokens = Number(row.prompt_tokens ?? 0) + Number(row.completion_tokens ?? 0) > 0;
  // OCR servers report no tokens, and their pages may cost all the same.
  if (!usedTokens && row.outcome !== "success") return;
  if (typeof row.cost === "number") count.attemptsWithPrice += 1;
  else count.attemptsWithoutPrice += 1;
}
