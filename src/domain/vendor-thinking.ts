import type { Thinking } from "./chat.js";

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

/** Do these fields say something about thinking in a provider's own words? */
export function namesThinking(fields: Readonly<Fields> | undefined): boolean {
  return fields !== undefined && VENDOR_FIELDS.some((path) => ownerOf(fields, path) !== undefined);
}

/** Takes the providers' own switches out of fields that are ours to change. */
export function removeThinking(fields: Fields): void {
  for (const path of VENDOR_FIELDS) {
    const owner = ownerOf(fields, path);
    if (owner !== undefined) delete owner[path.at(-1)!];
  }
}

interface Wish {
  readonly thinking?: Thinking | undefined;
  readonly extraBody?: Readonly<Fields> | undefined;
}

/**
 * The thinking that holds for a call at a source: the call's own, else the source's default, which gives way to what
 * EXTRA_BODY or the call's `extraBody` says in the provider's own words. undefined = we say nothing.
 */
export function thinkingOf(call: Wish, source: Wish): Thinking | undefined {
  if (call.thinking !== undefined || source.thinking === undefined) return call.thinking;
  return namesThinking(source.extraBody) || namesThinking(call.extraBody) ? undefined : source.thinking;
}
