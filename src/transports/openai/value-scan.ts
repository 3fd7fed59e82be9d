import { parseJson } from "../json-weight.js";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** true, false, null and numbers are no longer than this. */
const LONGEST_SCALAR = 64;

function isBlank(unit: number): boolean {
  return unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09;
}

/**
 * Has a JSON value that arrives in pieces ended? Each piece is looked at once; the value is parsed at most once, when
 * its brackets are closed. Parsing it again with every piece would be quadratic.
 */
export class ValueScan {
  #state: "blank" | "open" | "scalar" | "closed" | "broken" = "blank";
  #depth = 0;
  #inText = false;
  #escaped = false;
  #proven = false;

  static of(text: string): ValueScan {
    const scan = new ValueScan();
    scan.feed(text);
    return scan;
  }

  feed(piece: string): void {
    for (let at = 0; at < piece.length && this.#state !== "broken" && this.#state !== "scalar"; at += 1) {
      this.#accept(piece.charCodeAt(at));
    }
  }

  /** `text` = all pieces so far. */
  isWhole(text: string): boolean {
    if (this.#state === "scalar") return text.length <= LONGEST_SCALAR && parseJson(text) !== undefined;
    if (this.#state !== "closed") return false;
    this.#proven ||= parseJson(text) !== undefined;
    if (!this.#proven) this.#state = "broken";
    return this.#proven;
  }

  #accept(unit: number): void {
    if (this.#inText) {
      if (this.#escaped) this.#escaped = false;
      else if (unit === BACKSLASH) this.#escaped = true;
      else if (unit === QUOTE) {
        this.#inText = false;
        if (this.#depth === 0) this.#state = "closed";
      }
    } else if (!isBlank(unit)) this.#acceptVisible(unit);
  }

  #acceptVisible(unit: number): void {
    if (this.#state === "closed") this.#state = "broken";
    else if (unit === QUOTE) {
      this.#inText = true;
      this.#state = "open";
    } else if (unit === 0x7b || unit === 0x5b) {
      this.#depth += 1;
      this.#state = "open";
    } else if (unit === 0x7d || unit === 0x5d) {
      this.#depth -= 1;
      this.#state = this.#depth > 0 ? "open" : this.#depth === 0 ? "closed" : "broken";
    } else if (this.#state === "blank") this.#state = "scalar";
  }
}
