import type { ChatRequest } from "../../domain/chat.js";
import type { WireFields } from "../../domain/profile.js";
import type { SourceConfig } from "../../domain/source.js";
import { planThinking } from "../../domain/thinking.js";
import { thinkingOf } from "../../domain/vendor-thinking.js";
import { RequestRejectedError } from "../../errors.js";

/**
 * The fields that ask this source for the thinking of the call, or for the source's own default; undefined = nothing is
 * sent. Throws RequestRejectedError `unsupported_param` where the profile has no translation.
 */
export function thinkingFields(request: ChatRequest, source: SourceConfig): WireFields | undefined {
  const thinking = thinkingOf(request, source);
  if (thinking === undefined) return undefined;
  const { maxTokens } = request.sampling ?? {};
  const plan = planThinking(source, {
    thinking,
    nearest: request.thinkingFallback === "nearest",
    ...(maxTokens === undefined ? {} : { maxTokens }),
  });
  if ("fields" in plan) return plan.fields;
  throw new RequestRejectedError(`${source.name} can't do this call: ${plan.problem}`, {
    code: "unsupported_param",
    sourceName: source.name,
    details: { param: "thinking" },
  });
}
