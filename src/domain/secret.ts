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
