/** What a caller may say of any call, whatever its kind. */
export interface CommonOptions {
  readonly sessionId?: string;
  readonly parentCallId?: string;
  readonly tag?: string;
  readonly signal?: AbortSignal;
  readonly priority?: number;
  readonly failover?: "on" | "off";
  readonly deadlineMs?: number;
}

export const COMMON_OPTIONS = [
  "sessionId",
  "parentCallId",
  "tag",
  "signal",
  "priority",
  "failover",
  "deadlineMs",
] as const satisfies readonly (keyof CommonOptions)[];

/** What is wrong with them, in words that name the option; undefined = nothing. */
export function optionTrouble(given: CommonOptions): string | undefined {
  const { sessionId, parentCallId, tag, signal, priority, failover, deadlineMs } = given;
  if (failover !== undefined && failover !== "on" && failover !== "off") return "failover must be on or off";
  if (!isTextOrAbsent(sessionId)) return "sessionId must be a text";
  if (!isTextOrAbsent(parentCallId)) return "parentCallId must be a text";
  if (!isTextOrAbsent(tag)) return "tag must be a text";
  if (priority !== undefined && !Number.isFinite(priority)) return "priority must be a finite number";
  if (!isNumberOrAbsent(deadlineMs) || (deadlineMs ?? 0) < 0) return "deadlineMs must be a number, not negative";
  if (signal !== undefined && !isSignal(signal)) return "signal must be an AbortSignal";
  return undefined;
}

function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || typeof value === "string";
}

function isNumberOrAbsent(value: unknown): boolean {
  return value === undefined || (typeof value === "number" && !Number.isNaN(value));
}

function isSignal(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const { aborted, addEventListener } = value as Partial<AbortSignal>;
  return typeof aborted === "boolean" && typeof addEventListener === "function";
}
