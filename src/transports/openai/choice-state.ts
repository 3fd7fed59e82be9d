import { flattened } from "../text-pile.js";
import type { TagScanner } from "./reasoning-tags.js";
import type { ToolCallCollector } from "./tool-calls.js";

/** One choice of an answer while it arrives. */
export interface ChoiceState {
  readonly index: number;
  /** Content as it came, tags and all. */
  text: string;
  /** Reasoning that came in a field or part of its own. */
  thinking: string;
  refusal: string;
  calls: ToolCallCollector | undefined;
  rawFinish: string | null;
  logprobs: unknown;
  scanner: TagScanner | undefined;
}

export function newChoice(index: number): ChoiceState {
  return {
    index,
    text: "",
    thinking: "",
    refusal: "",
    calls: undefined,
    rawFinish: null,
    logprobs: undefined,
    scanner: undefined,
  };
}

/** Makes one block of each text that came in many pieces. */
export function compactChoice(choice: ChoiceState): void {
  choice.text = flattened(choice.text);
  choice.thinking = flattened(choice.thinking);
  choice.refusal = flattened(choice.refusal);
  choice.calls?.compact();
}
