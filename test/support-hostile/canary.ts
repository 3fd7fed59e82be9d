import { inspect } from "node:util";

/** A secret that can be found again, in whatever form it leaks. */

/** Whole, so that no test's source or name holds it by chance. */
export function canary(slot: string): string {
  return `sk-CANARY-${slot}-7f3a91c05be2`;
}

/** As a provider may send it back, whole. */
export function echoesOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  return [
    secret,
    bytes.toString("hex"),
    bytes.toString("base64"),
    bytes.toString("base64url"),
    Buffer.from(`Bearer ${secret}`).toString("base64"),
    [...secret].map((letter) => `\\u00${letter.charCodeAt(0).toString(16)}`).join(""),
    [...secret].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join(""),
  ];
}

/** What would give it away. */
export function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  return [
    secret,
    // Not even most of it.
    secret.slice(0, 16),
    bytes.toString("hex"),
    bytes.toString("base64").slice(0, -4),
    bytes.toString("base64url").slice(0, -4),
    Buffer.from(`Bearer ${secret}`).toString("base64").slice(12, -4),
    [...secret].map((letter) => `\\u00${letter.charCodeAt(0).toString(16)}`).join(""),
    [...secret].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join(""),
  ];
}

/** Everything that can be seen of a value: inspected, as JSON, its stack, and the same of its causes. */
export function everythingOf(value: unknown): string {
  const seen: string[] = [];
  for (let cause: unknown = value, depth = 0; cause !== undefined && cause !== null && depth < 8; depth += 1) {
    const error = cause as Error;
    seen.push(
      inspect(cause, { depth: 20, showHidden: true, getters: true }),
      String(error.message),
      String(error.stack),
    );
    seen.push(json(cause), String(cause));
    cause = error.cause;
  }
  return seen.join("\n");
}

export function json(value: unknown): string {
  try {
    return JSON.stringify(value, (_key, field) => (typeof field === "bigint" ? String(field) : field)) ?? "";
  } catch (error) {
    return `no JSON: ${String(error)}`;
  }
}

/** Which forms of which secrets stand in a text. */
export function leaksIn(text: string, secrets: readonly string[]): string[] {
  const folded = text.toLowerCase();
  return secrets.flatMap((secret) => formsOf(secret).filter((form) => folded.includes(form.toLowerCase())));
}
