import type { Passed, Refusal } from "../domain/tick.js";
import { GatewayUnavailableError } from "../errors.js";
import type { Attempt } from "./attempt.js";
import type { Call } from "./call.js";

/**
 * The column `route` (spec 05): who was passed over and why, in the words of `perSourceReasons`, and what the call as a
 * whole waited for, which is the scope's: `*`.
 */
interface RouteEntry {
  readonly source: string;
  readonly reason: string;
  readonly waitMs: number;
}

const SCOPE = "*";

/** `waitMs` of a source: how much longer it would have taken; of `*`: how long the call has waited. */
export function attemptRoute({ call, source, grant, waitedFor, waitedMs, beside, startedMs }: Attempt): string | null {
  const entries = grant.passedOver.map(entryOf);
  // They are no candidates any more, so the governor was not asked about them.
  for (const name of call.deadHere?.keys() ?? []) {
    if (name !== source.name) entries.push({ source: name, reason: "dead", waitMs: 0 });
  }
  if (beside !== null) {
    // It is on its way, and a second one was sent beside it.
    const silentMs = Math.max(0, startedMs - beside.sentAtMs);
    entries.push({ source: beside.source.name, reason: "hedged", waitMs: Math.ceil(silentMs) });
  }
  if (waitedFor !== null && waitedMs > 0) {
    entries.push({ source: SCOPE, reason: waitReason(waitedFor), waitMs: Math.ceil(waitedMs) });
  }
  return written(entries);
}

/** Of a call that ends outside an attempt. `waitMs`: how much longer it would have been, at most. */
export function terminalRoute(call: Call, error: unknown, isCallersReason: boolean): string | null {
  const refusal = call.lastRefusal;
  const entries = isCallersReason ? (refusal?.passedOver ?? []).map(entryOf) : reasonsOf(error);
  // Of a full source its own entry tells; of a turn or a budget nothing else does.
  if (refusal?.kind === "fairness") {
    entries.push({ source: SCOPE, reason: waitReason(refusal), waitMs: Math.ceil(refusal.waitHintMs) });
  }
  return written(entries);
}

function reasonsOf(error: unknown): RouteEntry[] {
  if (!GatewayUnavailableError.isInstance(error)) return [];
  return Object.entries(error.perSourceReasons).map(([source, { reason, waitMs }]) => ({
    source,
    reason,
    waitMs: Math.ceil(waitMs),
  }));
}

const entryOf = ({ source, reason, waitMs }: Passed): RouteEntry => ({ source, reason, waitMs: Math.ceil(waitMs) });

/** A full gate by its name; of the others the word that sources have for it. */
function waitReason({ kind, gate }: Refusal): string {
  if (kind === "gate") return gate ?? kind;
  if (kind === "cooldown") return "cooling";
  return kind === "breaker" ? "breaker_open" : kind;
}

function written(entries: readonly RouteEntry[]): string | null {
  return entries.length === 0 ? null : JSON.stringify(entries);
}
