/** Two hexadecimal digits for every byte. */
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Asking the system for random bytes costs far more per request than per byte. */
const POOL_BYTES = 4_096;
const BYTES_PER_ID = 10;
const COUNTER_LIMIT = 0x1000;

/** `0192f3a4-5b6c-7` and so on: the 48-bit time and the version digit. */
function timePrefix(timeMs: number): string {
  const hex = timeMs.toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7`;
}

/**
 * Returns a generator of UUIDv7 (RFC 9562 §5.7) that sort by time, also within one millisecond: the 12 bits after the
 * time are a counter with a random start (§6.2, method 1). When the counter is used up or the wall clock steps back,
 * the time of the last id goes on.
 *
 * @param wallNow milliseconds since 1970
 * @param fillRandom fills the whole array with random bytes; asked once per 409 ids
 */
export function makeUuidV7(wallNow: () => number, fillRandom: (bytes: Uint8Array) => void): () => string {
  const pool = new Uint8Array(POOL_BYTES);
  let offset = POOL_BYTES;
  let timeMs = -1;
  let prefix = "";
  let counter = 0;

  function startMillisecond(newTimeMs: number): void {
    timeMs = newTimeMs;
    prefix = timePrefix(newTimeMs);
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
    const counterHex = HEX[counter >> 4]! + HEX[(counter & 0x0f) << 4]!.charAt(0);
    const variant = HEX[(pool[at]! & 0x3f) | 0x80]! + HEX[pool[at + 1]!]!;
    const node = HEX[pool[at + 2]!]! + HEX[pool[at + 3]!]! + HEX[pool[at + 4]!]!;
    return `${prefix}${counterHex}-${variant}-${node}${HEX[pool[at + 5]!]!}${HEX[pool[at + 6]!]!}${HEX[pool[at + 7]!]!}`;
  };
}
