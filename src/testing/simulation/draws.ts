import { seededStream } from "../seeded-random.js";

/** Random numbers of one purpose; the same seed and stream give the same ones. */
export interface Draws {
  /** Uniform in [0, 1). */
  uniform(): number;
  chance(share: number): boolean;
  lognormal(median: number, sigma: number): number;
}

export function createDraws(seed: number, stream: number): Draws {
  const next = seededStream(seed, stream);
  const uniform = (): number => next() / 2 ** 32;
  /** Box–Muller; the second number of each pair is kept. */
  let kept: number | null = null;
  function normal(): number {
    if (kept !== null) {
      const value = kept;
      kept = null;
      return value;
    }
    const radius = Math.sqrt(-2 * Math.log(1 - uniform()));
    const angle = 2 * Math.PI * uniform();
    kept = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  }
  return {
    uniform,
    chance: (share) => share > 0 && uniform() < share,
    lognormal: (median, sigma) => median * Math.exp(sigma * normal()),
  };
}
