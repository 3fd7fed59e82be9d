import { callFieldsProblem, isSignal } from "./call-fields.js";

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
  const { signal, failover } = given;
  if (failover !== undefined && failover !== "on" && failover !== "off") return "failover must be on or off";
  if (signal !== undefined && !isSignal(signal)) return "signal must be an AbortSignal";
  return callFieldsProblem(given) ?? undefined;
}
