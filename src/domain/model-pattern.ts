import { longestText } from "./pattern-risk.js";

const compiled = new Map<string, RegExp>();

/** A profile's pattern, made once. Throws SyntaxError for one that is none; configurations are checked before. */
export function patternOf(source: string): RegExp {
  let pattern = compiled.get(source);
  if (pattern === undefined) {
    pattern = new RegExp(source, "i");
    compiled.set(source, pattern);
  }
  return pattern;
}

const longest = new Map<string, number>();

/** How much of a text may be tried on a profile's pattern, so that no wording of it takes long. */
export function longestTextOf(source: string): number {
  let units = longest.get(source);
  if (units === undefined) {
    units = longestText(source, "i") ?? 0;
    longest.set(source, units);
  }
  return units;
}

/** Is a rule about this model? A rule without a pattern is about all of them; a vendor's prefix (`openai/gpt-5`) doesn't count. */
export function modelMatches(pattern: string | undefined, model: string): boolean {
  if (pattern === undefined) return true;
  const regexp = patternOf(pattern);
  return regexp.test(model) || regexp.test(model.slice(model.lastIndexOf("/") + 1));
}
