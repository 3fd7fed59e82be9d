/** Tokens of one attempt. `completionTokens` always includes reasoning; cached tokens are part of the prompt. */
export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly totalTokens: number;
  /** null = the provider said nothing about it. */
  readonly reasoningTokens: number | null;
  readonly cachedPromptTokens: number | null;
  /** `estimated`: the provider reported no usage, so it was counted from the actual texts. */
  readonly source: "measured" | "estimated";
}
