import type { Passed } from "../domain/tick.js";
import { GatewayUnavailableError } from "../errors.js";
import type { Attempt } from "./attempt.js";
import type { Call } from "./call.js";
import type { Wait } from "./wait-log.js";

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

/** `waitMs` of a source: how much longer it would have taken; of `*`: how long the call has waited for that. */
export function attemptRoute({ call, source, grant, waits, waitedMs, beside, startedMs }: Attempt): string | null {
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
  if (waitedMs > 0) entries.push(...waitEntries(waits, waitedMs));
  return written(entries);
}

/** What the waits don't tell, the way to the governor and the time until a start given ahead, belongs to the last one. */
function waitEntries(waits: readonly Wait[], waitedMs: number): RouteEntry[] {
  const toldMs = waits.reduce((sum, { waitMs }) => sum + waitMs, 0);
  const untoldMs = Math.max(0, waitedMs - toldMs);
  return waits.map(({ reason, waitMs }, at) => {
    const wholeMs = at === waits.length - 1 ? waitMs + untoldMs : waitMs;
    return { source: SCOPE, reason, waitMs: Math.ceil(wholeMs) };
  });
}

/** Of a call that ends outside an attempt. */
export function terminalRoute(call: Call, error: unknown, isCallersReason: boolean): string | null {
  const refusal = call.lastRefusal;
  const entries = isCallersReason ? (refusal?.passedOver ?? []).map(entryOf) : reasonsOf(error);
  const waits = call.endedWaits ?? [];
  entries.push(...waitEntries(waits, 0));
  // Of a full source its own entry tells; of a turn or a budget nothing else does.
  if (waits.length === 0 && refusal?.kind === "fairness")
    entries.push({ source: SCOPE, reason: "fairness", waitMs: 0 });
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

function written(entries: readonly RouteEntry[]): string | null {
  return entries.length === 0 ? null : JSON.stringify(entries);
}
