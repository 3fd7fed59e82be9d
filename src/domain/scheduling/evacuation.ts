import type { ScopeState } from "../scope-state.js";
import { firstTokenDueMs } from "./first-token.js";
import { poolOf } from "./pool.js";

/** Attempts of a tripped source without a first token leave it when they are older than D_ft / 2; undefined = none does. */
export function evacuationAgeMs(state: ScopeState, name: string, nowMs: number): number | undefined {
  if (!state.scheduling.evacuate) return undefined;
  const { config, health } = state.sources.get(name)!;
  const dueMs = firstTokenDueMs({
    ownTtftMs: health.ttftMs,
    poolTtftMs: poolOf(state, nowMs).ttftMs,
    ttftTimeoutMs: config.ttftTimeoutMs,
    promptTokens: undefined,
    meanPromptTokens: 0,
  });
  return (dueMs ?? config.ttftTimeoutMs) / 2;
}
