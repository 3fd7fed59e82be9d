import { longestText } from "../domain/pattern-risk.js";
import type { Schema } from "./references.js";

/** A pattern is the author's and the text the model's: neither may keep the process busy for seconds. */

/** Escapes of characters that need none, as other languages write them; with the flag `u` they are errors. */
const NEEDLESS_ESCAPE = /\\([\s\S])/g;
const NEEDS_NO_ESCAPE = /[!"#%&',:;<=>@_`~ ]/;

function valid(pattern: string): string {
  try {
    new RegExp(pattern, "u");
    return pattern;
  } catch {
    const plain = pattern.replace(NEEDLESS_ESCAPE, (pair, unit: string) => (NEEDS_NO_ESCAPE.test(unit) ? unit : pair));
    new RegExp(plain, "u");
    return plain;
  }
}

interface Bounded {
  readonly pattern: string;
  readonly maxCharacters: number;
}

/** The pattern as the validator may use it: longer texts don't match. Throws Error when it is none, or takes too long. */
function bounded(given: string, place: string): Bounded {
  const pattern = valid(given);
  const maxCharacters = longestText(pattern, "u");
  if (maxCharacters === undefined) {
    throw new Error(
      `${place}: the pattern ${given} may take for ever, since a repetition in it can read the same text in many ways; ` +
        "write it so that there is only one, as a+ instead of (a+)+",
    );
  }
  return { pattern: `^(?![^]{${maxCharacters + 1}})[^]*?(?:${pattern})`, maxCharacters };
}

function atMost(limit: unknown, maxCharacters: number): number {
  return typeof limit === "number" ? Math.min(limit, maxCharacters) : maxCharacters;
}

/** Makes the patterns of one schema safe, and says by its limits which texts are too long for them. Throws Error. */
export function boundPatterns(schema: Schema, place: string): void {
  if (typeof schema.pattern === "string") {
    const { pattern, maxCharacters } = bounded(schema.pattern, `${place}/pattern`);
    schema.pattern = pattern;
    schema.maxLength = atMost(schema.maxLength, maxCharacters);
  }
  const named = Object.entries((schema.patternProperties ?? {}) as Schema);
  if (named.length === 0) return;
  const safe = named.map(([key, one]) => ({ ...bounded(key, `${place}/patternProperties`), one }));
  schema.patternProperties = Object.fromEntries(safe.map(({ pattern, one }) => [pattern, one]));
  const short = { maxLength: Math.min(...safe.map(({ maxCharacters }) => maxCharacters)) };
  schema.propertyNames = schema.propertyNames === undefined ? short : { allOf: [schema.propertyNames, short] };
}
