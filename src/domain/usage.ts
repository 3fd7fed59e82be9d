/** Tokens of one attempt. `completionTokens` always includes reasoning; cached tokens are part of the prompt. */
export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly totalTokens: number;
  /** null = the provider said nothing about it. */
  readonly reasoningTokens: number | null;
  readonly cachedPromptTokens: number | null;
  /** Prompt tokens the provider wrote into its cache, where it says so; they have a price of their own. */
  readonly cacheWriteTokens?: number;
  /** `estimated`: the provider reported no usage, so it was counted from the actual texts. */
  readonly source: "measured" | "estimated";
}

/** What an attempt is paid for: its tokens, and what some providers count beside them. */
export interface BilledUsage extends Usage {
  /** Images in the request. */
  readonly images?: number;
  /** Pages that were read. */
  readonly pages?: number;
}
