/** What price lists call a provider, where it differs from what its users do. */
const ALIASES: Readonly<Record<string, string>> = {
  zhipu: "zai",
  kimi: "moonshot",
  qwen: "dashscope",
  together: "together_ai",
  fireworks: "fireworks_ai",
  ark: "volcengine",
};

const TAG = /:[^:/]*$/;
const LATEST = /-latest$/;
const DATE = /-(?:\d{4}-?\d{2}-?\d{2}|\d{4,8})$/;

/**
 * Under which keys a price list may have a model, the surest first (reference-providers §3.3): with its provider, as it
 * is, its last path segment, and that without a tag, `-latest` or a date.
 */
export function priceKeys(model: string, provider: string | undefined): string[] {
  const keys = new Set<string>();
  if (provider !== undefined && provider !== "") {
    const name = provider.toLowerCase();
    keys.add(`${name}/${model}`);
    if (Object.hasOwn(ALIASES, name)) keys.add(`${ALIASES[name]}/${model}`);
  }
  keys.add(model);
  let segment = model.slice(model.lastIndexOf("/") + 1);
  for (const ending of [null, TAG, LATEST, DATE]) {
    if (ending !== null) segment = segment.replace(ending, "");
    if (segment !== "") keys.add(segment);
  }
  return [...keys];
}
