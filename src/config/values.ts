import { givenKind } from "../domain/given-value.js";
import { dsnProblem, isPostgresDsn, shownDsn } from "../domain/postgres-dsn.js";
import { REDIS_URL_FORM, readRedisUrl } from "../domain/redis-address.js";
import { hideValues, maskSecret, Secret } from "../domain/secret.js";
import type { Field } from "./field.js";
import { canBeSent } from "./header-names.js";
import { checkThinking, THINKING_ACCEPTED } from "./thinking-value.js";

/** A value that fits its field, or what is wrong with it. */
export type Checked = { readonly value: unknown } | { readonly problem: string };

/** Scope and source names: they become part of store keys and file names. */
export const NAME_PATTERN = /^[A-Za-z0-9_.-]{1,64}$/;
const NAME_ACCEPTED = "1 to 64 of the characters A-Z a-z 0-9 _ . -";

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what these look for
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: a header line must not be split
const HEADER_VALUE_FORBIDDEN = /[\u0000-\u0008\u000a-\u001f\u007f]|[^\u0000-\u00ff]/;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const POLLUTING_KEYS = new Set(["__proto__", "constructor", "prototype"]);

/** The same rules for constructor values and for parsed environment text (spec 07). */
export function checkValue(field: Field, value: unknown): Checked {
  switch (field.kind) {
    case "duration":
    case "number":
    case "integer":
      return checkNumber(field, value);
    case "flag":
      return typeof value === "boolean" ? { value } : { problem: "is not true or false" };
    case "choice":
      return checkChoice(field, value);
    case "list":
      return checkList(field, value);
    case "name":
      return typeof value === "string" && NAME_PATTERN.test(value) ? { value } : { problem: "is not a valid name" };
    case "text":
      return checkText(field, value);
    case "prompt":
      return checkText(field, typeof value === "string" ? value.replace(/[\n\r\t]/g, " ") : value, value);
    case "url":
      return checkUrl(value);
    case "secret":
      return checkSecret(value);
    case "dsn":
      return checkDsn(value);
    case "redis_url":
      return checkRedisUrl(value);
    case "object":
      return checkObject(value);
    case "headers":
      return checkHeaders(value);
    case "transient400":
      return checkTransient400(value);
    case "profile":
      return isPlainObject(value) ? { value } : checkText(field, value);
    case "thinking":
      return checkThinking(value);
  }
}

function checkNumber(field: Field, value: unknown): Checked {
  if (typeof value !== "number") return { problem: "is not a number" };
  if (!Number.isFinite(value)) return { problem: "is not a finite number" };
  if (field.kind === "integer" && !Number.isInteger(value)) return { problem: "is not a whole number" };
  const tooLow = value < (field.min ?? 0) || (field.above !== undefined && value <= field.above);
  if (tooLow || value > (field.max ?? Number.MAX_SAFE_INTEGER)) return { problem: "is out of range" };
  return { value };
}

function checkChoice(field: Field, value: unknown): Checked {
  if (typeof value !== "string" || !field.choices?.includes(value)) return { problem: "is not one of the choices" };
  if (field.available?.includes(value) === false) return { problem: "is not available in this version" };
  return { value };
}

function checkList(field: Field, value: unknown): Checked {
  if (!Array.isArray(value)) return { problem: "is not a list" };
  for (const entry of value) {
    const checked = checkChoice(field, entry);
    if ("problem" in checked)
      return { problem: `has ${showValue({ ...field, kind: "text" }, entry)}, which ${checked.problem}` };
  }
  return { value: [...new Set(value)] };
}

/** `kept` = what is taken, where only a form of it is judged. */
function checkText(field: Field, value: unknown, kept = value): Checked {
  if (typeof value !== "string") return { problem: "is not a text" };
  if (value.trim() === "" && !field.mayBeEmpty) return { problem: "is empty" };
  if (CONTROL.test(value)) return { problem: "has control characters" };
  return { value: kept };
}

