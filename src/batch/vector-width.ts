import { BatchRefusedError } from "./types.js";

/** The one width of all vectors of an OUT: the configured one, else that of its first vector, whichever run wrote it. */
export interface VectorWidth {
  /** undefined until there is a vector. */
  readonly known: number | undefined;
  /** Whether a vector of this width may stand in OUT; the first one decides. */
  admits(width: number): boolean;
  /** A vector that OUT holds already. Throws BatchRefusedError where no other may stand beside it. */
  found(lineId: string, width: number): void;
}

export function createVectorWidth(configured?: number): VectorWidth {
  let known = configured;

  function admits(width: number): boolean {
    known ??= width;
    return width === known;
  }

  return {
    get known() {
      return known;
    },
    admits,
    found(lineId, width) {
      if (admits(width)) return;
      const other = configured === undefined ? `the lines before it have ${known}` : `${known} are configured`;
      throw new BatchRefusedError(
        "out_foreign",
        `The output holds a vector of ${width} dimensions (line ${JSON.stringify(lineId)}) where ${other}: they can't be compared with each other. Choose another output, or take the lines of the other width out of it.`,
      );
    },
  };
}

const BYTES_PER_FLOAT = 4;

/** Of a vector as it stands in OUT. */
export function writtenWidth(vector: string | readonly unknown[]): number {
  return typeof vector === "string" ? Math.floor(Buffer.byteLength(vector, "base64") / BYTES_PER_FLOAT) : vector.length;
}
