/** A stream of uniform 32-bit integers; the same seeds give the same stream. */
export type RandomStream = () => number;

/** SplitMix32's finaliser: spreads neighbouring seeds over all bits. */
function scramble(value: number): number {
  let mixed = (value + 0x9e3779b9) | 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
  return (mixed ^ (mixed >>> 15)) >>> 0;
}

/** sfc32 (PractRand's small fast counter), warmed up. Two numbers as seed: a run's seed and the stream's own number. */
export function seededStream(seed: number, stream: number): RandomStream {
  let a = scramble(seed);
  let b = scramble(stream ^ a);
  let c = scramble(a ^ Math.floor(seed / 2 ** 32));
  let counter = 1;
  function next(): number {
    const sum = (a + b + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = ((c << 21) | (c >>> 11)) + sum;
    return sum >>> 0;
  }
  for (let round = 0; round < 12; round++) next();
  return next;
}
