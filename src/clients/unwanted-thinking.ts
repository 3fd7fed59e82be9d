import type { ChatCompletion, ChatRequest } from "../domain/chat.js";
import type { SourceConfig } from "../domain/source.js";
import { thinkingOf } from "../domain/vendor-thinking.js";
import type { Warn } from "../governance/warn.js";

/**
 * Servers that ignore a switch they don't know think all the same. That can only be seen afterwards, and is said once a
 * minute for each source.
 */
export function warnOfUnwantedThinking(
  warn: Warn,
  request: ChatRequest,
  source: SourceConfig,
  { thinking, usage }: ChatCompletion,
): void {
  if (thinkingOf(request, source) !== false) return;
  if (thinking === "" && (usage?.reasoningTokens ?? 0) === 0) return;
  const text =
    `${source.name} was asked not to think and did: its profile ${source.profile.name} may be the wrong one, ` +
    `or "thinking" of it wrong for ${source.model} (docs/providers.md)`;
  warn("thinking", source.name, text);
}
