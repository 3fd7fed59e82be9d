import type { ChatResponse } from "../domain/chat.js";
import { estimatePromptTokens } from "../domain/estimate.js";
import type { Usage } from "../domain/usage.js";
import type { ResultInvalidError } from "../errors.js";
import type { GovernEnvironment } from "../governance/call.js";
import { estimatedUsage } from "./chat-operation.js";
import type { CheckedRequest } from "./chat-request.js";

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

/** What the asks of one `structured()` call took together, the useless ones included. */
export class Spent {
  readonly #environment: GovernEnvironment;
  #usage = NOTHING;
  #cost: number | null = 0;

  constructor(environment: GovernEnvironment) {
    this.#environment = environment;
  }

  addReply({ usage, cost, cacheHit }: ChatResponse): void {
    this.#add(cacheHit ? NOTHING : usage, cost);
  }

  addInvalid({ partial, rawText, sourceName }: ResultInvalidError, { messages, tools }: CheckedRequest): void {
    const reply = partial ?? { content: rawText, thinking: "", toolCalls: [] };
    const reported = partial?.usage as Usage | null | undefined;
    const usage = reported ?? estimatedUsage(estimatePromptTokens(messages, tools), reply);
    this.#add(usage, this.#costOf(usage, sourceName));
  }

  total(): { readonly usage: Usage; readonly cost: number | null } {
    return { usage: this.#usage, cost: this.#cost };
  }

  #add(usage: Usage, cost: number | null): void {
    this.#usage = added(this.#usage, usage);
    this.#cost = this.#cost === null || cost === null ? null : this.#cost + cost;
  }

  #costOf(usage: Usage, sourceName: string | undefined): number | null {
    const { pricing, config } = this.#environment;
    const source = config.sources.find(({ name }) => name === sourceName);
    if (pricing === null || source === undefined) return null;
    try {
      const nanos = pricing.costNanos(source.model, usage, source.provider);
      return nanos === null ? null : Number(nanos) / NANOS_PER_UNIT;
    } catch {
      return null;
    }
  }
}
