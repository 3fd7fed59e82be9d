import { givenValue } from "../domain/given-value.js";
import type { CachedAnswer } from "../ports/cache.js";

/** What plain JavaScript may hand to a cache; TypeErrors that say what is meant. */

export function requireKey(key: string, method: string): void {
  if (typeof key === "string") return;
  throw new TypeError(`${method}() takes a text as its key, and was given ${givenValue(key)}`);
}

export function answerText(answer: CachedAnswer): string {
  const text: unknown = JSON.stringify(answer);
  if (typeof answer === "object" && answer !== null && typeof text === "string") return text;
  throw new TypeError(`set() takes an answer, and was given ${givenValue(answer)}`);
}
