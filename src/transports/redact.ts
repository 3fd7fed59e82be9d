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
 * Linear; a text without secrets costs one search for all forms, and three more for what could begin an escape. Where a secret shows only without the characters that nobody sees, the text
 * is given without them.
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
  const withoutSecrets = (text: string): string => {
    let clean = text;
    if (holdsAny(text)) {
      for (const form of literal.forms) if (clean.includes(form)) clean = clean.replaceAll(form, MASK);
    }
    return escaped === undefined || !mayHoldEscapes(clean) ? clean : clean.replace(escaped, MASK);
  };
  return (text) => {
    if (text.length < literal.shortest) return text;
    const clean = withoutSecrets(text);
    if (!mayHoldUnseen(clean)) return clean;
    const seen = clean.replace(UNSEEN, "");
    const again = seen === clean ? seen : withoutSecrets(seen);
    return again === seen ? clean : again;
  };
}

/** Only these can write a letter in another way; `\n` and `\"`, which every JSON text has, can't. */
function mayHoldEscapes(text: string): boolean {
  if (text.includes("%") || text.includes("&#")) return true;
  return text.includes("\\") && (text.includes("\\u") || text.includes("\\x"));
}

/** Characters without width, plain or escaped: a key with some of them inside looks whole, and is. */
const UNSEEN_CHARACTERS = ["\u200b", "\u200c", "\u200d", "\u200e", "\u200f", "\u2060", "\ufeff"];
const UNSEEN =
  /[\u200b-\u200f\u2060\ufeff]|\\{1,8}u(?:200[b-f]|2060|feff)|&#(?:820[3-7]|8288|65279|x200[b-f]|x2060|xfeff);|%E2%80%8[B-F]|%E2%81%A0|%EF%BB%BF/gi;

/** At no cost for the characters themselves where a text is all of latin-1. */
function mayHoldUnseen(text: string): boolean {
  return mayHoldEscapes(text) || UNSEEN_CHARACTERS.some((character) => text.includes(character));
}
