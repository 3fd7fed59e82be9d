import type { SourceReason } from "../errors.js";
import type { Standing } from "./scope-state.js";
import { GATE_NAMES, type GateName, type Passed, type Refusal, type Want } from "./tick.js";

/** How a refusal, or a grant elsewhere, is explained. */

/** Reasons that may end at any moment: their wait is a bound, not a prediction. */
export function endsAnyTime(reason: SourceReason): boolean {
  return reason === "concurrency" || reason === "global_concurrency" || reason === "half_open";
}

export const NONE_PASSED: readonly Passed[] = [];

function isGate(reason: SourceReason): reason is GateName {
  return (GATE_NAMES as readonly string[]).includes(reason);
}

/** `prefetchMs`: permits are given so long ahead, so it is worth asking half of that before the slot. */
export function refuse(
  want: Want,
  all: readonly Standing[],
  standings: readonly Standing[],
  prefetchMs: number,
): Refusal {
  let nearest: Standing | null = null;
  for (const standing of standings) {
    if (nearest === null || standing.waitMs < nearest.waitMs) nearest = standing;
  }
  const passed = passedOver(all, standings, null);
  if (nearest === null || nearest.waitMs === Infinity) {
    return { leaseId: want.leaseId, kind: "never", waitHintMs: 0, passedOver: passed, ...gateOf(nearest) };
  }
  return {
    leaseId: want.leaseId,
    kind: refusalKind(nearest.reason),
    waitHintMs: askAgainMs(nearest, prefetchMs),
    passedOver: passed,
    ...gateOf(nearest),
  };
}

/** A breaker is asked again exactly when it may be probed, a slot early enough to be given ahead. */
function askAgainMs({ waitMs, reason }: Standing, prefetchMs: number): number {
  const isSlot = refusalKind(reason) !== "breaker";
  return isSlot && waitMs > prefetchMs ? waitMs - prefetchMs / 2 : waitMs;
}

/** For what is no source's doing: turns, budgets, deadlines. */
export function refuseFor(
  kind: "fairness" | "deadline",
  want: Want,
  waitHintMs: number,
  standings: readonly Standing[],
): Refusal {
  return { leaseId: want.leaseId, kind, waitHintMs, passedOver: passedOver(standings, standings, null) };
}

function gateOf(standing: Standing | null): { gate?: GateName } {
  const reason = standing?.reason ?? null;
  return reason !== null && isGate(reason) ? { gate: reason } : {};
}

function refusalKind(reason: SourceReason | null): Refusal["kind"] {
  if (reason === "cooling") return "cooldown";
  return reason !== null && isGate(reason) ? "gate" : "breaker";
}

/** Whom the decision passed over and why: what could not start, and what failed in this call. */
export function passedOver(
  all: readonly Standing[],
  considered: readonly Standing[],
  chosen: Standing | null,
): readonly Passed[] {
  const isWhole = considered === all;
  let passed: Passed[] | null = null;
  for (const standing of all) {
    if (isWhole && standing.waitMs === 0) continue;
    if (standing === chosen) continue;
    const left = !isWhole && !considered.includes(standing);
    if (standing.waitMs === 0 && !left) continue;
    passed ??= [];
    passed.push(describePassed(standing, left));
  }
  return passed ?? NONE_PASSED;
}

function describePassed({ source, waitMs, reason }: Standing, failedHere: boolean): Passed {
  const { lastError } = source;
  return {
    source: source.config.name,
    reason: failedHere && waitMs === 0 ? "failed_in_call" : (reason ?? "failed_in_call"),
    waitMs: Number.isFinite(waitMs) ? waitMs : 0,
    ...(lastError === null ? {} : { lastError }),
  };
}
