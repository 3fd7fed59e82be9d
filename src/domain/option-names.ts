import type { ConfigProblem } from "../errors.js";
import { didYouMean } from "./did-you-mean.js";

/** Options of an adapter by names that it doesn't know; `title` begins the keys. Their values may be secrets: not told. */
export function unknownOptions(title: string, given: object, known: readonly string[]): ConfigProblem[] {
  return Object.keys(given)
    .filter((name) => !known.includes(name))
    .map((name) => {
      const meant = didYouMean(name, known);
      const remedy = meant === undefined ? `Known are ${known.join(", ")}.` : `Did you mean ${title}.${meant}?`;
      return { key: `${title}.${name}`, problem: "is not a known option", remedy };
    });
}

/** What stands where an adapter's options belong, told as a problem; null = an object. */
export function noOptions(title: string, given: unknown): ConfigProblem | null {
  if (typeof given === "object" && given !== null && !Array.isArray(given)) return null;
  return { key: title, problem: "has no options", remedy: "Give an object with its options." };
}
