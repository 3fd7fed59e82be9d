import type { Thinking } from "../domain/chat.js";
import { showWord } from "../domain/secret.js";

const LEVEL = /^[a-z][a-z0-9_-]{0,31}$/;

export const THINKING_ACCEPTED = {
  seconds: 'on, off, a level such as low, medium or high, or a number of tokens like {"budgetTokens": 4096}',
  ms: 'true, false, a level such as "low", "medium" or "high", or { budgetTokens: 4096 }',
} as const;

/** The same rules for a call, a source and the environment. */
export function checkThinking(value: unknown): { readonly value: Thinking } | { readonly problem: string } {
  if (typeof value === "boolean") return { value };
  if (typeof value === "string") {
    if (value === "none" || value === "off") return { value: false };
    if (value === "on") return { value: true };
    return LEVEL.test(value) ? { value } : { problem: "is not a level in lower-case letters" };
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return { problem: "is no way to think" };
  const { budgetTokens, ...rest } = value as { budgetTokens?: unknown };
  const unknown = Object.keys(rest)[0];
  if (unknown !== undefined) return { problem: `has the unknown field "${showWord(unknown)}"` };
  if (!Number.isSafeInteger(budgetTokens) || (budgetTokens as number) < 1) {
    return { problem: "has budgetTokens that is not a whole number above 0" };
  }
  return { value: { budgetTokens: budgetTokens as number } };
}

/** How the environment and the command line write it. */
export function readThinking(text: string): unknown {
  const word = text.trim().toLowerCase();
  if (["on", "true", "yes", "1"].includes(word)) return true;
  if (["off", "false", "no", "0", "none"].includes(word)) return false;
  if (/^\d{1,9}$/.test(word)) return { budgetTokens: Number(word) };
  return text.trim().startsWith("{") ? (JSON.parse(text) as unknown) : word;
}
