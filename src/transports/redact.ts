import type { SourceConfig } from "../domain/source.js";

/** Shorter values are no secrets, and replacing them would eat ordinary words. */
const MIN_SECRET_UNITS = 4;
const MASK = "[redacted]";
const SECRET_HEADER = /key|auth|token|secret|cookie/i;

export type Redact = (text: string) => string;

/** The forms in which a provider may echo a value that we sent. */
function formsOf(secret: string): string[] {
  const forms = new Set([secret, JSON.stringify(secret).slice(1, -1), Buffer.from(secret).toString("base64")]);
  try {
    forms.add(encodeURIComponent(secret));
  } catch {
    // A lone surrogate has no URL form.
  }
  return [...forms];
}

/** Everything of a source that must not be shown. */
function secretsOf(source: SourceConfig): string[] {
  const key = source.apiKey.reveal();
  // As a whole header too: in base64 the key inside it looks different.
  const { auth, query } = source.profile;
  const secrets = key === "none" ? [] : [key, `${auth.scheme} ${key}`];
  for (const [name, value] of [...Object.entries(source.headers), ...Object.entries(query)]) {
    if (SECRET_HEADER.test(name)) secrets.push(value, value.replace(/^(Bearer|Basic)\s+/i, ""));
  }
  return secrets.filter((secret) => secret.trim().length >= MIN_SECRET_UNITS);
}

/**
 * Removes the credentials of these sources from any text that came back from them. Applied before a text is cut:
 * half a key at the end of a digest would no longer be recognised.
 */
export function createRedactor(...sources: readonly SourceConfig[]): Redact {
  const forms = [...new Set(sources.flatMap(secretsOf).flatMap(formsOf))].sort((a, b) => b.length - a.length);
  // Where none of these is, no longer form is either.
  const cores = forms.filter((form) => !forms.some((other) => other !== form && form.includes(other)));
  const shortest = Math.min(...cores.map((core) => core.length));
  return (text) => {
    if (text.length < shortest || !cores.some((core) => text.includes(core))) return text;
    return forms.reduce((clean, form) => (clean.includes(form) ? clean.split(form).join(MASK) : clean), text);
  };
}
