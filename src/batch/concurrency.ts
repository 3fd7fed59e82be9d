import type { ScopeConfig } from "../domain/scope.js";

const WITHOUT_LIMIT = 32;
const AT_MOST = 256;

/**
 * Lines in flight when the user names no number (spec 12 §1): the sum of the sources' limits, or the global gate if lower.
 * A source without a limit counts as 32. Between 1 and 256.
 */
export function defaultConcurrency(config: {
  readonly sources: readonly { readonly maxConcurrency: number }[];
  readonly global: Pick<ScopeConfig["global"], "maxConcurrency">;
}): number {
  const sum = config.sources.reduce((total, source) => total + (source.maxConcurrency || WITHOUT_LIMIT), 0);
  const gate = config.global.maxConcurrency || AT_MOST;
  return Math.min(sum || WITHOUT_LIMIT, gate, AT_MOST);
}
