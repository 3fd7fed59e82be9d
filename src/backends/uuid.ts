/** Asking the system for random bytes costs far more per request than per byte. */
const POOL_BYTES = 4_096;
const BYTES_PER_ID = 10;
const COUNTER_LIMIT = 0x1000;
const ID_LENGTH = 36;
const DASH = 0x2d;
/** Character codes of the hexadecimal digits. */
const DIGITS = Uint8Array.from("0123456789abcdef", (digit) => digit.charCodeAt(0));

/**
 * Returns a generator of UUIDv7 (RFC 9562 §5.7) that sort by time, also within one millisecond: the 12 bits after the
 * time are a counter with a random start (§6.2, method 1). When the counter is used up or the wall clock steps back,
 * the time of the last id goes on.
 *
 * Ids are written into one buffer and copied out whole: put together from pieces, each would keep its pieces alive.
 *
 * @param wallNow milliseconds since 1970
 * @param fillRandom fills the whole array with random bytes; asked once per 409 ids
 */
export function makeUuidV7(wallNow: () => number, fillRandom: (bytes: Uint8Array) => void): () => string {
  const pool = new Uint8Array(POOL_BYTES);
  const text = Buffer.alloc(ID_LENGTH, DASH);
  let offset = POOL_BYTES;
  let timeMs = -1;
  let counter = 0;

  function writeByte(position: number, byte: number): void {
    text[position] = DIGITS[byte >> 4]!;
    text[position + 1] = DIGITS[byte & 0x0f]!;
  }

  /** `0192f3a4-5b6c-7`: the 48-bit time and the version digit. */
  function startMillisecond(newTimeMs: number): void {
    timeMs = newTimeMs;
    const upper = Math.floor(newTimeMs / 0x1_0000);
    writeByte(0, Math.floor(upper / 0x100_0000));
    writeByte(2, (upper >> 16) & 0xff);
    writeByte(4, (upper >> 8) & 0xff);
    writeByte(6, upper & 0xff);
    writeByte(9, (newTimeMs >> 8) & 0xff);
    writeByte(11, newTimeMs & 0xff);
    text[14] = DIGITS[7]!;
    // The top bit stays free, so that at least 2,048 ids fit into this millisecond.
    counter = ((pool[offset + 8]! & 0x07) << 8) | pool[offset + 9]!;
  }

  return function uuid() {
    if (offset + BYTES_PER_ID > POOL_BYTES) {
      fillRandom(pool);
      offset = 0;
    }
    const wallMs = Math.floor(wallNow());
    if (wallMs > timeMs) startMillisecond(wallMs);
    else if (++counter === COUNTER_LIMIT) startMillisecond(timeMs + 1);
    const at = offset;
    offset += BYTES_PER_ID;
    text[15] = DIGITS[counter >> 8]!;
    writeByte(16, counter & 0xff);
    writeByte(19, (pool[at]! & 0x3f) | 0x80);
    writeByte(21, pool[at + 1]!);
    for (let index = 0; index < 6; index += 1) writeByte(24 + 2 * index, pool[at + 2 + index]!);
    return text.toString("latin1");
  };
}
