/**
 * Park–Miller generator. Rules must not own randomness (spec 02 §5): a tick brings one seed and every draw
 * follows from it. Products stay below 2^53, so a Lua twin with doubles draws the same numbers.
 */
const MODULUS = 2_147_483_647;
const MULTIPLIER = 16_807;

export interface SeededRandom {
  readonly seed: number;
  /** 0 until the first draw: most ticks draw nothing. */
  state: number;
}

export function seededRandom(seed: number): SeededRandom {
  return { seed, state: 0 };
}

/** Uniform in (0, 1). */
export function draw(random: SeededRandom): number {
  random.state = nextState(presentState(random));
  return random.state / MODULUS;
}

/** For a loop of many draws, which keeps the state itself and gives it back at its end. */
export function presentState({ seed, state }: SeededRandom): number {
  return state === 0 ? (Math.abs(Math.trunc(seed)) % (MODULUS - 1)) + 1 : state;
}

export function nextState(state: number): number {
  return (state * MULTIPLIER) % MODULUS;
}

/** `jittered` by the draw that ended in this state. */
export function jitteredBy(state: number, value: number, share: number): number {
  return value * (1 - share + 2 * share * (state / MODULUS));
}

/** `value` spread by ±`share`, e.g. 0.1 for ±10 %. */
export function jittered(value: number, share: number, random: SeededRandom): number {
  return value * (1 - share + 2 * share * draw(random));
}
