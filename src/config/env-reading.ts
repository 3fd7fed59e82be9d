import { dsnSecrets } from "../domain/postgres-dsn.js";
import { readRedisUrl } from "../domain/redis-address.js";
import { maskSecret } from "../domain/secret.js";
import type { ConfigProblem } from "../errors.js";
import { readText } from "./dotenv.js";
import { parseText } from "./env-values.js";
import type { Field } from "./field.js";
import type { ConfigNote } from "./invariants.js";
import { addSecret, hiding } from "./known-secrets.js";
import { checkValue, printable, showValue, unknownField } from "./values.js";

export type Env = Readonly<Record<string, string | undefined>>;

/** One environment being read: what it says so far, and everything that is wrong with it. */
export interface EnvReading {
  readonly env: Env;
  readonly problems: ConfigProblem[];
  readonly notes: ConfigNote[];
  /** The text of a secret from the file that `<key>_FILE` names. Throws ConfigError. */
  readonly readFile: (path: string) => string;
  /** Values that must not appear in any text. */
  readonly secrets: Set<string>;
}

export function startReading(env: Env, readFile: (path: string) => string = readText): EnvReading {
  const secrets = new Set<string>();
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined || !/(API_KEY|DSN|SALT)$/.test(name)) continue;
    addSecret(secrets, value);
    if (name.endsWith("DSN")) for (const secret of dsnSecrets(value)) addSecret(secrets, secret);
  }
  addUrlSecrets(secrets, env.REDIS_URL);
  return { env, problems: [], notes: [], readFile, secrets };
}

/** The password of an address in every way in which it may be written. */
function addUrlSecrets(secrets: Set<string>, url: string | undefined): void {
  if (url === undefined) return;
  const read = readRedisUrl(url.trim());
  for (const secret of "problem" in read ? [] : read.secrets) addSecret(secrets, secret);
}

export interface GivenText {
  readonly key: string;
  readonly text: string;
  /** For people: secrets masked. */
  readonly shown: string;
}

/** The text of a setting, or of the file that holds its secret; undefined = not given, or reported as unreadable. */
export function textOf(reading: EnvReading, key: string, field: Field): GivenText | undefined {
  const text = reading.env[key];
  const fileKey = `${key}_FILE`;
  const path = field.secret ? reading.env[fileKey] : undefined;
  if (path === undefined) return text === undefined ? undefined : { key, text, shown: show(reading, field, text) };
  if (text !== undefined) {
    problem(reading, fileKey, path, `is given beside ${key}`, "Keep one of the two.");
    return undefined;
  }
  return readSecretFile(reading, fileKey, path, field);
}

/** The secret alone in a file, without the line end at its end; undefined after the problem was noted under `key`. */
export function readSecretFile(reading: EnvReading, key: string, path: string, field: Field): GivenText | undefined {
  try {
    const text = reading
      .readFile(path)
      .replace(/^\uFEFF/, "")
      .replace(/\r?\n$/, "");
    addSecret(reading.secrets, text);
    return { key, text, shown: show(reading, field, text) };
  } catch (error) {
    const reason = (error as { problems?: readonly ConfigProblem[] }).problems?.[0]?.problem ?? "can't be read";
    problem(
      reading,
      key,
      path,
      `names a file that ${reason}`,
      "Give the path of a readable file with the secret alone.",
    );
    return undefined;
  }
}

/** How a text is shown: by its field, and without any known secret, whatever it was put under. */
export function show(reading: EnvReading, field: Field, text: string): string {
  if (field.secret || reading.secrets.has(text.trim())) return showValue({ ...field, secret: true }, text);
  return showValue(field, hiding(reading.secrets)(text));
}

/** The value of a key nobody knows, which may be a secret under a misspelt name. */
export function showUnknown(reading: EnvReading, key: string, meant?: Field): string {
  return show(reading, unknownField(key, meant), reading.env[key] ?? "");
}

/** The path given for a secret; anything that doesn't look like one may be the secret itself. */
function problem(reading: EnvReading, key: string, path: string, what: string, remedy: string): void {
  const looksLikePath = /^(\.{0,2}|~|[A-Za-z]:)[\\/]|\.\w{1,8}$/.test(path);
  const value = looksLikePath ? printable(path) : maskSecret(path);
  reading.problems.push({ key: printable(key), value, problem: what, remedy });
}

/** Parsed and checked; undefined after the problem was noted. `given.key` names it. */
export function parseGiven(
  reading: EnvReading,
  field: Field,
  given: GivenText,
  acceptedText: string,
): { readonly value: unknown } | undefined {
  const form = parseText(field, given.text);
  const checked = "value" in form ? checkValue(field, form.value) : form;
  if ("value" in checked) return { value: checked.value };
  const remedy = `Accepted: ${acceptedText}.`;
  reading.problems.push({ key: printable(given.key), value: given.shown, problem: checked.problem, remedy });
  return undefined;
}
