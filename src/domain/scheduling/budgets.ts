/**
 * What the fleet as a whole may spend on second tries (spec 10 "How this part relates to 02" and §7). A success earns a
 * share of a token, a retry or a hedge takes one.
 */
export interface BudgetRecord {
  retryTokens: number;
  hedgeTokens: number;
}

export const MOST_TOKENS = 20;
const RETRY_PER_SUCCESS = 0.1;
const HEDGE_PER_SUCCESS = 0.05;
/** So many retries may always be in flight, or a drained budget could never be earned back. */
export const FREE_RETRIES = 3;

/** Full at the start: a batch must not wait for its first retry. Hedges are earned. */
export function newBudgets(): BudgetRecord {
  return { retryTokens: MOST_TOKENS, hedgeTokens: 1 };
}

export function earn(b: BudgetRecord): void {
  b.retryTokens = Math.min(MOST_TOKENS, b.retryTokens + RETRY_PER_SUCCESS);
  b.hedgeTokens = Math.min(MOST_TOKENS, b.hedgeTokens + HEDGE_PER_SUCCESS);
}

export function mayRetry(b: BudgetRecord, retriesInFlight: number): boolean {
  return b.retryTokens >= 1 || retriesInFlight < FREE_RETRIES;
}

export function payRetry(b: BudgetRecord): void {
  b.retryTokens = Math.max(0, b.retryTokens - 1);
}

export function mayHedge(b: BudgetRecord): boolean {
  return b.hedgeTokens >= 1;
}

export function payHedge(b: BudgetRecord): void {
  b.hedgeTokens -= 1;
}
