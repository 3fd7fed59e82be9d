import { MAX_PARSED_BYTES, parsedBytes } from "../json-weight.js";
import { BlockRhythm } from "../text-pile.js";
import * as limits from "./answer-limits.js";

/** Counts what one answer takes in memory, against answer-limits.ts. */
export class AnswerWeight {
  #weight = 0;
  readonly #rhythm = new BlockRhythm();
  #calls = 0;
  #logprobBytes = 0;
  #kind: "text" | "thinking" | undefined;
  /** Why nothing more of this answer is accepted; undefined while it is within its limits. */
  excess: string | undefined;

  /** A delta of text. Where thought and text take turns, each becomes an event of its own. True: join the pieces now. */
  addText(kind: "text" | "thinking", text: string): boolean {
    const more = this.#kind === kind ? limits.DELTA_WEIGHT : limits.EVENT_WEIGHT;
    this.#kind = kind;
    return this.add(text, more);
  }

  /** A piece of any other text; `more` = what it takes beside its letters. True: join the pieces now. */
  add(text: string, more: number): boolean {
    this.#weight += text.length + more;
    if (this.#weight > limits.MAX_ANSWER_BYTES) {
      this.excess ??= `more than ${limits.MAX_ANSWER_BYTES} characters of text, or that much in small pieces`;
    }
    return this.#rhythm.isDue(text.length);
  }

  addChoice(count: number): void {
    if (count > limits.MAX_CHOICES) this.excess ??= `more than ${limits.MAX_CHOICES} choices`;
  }

  addCall(): void {
    this.#calls += 1;
    if (this.#calls > limits.MAX_TOOL_CALLS) this.excess ??= `more than ${limits.MAX_TOOL_CALLS} tool calls`;
  }

  /** `data` = the frame that brought log probabilities. False: they are too many to be kept. */
  addLogprobs(data: string): boolean {
    this.#logprobBytes += parsedBytes(data);
    if (this.#logprobBytes <= MAX_PARSED_BYTES) return true;
    this.excess ??= `more than ${MAX_PARSED_BYTES} bytes of log probabilities`;
    return false;
  }
}
