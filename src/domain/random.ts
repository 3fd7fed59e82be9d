/**
 * Park–Miller generator. Rules must not own randomness (spec 02 §5): a tick brings one seed and every draw
 * follows from it. Products stay below 2^53, so a Lua twin with doubles draws the same numbers.
 */
const MODULUS = 2_147_483_647;
const MULTIPLIER = 16_807;

export interface SeededRandom {
  /** Uniform in (0, 1). */
  next(): number;
}

export function seededRandom(seed: number): SeededRandom {
  return new ParkMiller(seed);
}

class ParkMiller implements SeededRandom {
  readonly #seed: number;
  /** 0 until the first draw: most ticks draw nothing. */
  #state = 0;

  constructor(seed: number) {
    this.#seed = seed;
  }

  next(): number {
    if (this.#state === 0) this.#state = (Math.abs(Math.trunc(this.#seed)) % (MODULUS - 1)) + 1;
    this.#state = (this.#state * MULTIPLIER) % MODULUS;
    return this.#state / MODULUS;
  }
}

/** `value` spread by ±`share`, e.g. 0.1 for ±10 %. */
export function jittered(value: number, share: number, random: SeededRandom): number {
  return value * (1 - share + 2 * share * random.next());
}
