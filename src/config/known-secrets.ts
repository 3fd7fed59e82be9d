import { readRedisUrl } from "../domain/redis-address.js";
import { maskSecret, Secret } from "../domain/secret.js";
import { isPlainObject } from "./values.js";

/** Shorter ones (`none`) would hide harmless words. */
const SHORTEST_SECRET = 6;
/** From here on, or with a digit, it is no name that the configuration may hold for another reason, like `ollama`. */
const SURELY_SECRET = 12;

export function addSecret(secrets: Set<string>, value: string): void {
  if (value.trim().length >= SHORTEST_SECRET) secrets.add(value.trim());
}

function isUnmistakable(secret: string): boolean {
  return secret.length >= SURELY_SECRET || /\d/.test(secret);
}

/** Keys, header values and salts in options that were given in code. */
export function secretsIn(options: Readonly<Record<string, unknown>>): Set<string> {
  const secrets = new Set<string>();
  const add = (value: unknown): void => {
    const text = value instanceof Secret ? value.reveal() : value;
    if (typeof text === "string" && isUnmistakable(text.trim())) addSecret(secrets, text);
  };
  const sources: readonly unknown[] = Array.isArray(options.sources) ? options.sources : [];
  for (const source of sources.filter(isPlainObject)) {
    add(source.apiKey);
    if (isPlainObject(source.headers)) Object.values(source.headers).forEach(add);
  }
  if (isPlainObject(options.cache)) add(options.cache.salt);
  if (isPlainObject(options.redis)) {
    add(options.redis.url);
    const read = typeof options.redis.url === "string" ? readRedisUrl(options.redis.url) : undefined;
    if (read !== undefined && "secrets" in read) read.secrets.forEach(add);
  }
  return secrets;
}

type Hide = (text: string) => string;

/** Masks each of the secrets wherever it stands in a text; unmistakable ones also in another case, as `thinking` is read. */
export function hiding(secrets: ReadonlySet<string>): Hide {
  // One secret may be a part of another.
  const longestFirst = [...secrets].sort((a, b) => b.length - a.length);
  const patterns = longestFirst.map((secret) => {
    const literal = secret.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    return new RegExp(literal, isUnmistakable(secret) ? "gi" : "g");
  });
  return (text) => patterns.reduce((hidden, pattern) => hidden.replace(pattern, maskSecret), text);
}

/** Findings whose texts hold no known secret: one that was put under a wrong key may have been quoted anywhere. */
export function masked<Finding extends object>(
  secrets: ReadonlySet<string>,
  findings: readonly Finding[],
): readonly Finding[] {
  if (secrets.size === 0 || findings.length === 0) return findings;
  const hide = hiding(secrets);
  return findings.map((finding) => {
    const texts = Object.entries(finding).map(([name, text]) => [name, typeof text === "string" ? hide(text) : text]);
    return Object.fromEntries(texts) as Finding;
  });
}
