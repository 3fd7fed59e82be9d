import type { Usage } from "../domain/usage.js";
import type { Ledger } from "../governance/operation.js";

const NANOS_PER_UNIT = 1e9;

const NOTHING: Usage = {
  promptTokens: 0,
  completionTokens: 0,
  totalTokens: 0,
  reasoningTokens: null,
  cachedPromptTokens: null,
  source: "measured",
};

function sumOrNull(a: number | null, b: number | null): number | null {
  return a === null && b === null ? null : (a ?? 0) + (b ?? 0);
}

function added(a: Usage, b: Usage): Usage {
  return {
    promptTokens: a.promptTokens + b.promptTokens,
    completionTokens: a.completionTokens + b.completionTokens,
    totalTokens: a.totalTokens + b.totalTokens,
    reasoningTokens: sumOrNull(a.reasoningTokens, b.reasoningTokens),
    cachedPromptTokens: sumOrNull(a.cachedPromptTokens, b.cachedPromptTokens),
    source: a.source === "estimated" ? a.source : b.source,
  };
}

/** What all attempts of one `structured()` call took together, as their rows say it: useless and failed ones included. */
export class Spent implements Ledger {
  #usage = NOTHING;
  /** Whole nano-units: fractions of a unit don't add up. null = unknown for one of them. */
  #costNanos: bigint | null = 0n;

  get isNothing(): boolean {
    return this.#usage === NOTHING;
  }

  book(usage: Usage, costNanos: bigint | null): void {
    this.#usage = added(this.#usage, usage);
    const isKnown = this.#costNanos !== null && typeof costNanos === "bigint";
    this.#costNanos = isKnown ? this.#costNanos! + costNanos : null;
  }

  total(): { readonly usage: Usage; readonly cost: number | null } {
    return { usage: this.#usage, cost: this.#costNanos === null ? null : Number(this.#costNanos) / NANOS_PER_UNIT };
  }
}
