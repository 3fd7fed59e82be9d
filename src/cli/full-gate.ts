import type { SourceSnapshot } from "../domain/tick.js";
import type { StatusLimits } from "../status/status-file.js";
import { formatDuration, formatRate } from "./format.js";
import { reasonWords } from "./status-words.js";

/** Only a release frees a place, at any moment. */
const ENDS_ANY_TIME: ReadonlySet<string> = new Set(["concurrency", "global_concurrency"]);

/**
 * What a source that works is full of. Its count may be far below the limit: a limit is paced, and there is a pacer besides.
 */
export function fullText(source: SourceSnapshot, limits: StatusLimits): string {
  const { reason, waitMs } = source.passedOver!;
  const gate = fullGate(source, limits);
  return ENDS_ANY_TIME.has(reason) ? `full: ${gate}` : `full: ${gate}, next in ${formatDuration(waitMs)}`;
}

function fullGate(source: SourceSnapshot, limits: StatusLimits): string {
  const { reason } = source.passedOver!;
  const words = reasonWords(reason);
  switch (reason) {
    case "concurrency":
      return isNarrowed(source) ? "no place more for now, by its pacer or ramp" : words;
    case "rpm":
      return requestGate(source, limits) ?? words;
    case "tpm":
      if (source.tokensUsed >= inForce(limits.tpm, source.adaptive?.learnedTpm)) return words;
      if (limits.limitRule === "smooth") return "burst of tokens";
      return "no room for a usual call in the tokens of the minute";
    default:
      return words;
  }
}

function requestGate({ requestsUsed, adaptive }: SourceSnapshot, { rpm, limitRule }: StatusLimits): string | null {
  const limit = inForce(rpm, adaptive?.learnedRpm);
  const ratePerS = adaptive?.ratePerS ?? null;
  if (ratePerS !== null && (limit === 0 || ratePerS < limit / 60)) {
    return `${formatRate(ratePerS)} requests/s by its pacer`;
  }
  return limitRule === "smooth" && requestsUsed < limit ? "burst of requests" : null;
}

/** By the pacer after a 429, before it knows better, or because the source came back a moment ago. */
function isNarrowed({ maxConcurrency, adaptive }: SourceSnapshot): boolean {
  const window = adaptive?.window ?? null;
  return window !== null && (maxConcurrency === 0 || window < maxConcurrency);
}

/** The configured limit, or a lower one that the source's answers told; 0 = none. */
export function inForce(configured: number, learned: number | null | undefined): number {
  if (typeof learned !== "number" || learned <= 0) return configured;
  return configured > 0 ? Math.min(configured, learned) : learned;
}
