import type { SourceConfig } from "../domain/source.js";
import { createScreen } from "./screen.js";
import { type EncodedForms, encodedForms, escapedPattern } from "./secret-forms.js";
import { isSecretHeader, secretsInHeader } from "./secret-headers.js";

/** Shorter values are no secrets, and replacing them would eat ordinary words. */
const MIN_SECRET_UNITS = 4;
const MASK = "[redacted]";

export type Redact = (text: string) => string;

/** Everything of a source that must not be shown. */
function secretsOf(source: SourceConfig): string[] {
  const key = source.apiKey.reveal();
  const { auth, query } = source.profile;
  // As a whole header too: in base64 the key inside it looks different.
  const secrets = key === "none" ? [] : [key, `${auth.scheme} ${key}`];
  for (const [name, value] of [...Object.entries(source.headers), ...Object.entries(query)]) {
    if (isSecretHeader(name, value)) secrets.push(...secretsInHeader(value));
  }
  return secrets;
}

/**
 * Removes credentials from any text that came back from the other side, in every form in which it may echo them
 * (secret-forms.ts). Applied before a text is cut: half a key at the end of a digest would no longer be recognised.
 * Linear; a text without secrets costs one search for all forms, and three more for what could begin an escape.
 *
 * `more` = secrets that belong to no source, as a proxy's password.
 */
export function createRedactor(sources: readonly SourceConfig[], more: readonly string[] = []): Redact {
  const secrets = [...new Set([...sources.flatMap(secretsOf), ...more])].filter(
    (secret) => secret.trim().length >= MIN_SECRET_UNITS,
  );
  const literal: EncodedForms = encodedForms(secrets);
  const escaped = escapedPattern(secrets);
  const holdsAny = createScreen(literal.cores);
  return (text) => {
    if (text.length < literal.shortest) return text;
    let clean = text;
    if (holdsAny(text)) {
      for (const form of literal.forms) if (clean.includes(form)) clean = clean.replaceAll(form, MASK);
    }
    return escaped === undefined || !mayHoldEscapes(clean) ? clean : clean.replace(escaped, MASK);
  };
}

/** Only these can write a letter in another way; `\n` and `\"`, which every JSON text has, can't. */
function mayHoldEscapes(text: string): boolean {
  if (text.includes("%") || text.includes("&#")) return true;
  return text.includes("\\") && (text.includes("\\u") || text.includes("\\x"));
}
