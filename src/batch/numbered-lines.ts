import { createHash } from "node:crypto";
import type { RawLine } from "./lines.js";

/** The lines of a stream without an id of their own: another one in such a place would be taken for done. */
export interface NumberedLines {
  /** Number of the last line looked at, those with ids counted too. */
  readonly upTo: number;
  readonly sha256: string;
}

export class InputChangedError extends Error {
  constructor(earlier: NumberedLines) {
    const what = earlier.upTo === 1 ? "its first line" : `something in its first ${earlier.upTo} lines`;
    super(
      `The input is not the one that the output was begun with: ${what} differs, and a line without an id is known by its number. Give the same input as before, or choose another output`,
    );
    this.name = "InputChangedError";
  }
}

export interface LineDigest {
  /** In the order of IN. Throws InputChangedError at the first line after the known ones. */
  add(raw: RawLine, isNumbered: boolean): void;
  /** Nothing comes any more. Throws InputChangedError too. */
  end(): void;
  /** What a later run has to find. */
  readonly seen: NumberedLines;
}

/** Compares a stream with what an earlier run had read of it, as far as that can be done without keeping it. */
export function createLineDigest(earlier: NumberedLines | undefined): LineDigest {
  const hash = createHash("sha256");
  let upTo = 0;
  let isSame = earlier === undefined;
  const digest = (): string => hash.copy().digest("hex");

  function compare(): void {
    if (isSame || earlier === undefined) return;
    if (digest() !== earlier.sha256) throw new InputChangedError(earlier);
    isSame = true;
  }

  return {
    add(raw, isNumbered) {
      if (earlier !== undefined && raw.number > earlier.upTo) compare();
      upTo = raw.number;
      if (isNumbered) hash.update(`${raw.number}\0${"text" in raw ? raw.text : ""}\n`);
    },
    end: compare,
    get seen() {
      // A run that didn't come so far, or that read another stream, knows nothing better.
      return earlier !== undefined && !isSame ? earlier : { upTo, sha256: digest() };
    },
  };
}
