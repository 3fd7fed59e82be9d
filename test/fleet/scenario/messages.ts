import type { GatewayOptions } from "polygateway";
import type { AttemptRecord } from "../../../src/testing/simulation/records.js";

/** What provider and callers are told; plain data, for they are other processes. */
export interface ScenarioPlan {
  readonly scenario: string;
  readonly seed: number;
  /** So many times faster than the simulated time. */
  readonly scale: number;
}

export interface CallerPlan extends ScenarioPlan {
  readonly callers: number;
  readonly options: GatewayOptions;
}

export type ToCaller =
  | { readonly kind: "plan"; readonly plan: CallerPlan }
  | { readonly kind: "go" }
  /** What its caller of that number is to ask; null = nothing is left. */
  | { readonly kind: "call"; readonly caller: number; readonly index: number | null };

export type FromCaller =
  | { readonly kind: "ready" }
  | { readonly kind: "take"; readonly caller: number }
  /** How the call ended; null = answered. */
  | { readonly kind: "ended"; readonly index: number; readonly failure: string | null };

export type ToProvider =
  | { readonly kind: "plan"; readonly plan: ScenarioPlan }
  | { readonly kind: "go" }
  | { readonly kind: "report" };

/** An attempt as its provider saw it, in simulated time. */
export type SeenAttempt = Pick<AttemptRecord, "callIndex" | "source" | "startMs" | "outcome">;

export type FromProvider =
  | { readonly kind: "ready"; readonly port: number }
  | { readonly kind: "report"; readonly attempts: readonly SeenAttempt[] };

/** Which call a prompt belongs to: how long it is, and what it is answered, is known by that alone. */
export function markedPrompt(index: number, prompt: string): string {
  const mark = `#${index} `;
  return mark + prompt.slice(mark.length);
}

export function indexOf(prompt: string): number {
  return Number.parseInt(prompt.slice(1), 10);
}
