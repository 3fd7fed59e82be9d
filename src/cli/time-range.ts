import { InvalidArgumentError } from "commander";
import { parseDurationMs } from "./arguments.js";
import { CliError } from "./failure.js";

/** The moment `--since` means, in epoch milliseconds: `1h` before now, or a date. */
export function parseSinceMs(text: string, nowMs: number): number {
  try {
    return nowMs - parseDurationMs(text);
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    const moment = /\d{4}-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
    if (Number.isFinite(moment)) return moment;
    throw new CliError(`--since ${text}: give a length of time (90s, 15m, 1h, 7d) or a date (2025-11-29).`);
  }
}
