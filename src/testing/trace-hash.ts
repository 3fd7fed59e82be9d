/** A running 64-bit fingerprint of what happened, in order. */
export interface TraceHash {
  addNumber(value: number): void;
  addText(text: string): void;
  /** 16 hexadecimal digits. */
  digest(): string;
}

export function createTraceHash(): TraceHash {
  const float = new Float64Array(1);
  const words = new Uint32Array(float.buffer);
  let low = 0x811c9dc5;
  let high = 0x9747b28c;

  function addWord(word: number): void {
    low = Math.imul(low ^ word, 0x01000193);
    low ^= low >>> 15;
    high = Math.imul(high ^ (word + low), 0x5bd1e995);
    high ^= high >>> 13;
  }

  function addNumber(value: number): void {
    float[0] = value;
    addWord(words[0]!);
    addWord(words[1]!);
  }

  function addText(text: string): void {
    for (let index = 0; index < text.length; index++) addWord(text.charCodeAt(index));
    addWord(text.length);
  }

  function hex(word: number): string {
    return (word >>> 0).toString(16).padStart(8, "0");
  }

  return { addNumber, addText, digest: () => hex(high) + hex(low) };
}
