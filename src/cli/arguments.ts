import { InvalidArgumentError } from "commander";

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `15m`, `30s`, `1.5h`: above 0, with its unit, since a forgotten one would make minutes or days of seconds. */
export function parseDurationMs(text: string): number {
  if (/^\s*\d[\d.]*\s*$/.test(text)) throw new InvalidArgumentError("Give the unit too, such as 90s, 15m, 2h or 30d.");
  const [, amount, unit = ""] = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*$/.exec(text) ?? [];
  const durationMs = Number(amount) * (UNIT_MS[unit] ?? Number.NaN);
  if (!(durationMs > 0)) throw new InvalidArgumentError("Give a length of time above 0, such as 90s, 15m or 2h.");
  return durationMs;
}

/** A whole number of at least 1. */
export function parseCount(text: string): number {
  const value = Number(text);
  if (!/^\s*\d+\s*$/.test(text) || !Number.isSafeInteger(value) || value < 1) {
    throw new InvalidArgumentError("Give a whole number of at least 1.");
  }
  return value;
}

/** An empty path is mostly a variable of a script that is not set: the current folder or none is never meant. */
export function parsePath(text: string): string {
  if (text.trim() === "") throw new InvalidArgumentError("It is empty. Give a path, or leave the option out.");
  return text;
}

/** For every command that is configured. */
export const CONFIG_OPTION = [
  "--config <file>",
  "YAML or JSON configuration (default: polygateway.yaml in the current folder, if there is one)",
  parsePath,
] as const;

export const ENV_OPTION = [
  "--env <file>",
  "dotenv file (default: .env in the current folder, if there is one)",
  parsePath,
] as const;
