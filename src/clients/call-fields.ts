/** What a caller may say of any call, whatever it asks for. */
export interface CallFields {
  readonly sessionId?: unknown;
  readonly parentCallId?: unknown;
  readonly tag?: unknown;
  readonly priority?: unknown;
  readonly deadlineMs?: unknown;
}

/** What is wrong with the first field that can't be used; null = nothing. */
export function callFieldsProblem(fields: CallFields): string | null {
  const { priority, deadlineMs } = fields;
  if (!isTextOrAbsent(fields.sessionId)) return "sessionId must be a text";
  if (!isTextOrAbsent(fields.parentCallId)) return "parentCallId must be a text";
  if (!isTextOrAbsent(fields.tag)) return "tag must be a text";
  if (priority !== undefined && !Number.isFinite(priority)) return "priority must be a finite number";
  if (deadlineMs === undefined) return null;
  if (typeof deadlineMs !== "number" || Number.isNaN(deadlineMs)) return "deadlineMs must be a number";
  return deadlineMs < 0 ? "deadlineMs must not be negative" : null;
}

export function isTextOrAbsent(value: unknown): boolean {
  return value === undefined || typeof value === "string";
}

export function isSignal(value: unknown): value is AbortSignal {
  if (typeof value !== "object" || value === null) return false;
  const { aborted, addEventListener } = value as Partial<AbortSignal>;
  return typeof aborted === "boolean" && typeof addEventListener === "function";
}
