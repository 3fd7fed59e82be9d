import type { ChatRequest } from "../../domain/chat.js";
import type { WireFields } from "../../domain/profile.js";
import type { SourceConfig } from "../../domain/source.js";
import { planThinking } from "../../domain/thinking.js";
import { RequestRejectedError } from "../../errors.js";

type Fields = Record<string, unknown>;

/** Where the providers' own switches stand, as paths. */
const VENDOR_FIELDS: readonly (readonly string[])[] = [
  ["thinking"],
  ["reasoning"],
  ["reasoning_effort"],
  ["enable_thinking"],
  ["thinking_budget"],
  ["thinking_token_budget"],
  ["prompt_mode"],
  ["chat_template_kwargs", "enable_thinking"],
  ["chat_template_kwargs", "thinking"],
  ["extra_body", "google", "thinking_config"],
];

function ownerOf(fields: Readonly<Fields>, path: readonly string[]): Fields | undefined {
  let owner: unknown = fields;
  for (const step of path.slice(0, -1)) {
    if (typeof owner !== "object" || owner === null || !Object.hasOwn(owner, step)) return undefined;
    owner = (owner as Fields)[step];
  }
  return typeof owner === "object" && owner !== null && Object.hasOwn(owner, path.at(-1)!)
    ? (owner as Fields)
    : undefined;
}

function namesThinking(fields: Readonly<Fields> | undefined): boolean {
  return fields !== undefined && VENDOR_FIELDS.some((path) => ownerOf(fields, path) !== undefined);
}

/** Takes the providers' own switches out of fields that are ours to change. */
export function removeThinking(fields: Fields): void {
  for (const path of VENDOR_FIELDS) {
    const owner = ownerOf(fields, path);
    if (owner !== undefined) delete owner[path.at(-1)!];
  }
}

/**
 * The fields that ask this source for the thinking of the call, or for the source's own default; undefined = nothing is
 * sent. A default gives way to what EXTRA_BODY or the call's `extraBody` says in the provider's own words.
 * Throws RequestRejectedError `unsupported_param` where the profile has no translation.
 */
export function thinkingFields(request: ChatRequest, source: SourceConfig): WireFields | undefined {
  const own = request.thinking;
  if (own === undefined && (namesThinking(source.extraBody) || namesThinking(request.extraBody))) return undefined;
  const thinking = own ?? source.thinking;
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
