/** What a caller may say of any call, whatever it asks for. */
export interface CommonOptions {
  readonly sessionId?: string;
  readonly parentCallId?: string;
  readonly tag?: string;
  readonly signal?: AbortSignal;
  readonly priority?: number;
  readonly failover?: "on" | "off";
  readonly deadlineMs?: number;
}

const MOST_TAG_LETTERS = 1_000;

export const COMMON_OPTIONS = [
  "sessionId",
  "parentCallId",
  "tag",
  "signal",
  "priority",
  "failover",
  "deadlineMs",
] as const satisfies readonly (keyof CommonOptions)[];

/** What is wrong with the first one that can't be used, in words that name it; undefined = nothing. */
export function optionTrouble(given: Readonly<Partial<Record<keyof CommonOptions, unknown>>>): string | undefined {
  const { signal, failover, priority, deadlineMs } = given;
  if (failover !== undefined && failover !== "on" && failover !== "off") return "failover must be on or off";
  if (signal !== undefined && !isSignal(signal)) return "signal must be an AbortSignal";
  for (const name of ["sessionId", "parentCallId", "tag"] as const) {
    if (!isTextOrAbsent(given[name])) return `${name} must be a text`;
  }
  // It goes to the limits with each call, to Redis where they are shared.
  if (typeof given.tag === "string" && given.tag.length > MOST_TAG_LETTERS)
    return `tag must have at most ${MOST_TAG_LETTERS} letters`;
  if (priority !== undefined && !Number.isFinite(priority)) return "priority must be a finite number";
  if (deadlineMs === undefined) return undefined;
  if (typeof deadlineMs !== "number" || Number.isNaN(deadlineMs)) return "deadlineMs must be a number";
  return deadlineMs < 0 ? "deadlineMs must not be negative" : undefined;
}

export function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || typeof value === "string";
}

export function isSignal(value: unknown): value is AbortSignal {
  if (typeof value !== "object" || value === null) return false;
  const { aborted, addEventListener } = value as Partial<AbortSignal>;
  return typeof aborted === "boolean" && typeof addEventListener === "function";
}
