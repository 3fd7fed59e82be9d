const INSPECT = Symbol.for("nodejs.util.inspect.custom");

/** How a secret is shown to people: enough to recognise the key, not to use it. */
export function maskSecret(value: string): string {
  if (value.length < 12) return "…";
  const prefix = value.startsWith("sk-") ? "sk-" : "";
  return `${prefix}…${value.slice(-4)}`;
}

/** A word that people may be shown although nobody knows it; anything else may be a key that was put in its place. */
export function isPlainWord(text: string): boolean {
  if (!/^[a-z0-9._-]{1,32}$/i.test(text) || /^(sk|pk|rk)[-_]/i.test(text)) return false;
  return text.length <= 24 || !/\d/.test(text);
}

/** An unknown word for people: plain ones as they are. */
export function showWord(text: string): string {
  return isPlainWord(text) ? text : "…";
}

/** A value that never prints itself: logs, JSON and `util.inspect` show the masked form. */
export class Secret {
  readonly #value: string;
  readonly #shown: string;

  /** `shown`: what people may see of it, where that is more telling than the mask. */
  constructor(value: string, shown = maskSecret(value)) {
    this.#value = value;
    this.#shown = shown;
  }

  /** The real value; call it only where the value leaves for its owner (the Authorization header). */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return this.#shown;
  }

  toJSON(): string {
    return this.#shown;
  }

  [INSPECT](): string {
    return `Secret(${this.#shown})`;
  }
}

/** Header values are secrets too: printed or written as JSON, the object shows its names alone. Changes and returns `headers`. */
export function hideValues<T extends object>(headers: T): T {
  const names = () => Object.fromEntries(Object.keys(headers).map((name) => [name, "…"]));
  Object.defineProperty(headers, INSPECT, { value: names });
  Object.defineProperty(headers, "toJSON", { value: names });
  return headers;
}
