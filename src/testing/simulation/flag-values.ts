/** A mistake on the command line, in words for whoever made it. */
export class FlagError extends Error {}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };

export function wholeNumber(flag: string, text: string, least: number): number {
  const value = Number(text);
  if (/^\d{1,9}$/.test(text) && value >= least) return value;
  throw new FlagError(`${flag} must be a whole number from ${least}, not "${text}".`);
}

/** `90s`, `1.5m` or `1h` in ms; 0 = it is no length of time. */
export function timeLengthMs(text: string): number {
  const match = /^(\d{1,6}(?:\.\d{1,3})?)([smh])$/.exec(text);
  return match === null ? 0 : Number(match[1]) * UNITS_MS[match[2]!]!;
}
