/** Many small pieces that will be one text: joined now and then, since each piece that waits costs more than its letters. */

/** A waiting piece costs 8 bytes and up to 64 more for its string. */
const MOST_PIECES = 16_384;

export class TextPile {
  /** Blocks that are joined already, each of at least `MOST_PIECES` pieces. */
  #blocks: string[] = [];
  #pieces: string[] = [];
  length = 0;

  get isEmpty(): boolean {
    return this.#pieces.length === 0 && this.#blocks.length === 0;
  }

  add(piece: string): void {
    this.#pieces.push(piece);
    this.length += piece.length;
    if (this.#pieces.length < MOST_PIECES) return;
    this.#blocks.push(this.#pieces.join(""));
    this.#pieces = [];
  }

  /** The whole text; the pile is empty afterwards. Linear in the text, however many pieces it came in. */
  take(): string {
    if (this.isEmpty) return "";
    const text = [...this.#blocks, ...this.#pieces].join("");
    this.#blocks = [];
    this.#pieces = [];
    this.length = 0;
    return text;
  }
}

/**
 * Makes one block of a text that grew by `+=`: V8 keeps every piece of it, 32 bytes each, until somebody looks inside.
 * Returns the same text.
 */
export function flattened(text: string): string {
  return text.charCodeAt(0) === -1 ? "" : text;
}

const FIRST_BLOCK_PIECES = 4_096;
/** Pieces of this many letters may wait: what a piece costs beside them is little. */
const LONG_PIECE = 256;

/**
 * Says when a text that grows piece by piece is to be `flattened`. Each block is a copy of the whole text so far, so the
 * distance grows with it: else the copies of a long text would fill the memory before the collector comes.
 */
export class BlockRhythm {
  #pieces = 0;
  #letters = 0;
  #lastBlockAt = 0;

  /** One more piece was added. True: make a block now. */
  isDue(letters: number): boolean {
    this.#pieces += 1;
    this.#letters += letters;
    const waiting = this.#pieces - this.#lastBlockAt;
    if (waiting < FIRST_BLOCK_PIECES || waiting < this.#pieces / 4 || waiting < this.#letters / LONG_PIECE)
      return false;
    this.#lastBlockAt = this.#pieces;
    return true;
  }
}
