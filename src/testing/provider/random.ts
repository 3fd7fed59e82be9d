import { seededStream } from "../seeded-random.js";

/** Seeded randomness: each request has a generator of its own, so that its fate never depends on how others drew. */
export type Draw = () => number;

function mix(value: number): number {
  let h = value | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Uniform draws in [0, 1) for the `ordinal`-th request of a seed. */
export function drawsFor(seed: number, ordinal: number): Draw {
  const next = seededStream(seed, ordinal);
  return () => next() / 4294967296;
}

/** One lognormal draw (Box–Muller): half of all draws lie below the median. */
export function lognormal(draw: Draw, median: number, sigma: number): number {
  if (median <= 0 || sigma <= 0) return Math.max(0, median);
  const normal = Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw());
  return median * Math.exp(sigma * normal);
}

/** FNV-1a over UTF-16 units: a short fingerprint of a text, no security meant. */
export function fingerprint(text: string): string {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return mix(h).toString(16).padStart(8, "0");
}
