export interface HttpHeaders {
  /** First value of the header with this lower-case name. */
  get(name: string): string | undefined;
}

/** Before an answer has begun. */
export const NO_HEADERS: HttpHeaders = { get: () => undefined };

const NAME = 0;
const VALUE = 1;

/** Headers as they came from the wire (name, value, name, value…), decoded only when somebody asks. */
export function rawHeaders(raw: readonly Buffer[]): HttpHeaders {
  return new RawHeaders(raw);
}

class RawHeaders implements HttpHeaders {
  readonly #raw: readonly Buffer[];

  constructor(raw: readonly Buffer[]) {
    this.#raw = raw;
  }

  get(name: string): string | undefined {
    const raw = this.#raw;
    for (let at = 0; at + VALUE < raw.length; at += 2) {
      const found = raw[at + NAME]!;
      if (found.length !== name.length || found.toString("latin1").toLowerCase() !== name) continue;
      return raw[at + VALUE]!.toString("latin1");
    }
    return undefined;
  }
}
