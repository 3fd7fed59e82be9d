/**
 * The forms in which a text may hold a secret: as it is, in base64 at any place of a longer value, in hex, percent-encoded,
 * and with any of its characters written as a JSON, JavaScript, URL or HTML escape.
 */

export interface EncodedForms {
  /** Longest first. */
  readonly forms: readonly string[];
  /** Where none of these is, no longer form is either. */
  readonly cores: readonly string[];
  readonly shortest: number;
}

/** Every form that is one fixed text. */
export function encodedForms(secrets: readonly string[]): EncodedForms {
  const forms = [...new Set(secrets.flatMap(formsOf))].sort((a, b) => b.length - a.length);
  const cores = forms.filter((form) => !forms.some((other) => other !== form && form.includes(other)));
  return { forms, cores, shortest: Math.min(...cores.map((core) => core.length)) };
}

const HTML: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;" };

function formsOf(secret: string): string[] {
  const hex = Buffer.from(secret).toString("hex");
  const json = JSON.stringify(secret).slice(1, -1);
  const html = secret.replace(/[&<>"']/g, (character) => HTML[character] ?? character);
  const forms = [secret, json, json.replaceAll("/", "\\/"), html, hex, hex.toUpperCase(), ...base64Forms(secret)];
  try {
    forms.push(encodeURIComponent(secret));
  } catch {
    // A lone surrogate has no URL form.
  }
  return forms;
}

/** Shorter ones would be found in any base64 text. */
const SHORTEST_BASE64 = 8;

/**
 * Inside a longer value ("user:key", a whole header, a JSON object) the same bytes have one of three forms, by how many
 * stand before them. The characters that also hold bits of a neighbour are left out.
 */
function base64Forms(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const inside = [0, 1, 2].map((before) => {
    const whole = Buffer.concat([Buffer.alloc(before), bytes]);
    const from = Math.ceil((before * 8) / 6);
    const to = Math.floor((whole.length * 8) / 6);
    return whole.toString("base64").slice(from, to);
  });
  return [bytes.toString("base64"), ...inside]
    .filter((form) => form.length >= SHORTEST_BASE64)
    .flatMap((form) => [form, form.replaceAll("+", "-").replaceAll("/", "_")]);
}

function quoted(character: string): string {
  return character.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}

/** Digits in either case. */
function hexDigits(value: number, length: number): string {
  const digits = value.toString(16).padStart(length, "0");
  return digits.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
}

/** One UTF-16 unit, escaped or plain. Of two that begin alike the longer comes first; each is tried once at a place. */
function unitPattern(character: string): string {
  const unit = character.charCodeAt(0);
  const inByte = unit < 256 ? `|x${hexDigits(unit, 2)}` : "";
  const patterns = [`\\\\{1,8}(?:u${hexDigits(unit, 4)}${inByte})`];
  if (unit < 128) patterns.push(`%(?:25){0,3}${hexDigits(unit, 2)}`);
  patterns.push(`&#(?:0{0,6}${unit}|[xX]0{0,6}${hexDigits(unit, 1)});`);
  if (character === '"' || character === "/") patterns.push(`\\\\{1,8}${quoted(character)}`);
  return `(?:${[...patterns, quoted(character)].join("|")})`;
}

/** Beyond latin-1 no header value goes; longer values are found by their first characters. */
const LONGEST_PATTERN = 512;

/** Finds the secrets with any of their characters escaped; undefined without secrets. */
export function escapedPattern(secrets: readonly string[]): RegExp | undefined {
  if (secrets.length === 0) return undefined;
  const longestFirst = [...secrets].sort((a, b) => b.length - a.length);
  const patterns = longestFirst.map((secret) => secret.slice(0, LONGEST_PATTERN).split("").map(unitPattern).join(""));
  return new RegExp(patterns.join("|"), "g");
}
