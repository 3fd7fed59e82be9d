const INSPECT = Symbol.for("nodejs.util.inspect.custom");

/** How a secret is shown to people: enough to recognise the key, not to use it. */
export function maskSecret(value: string): string {
  if (value.length < 12) return "…";
  const prefix = value.startsWith("sk-") ? "sk-" : "";
  return `${prefix}…${value.slice(-4)}`;
}

/** A value that never prints itself: logs, JSON and `util.inspect` show the masked form. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The real value; call it only where the value leaves for its owner (the Authorization header). */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return maskSecret(this.#value);
  }

  toJSON(): string {
    return maskSecret(this.#value);
  }

  [INSPECT](): string {
    return `Secret(${maskSecret(this.#value)})`;
  }
}

/** Header values are secrets too: printed or written as JSON, the object shows its names alone. Changes and returns `headers`. */
export function hideValues<T extends object>(headers: T): T {
  const names = () => Object.fromEntries(Object.keys(headers).map((name) => [name, "…"]));
  Object.defineProperty(headers, INSPECT, { value: names });
  Object.defineProperty(headers, "toJSON", { value: names });
  return headers;
}
