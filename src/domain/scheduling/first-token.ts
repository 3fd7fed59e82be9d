/** When a first token is overdue (D_ft) and when a second attempt is worth its price (spec 10 §§4, 7). */

const LEAST_DUE_MS = 3_000;
/** Spec 10 §4 says six; its averages are above the median by a tenth, and with this each seed isolates in time. */
const DUE_FACTOR = 4.7;
const LEAST_HEDGE_MS = 1_000;
const HEDGE_FACTOR = 2.2;

export interface FirstTokenFacts {
  /** Learned of the source itself; 0 = never. A reasoning model is measured by itself. */
  readonly ownTtftMs: number;
  /** Median of the closed sources; 0 = unknown. */
  readonly poolTtftMs: number;
  /** The source's own limit: what is overdue only after it needs no rule. */
  readonly ttftTimeoutMs: number;
  readonly promptTokens: number | undefined;
  readonly meanPromptTokens: number;
}

/** Since the send; null = unknown, the first-token timeout alone decides. */
export function firstTokenDueMs(facts: FirstTokenFacts): number | null {
  if (facts.ownTtftMs === 0) return null;
  const ttftMs = Math.max(facts.ownTtftMs, facts.poolTtftMs);
  const size =
    facts.promptTokens === undefined || facts.meanPromptTokens === 0
      ? 1
      : Math.max(1, facts.promptTokens / facts.meanPromptTokens);
  const dueMs = Math.max(LEAST_DUE_MS, DUE_FACTOR * ttftMs * size);
  return facts.ttftTimeoutMs > 0 && dueMs >= facts.ttftTimeoutMs ? null : dueMs;
}

/** Since the send; null = unknown. */
export function hedgeAfterMs(poolTtftMs: number): number | null {
  return poolTtftMs === 0 ? null : Math.max(LEAST_HEDGE_MS, HEDGE_FACTOR * poolTtftMs);
}
