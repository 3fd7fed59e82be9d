import type { UpstreamLimits } from "../domain/upstream-limits.js";
import type { Runtime } from "../ports/runtime.js";
import { readUpstreamLimits } from "./rate-limit-headers.js";

export interface HttpHeaders {
  /** First value of the header with this lower-case name. */
  get(name: string): string | undefined;
  /** What they say of the account's limits; undefined = nothing. */
  limits(runtime: Pick<Runtime, "wallNow">): UpstreamLimits | undefined;
}

/** Before an answer has begun. */
export const NO_HEADERS: HttpHeaders = { get: () => undefined, limits: () => undefined };

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

  limits(runtime: Pick<Runtime, "wallNow">): UpstreamLimits | undefined {
    return readUpstreamLimits(this.#raw, runtime);
  }
}
