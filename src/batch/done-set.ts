/**
 * A set of ids that keeps 64 bits of each: 16 bytes an id on average, whatever the ids look like.
 * Two different ids are taken for one with a probability of 3 in a million over 10 million ids (birthday bound n²/2⁶⁵).
 */
export interface IdSet {
  readonly size: number;
  /** false when it was there already. */
  add(id: string): boolean;
  has(id: string): boolean;
}

const FIRST_CAPACITY = 1024;

export function createIdSet(): IdSet {
  let capacity = FIRST_CAPACITY;
  // Pairs (high, low) in one open-addressed table with linear probing; (0, 0) = free.
  let table = new Uint32Array(capacity * 2);
  let size = 0;

  function grow(): void {
    const old = table;
    capacity *= 2;
    table = new Uint32Array(capacity * 2);
    for (let at = 0; at < old.length; at += 2) {
      const high = old[at]!;
      const low = old[at + 1]!;
      if (high === 0 && low === 0) continue;
      const free = find(table, high, low);
      table[free] = high;
      table[free + 1] = low;
    }
  }

  return {
    get size() {
      return size;
    },
    add(id) {
      const high = hash(id);
      const at = find(table, high, hashedLow);
      if (table[at] !== 0 || table[at + 1] !== 0) return false;
      table[at] = high;
      table[at + 1] = hashedLow;
      size++;
      // Linear probing stays short up to 70 % full.
      if (size > capacity * 0.7) grow();
      return true;
    },
    has(id) {
      const at = find(table, hash(id), hashedLow);
      return table[at] !== 0 || table[at + 1] !== 0;
    },
  };
}

/** Where the pair stands, or the free place where it belongs. */
function find(table: Uint32Array, high: number, low: number): number {
  const mask = table.length - 1;
  let at = (low << 1) & mask;
  while (!(table[at] === high && table[at + 1] === low) && !(table[at] === 0 && table[at + 1] === 0)) {
    at = (at + 2) & mask;
  }
  return at;
}

/** Second half of the last hash: returning a pair would allocate once per line. */
let hashedLow = 0;

/** Two MurmurHash3-style lanes with different constants over the UTF-16 units, mixed at the end. Never (0, 0). */
function hash(text: string): number {
  let a = 0x9747b28c ^ text.length;
  let b = 0x85ebca6b ^ text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    a ^= rotateAndMultiply(unit, 0xcc9e2d51, 15, 0x1b873593);
    a = (Math.imul((a << 13) | (a >>> 19), 5) + 0xe6546b64) | 0;
    b ^= rotateAndMultiply(unit, 0x239b961b, 17, 0xab0e9789);
    b = (Math.imul((b << 19) | (b >>> 13), 5) + 0x561ccd1b) | 0;
  }
  a = finish((a + b) | 0);
  b = finish((b + a) | 0);
  hashedLow = a === 0 && b === 0 ? 1 : b >>> 0;
  return a >>> 0;
}

function rotateAndMultiply(unit: number, first: number, turn: number, second: number): number {
  const product = Math.imul(unit, first);
  return Math.imul((product << turn) | (product >>> (32 - turn)), second);
}

function finish(value: number): number {
  let mixed = value ^ (value >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