function checkUrl(value: unknown): Checked {
  if (typeof value !== "string" || value.trim() === "") return { problem: "is empty" };
  if (CONTROL.test(value) || /\s/.test(value)) return { problem: "has spaces or control characters" };
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (!url || !/^https?:\/\//i.test(value)) return { problem: "is not an http(s) address" };
  if (url.username !== "" || url.password !== "") return { problem: "has a user name or password in it" };
  if (value.includes("?") || value.includes("#")) return { problem: "has a query or a fragment" };
  return { value: value.replace(/\/+$/, "") };
}

function checkSecret(value: unknown): Checked {
  const text = value instanceof Secret ? value.reveal() : value;
  if (typeof text !== "string") return { problem: "is not a text" };
  if (text.trim() === "") return { problem: "is empty" };
  if (CONTROL.test(text)) return { problem: "has a line end or another control character" };
  if (text !== text.trim()) return { problem: "has spaces around it" };
  if (HEADER_VALUE_FORBIDDEN.test(text)) return { problem: "has characters that no HTTP header can carry" };
  return { value: value instanceof Secret ? value : new Secret(text) };
}

function checkDsn(value: unknown): Checked {
  const text = value instanceof Secret ? value.reveal() : value;
  if (typeof text !== "string") return { problem: "is not a text" };
  if (CONTROL.test(text)) return { problem: "has a line end or another control character" };
  const problem = dsnProblem(text);
  return problem === null ? { value: new Secret(text.trim(), shownDsn(text)) } : { problem };
}

/** Whether it is an address is asked where it is used: REDIS_URL may be meant for another program (cache.ts). */
function checkRedisUrl(value: unknown): Checked {
  const text = value instanceof Secret ? value.reveal() : value;
  if (typeof text !== "string") return { problem: "is not a text" };
  return text.trim() === "" ? { problem: "is empty" } : { value: new Secret(text.trim()) };
}

function checkTransient400(value: unknown): Checked {
  if (value === "off" || value === "relay") return { value };
  if (!(value instanceof RegExp)) return { problem: "is neither off, relay nor a pattern" };
  // Such a pattern remembers where its last match ended, so the same body would match only every other time.
  return value.global || value.sticky ? { problem: "has the flag g or y" } : { value };
}

export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function checkObject(value: unknown): Checked {
  if (!isPlainObject(value)) return { problem: "is not an object" };
  const polluting = Object.keys(value).find((key) => POLLUTING_KEYS.has(key));
  if (polluting) return { problem: `has the field "${polluting}", which is refused` };
  return { value: { ...value } };
}

function checkHeaders(value: unknown): Checked {
  const checked = checkObject(value);
  if ("problem" in checked) return checked;
  for (const [name, content] of Object.entries(checked.value as Record<string, unknown>)) {
    if (!HEADER_NAME.test(name))
      return { problem: `has the header name "${printable(name)}", which HTTP doesn't allow` };
    if (!canBeSent(name)) return { problem: `has the header "${name}", which the HTTP client sets itself` };
    if (typeof content !== "string") return { problem: `has a value for "${name}" that is not a text` };
    if (HEADER_VALUE_FORBIDDEN.test(content))
      return { problem: `has a value for "${name}" that no HTTP header can carry` };
  }
  return { value: hideValues(checked.value as object) };
}

/** `seconds`: durations as the environment writes them; `ms`: as the constructor takes them. */
export type Notation = "seconds" | "ms";

/** What a field takes, for people. */
export function accepted(field: Field, notation: Notation): string {
  switch (field.kind) {
    case "duration":
      return notation === "seconds"
        ? `seconds ${range(field, 1_000)}, without a unit`
        : `milliseconds ${range(field, 1)}`;
    case "number":
      return `${field.unit ?? "a number"} ${range(field, 1)}`;
    case "integer":
      return `a whole number ${field.unit === undefined ? "" : `of ${field.unit} `}${range(field, 1)}`;
    case "flag":
      return notation === "seconds" ? "on or off (also true, false, 1, 0)" : "true or false";
    case "choice":
      return `${words(field).includes(",") ? "one of" : "only"} ${words(field)}`;
    case "list":
      return `none, or a list with commas of ${words(field)}`;
    case "name":
      return NAME_ACCEPTED;
    case "text":
      return "a text on one line";
    case "prompt":
      return "a text, of several lines too";
    case "url":
      return "an address like https://host/v1, without user, password, query and fragment";
    case "secret":
      return "the key alone on one line, or none for servers without keys";
    case "dsn":
      return "an address like postgres://user:password@host:5432/database";
    case "redis_url":
      return `an address like ${REDIS_URL_FORM}`;
    case "object":
      return notation === "seconds" ? 'a JSON object like {"top_k": 20}' : "a plain object";
    case "headers":
      return notation === "seconds" ? 'a JSON object like {"x-team": "search"}' : "a plain object of texts";
    case "transient400":
      return notation === "seconds" ? "off, relay or /pattern/" : '"off", "relay" or a RegExp';
    case "profile":
      return notation === "seconds"
        ? 'a name (docs/providers.md), or a JSON object laid over one, like {"extends": "glm", "streamOptions": false}'
        : 'a name (docs/providers.md), or an object laid over one, like { extends: "glm", streamOptions: false }';
    case "thinking":
      return THINKING_ACCEPTED[notation];
  }
}

function words(field: Field): string {
  return (field.available ?? field.choices ?? []).join(", ");
}

const SECRET_NAME = /key|secret|token|pass|dsn|auth|salt|cred/i;

/** Stands in for a name nobody knows: its value is masked when that name, or the one that was meant, sounds like a secret. */
export function unknownField(name: string, meant?: Field): Field {
  const { kind, secret } = meant ?? { kind: "text", secret: false };
  return { kind, fallback: undefined, secret: secret === true || SECRET_NAME.test(name), text: "" };
}

/** The range alone, e.g. `from 0 to 3600`. */
function range(field: Field, divisor: number): string {
  const low = field.above === undefined ? `from ${(field.min ?? 0) / divisor}` : `above ${field.above / divisor}, up`;
  return `${low} to ${(field.max ?? Number.MAX_SAFE_INTEGER) / divisor}`;
}

/** Escapes what could garble a terminal or a log line. */
export function printable(text: string): string {
  const escaped = text.replace(new RegExp(CONTROL, "g"), escapeCharacter);
  return escaped.length > 100 ? `${escaped.slice(0, 80)}… (${escaped.length} characters)` : escaped;
}

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

const HARMLESS = /^[+-]?\d{1,10}(\.\d{1,10})?$|^(on|off|true|false|yes|no|none|null|nan|infinity|-infinity)$/i;
const KEY_IN_TEXT = /\b(sk|pk|rk)-[\w-]{8,}/gi;
const KEY_LIKE = /(^|[^a-z])(sk|pk|rk|key|token|bearer|basic)[-_ ]\S{4,}|^[A-Za-z0-9+/_=.-]{24,}$/i;

/** How a given value is shown: never a secret, nor what might be one that landed under a wrong name. */
export function showValue(field: Field, value: unknown): string {
  if (value instanceof Secret) return value.toString();
  // Its end may be a password: the place alone is shown.
  if (field.kind === "dsn" && typeof value === "string" && value.trim() !== "")
    return isPostgresDsn(value.trim()) ? shownDsn(value) : `(${value.length} characters)`;
  // The same; what is broken may be a password in the wrong place.
  if (field.kind === "redis_url" && typeof value === "string" && value.trim() !== "") {
    const read = readRedisUrl(value.trim());
    return "problem" in read ? `(${value.length} characters)` : read.shown;
  }
  if (typeof value === "number" && field.secret) return maskSecret(String(value));
  if (typeof value !== "string") return showOther(value);
  if (value.trim() === "") return '""';
  if (field.kind === "object" || field.kind === "headers" || value.startsWith("{"))
    return `(${value.length} characters)`;
  if (field.secret) return maskSecret(value.trim());
  if (field.kind === "url")
    return KEY_LIKE.test(value) && !value.includes("/")
      ? maskSecret(value)
      : printable(withoutUserinfo(value).replace(/([?#]).*$/s, "$1…"));
  if (HARMLESS.test(value.trim())) return value.trim();
  if (KEY_LIKE.test(value)) return maskSecret(value.trim());
  return printable(withoutUserinfo(value));
}

/** The same for values written in code: "60" is seen to be a text. */
export function quoted(field: Field, value: unknown): string {
  const shown = showValue(field, value);
  return typeof value === "string" && shown !== '""' ? `"${shown}"` : shown;
}

function showOther(value: unknown): string {
  return value instanceof RegExp ? printable(String(value)) : givenKind(value);
}

/** Hides `user:password@` and the query of anything address-like, even when it can't be parsed. */
function withoutUserinfo(text: string): string {
  const withoutUser = text.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, "$1…@").replace(KEY_IN_TEXT, maskSecret);
  if (withoutUser.includes("://")) return withoutUser.replace(/\?.*$/s, "?…");
  return withoutUser.replace(/([?&#;][\w.~-]+=)[^&#\s]*/g, "$1…");
}

export function hasMethods(value: unknown, methods: readonly string[]): boolean {
  if (typeof value !== "object" || value === null) return false;
  return methods.every((method) => typeof (value as Record<string, unknown>)[method] === "function");
}
