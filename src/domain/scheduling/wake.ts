import type { StoreClock } from "../gates/gate.js";
import type { ScopeState } from "../scope-state.js";
import { hasRoomNow } from "../standing.js";
import type { SourceName } from "../tick.js";
import { nextInLine } from "./fairness.js";
import { lowerClassIsDue } from "./line.js";

/**
 * Whom permits that came back wake (spec 10 §6 "Targeted wake"): one process, the next in line, and only when what came
 * back can be used now; at a limit of requests or tokens its own timer brings it. Everybody where turns are not kept or one
 * process is alone.
 */
export function wokenBy(
  state: ScopeState,
  released: readonly SourceName[],
  worker: string,
  clock: StoreClock,
): { readonly source: SourceName; readonly worker?: string } | null {
  const [first] = released;
  if (first === undefined) return null;
  if (!state.scheduling.fairness || state.workers.size <= 1) return { source: first };
  const next = nextInLine(state.workers, state.workers.get(worker) ?? null, lowerClassIsDue(state), clock.nowMs);
  if (next === null) return { source: first };
  const usable = released.find((name) => hasRoomNow(state, state.sources.get(name)!, clock));
  return usable === undefined ? null : { source: usable, worker: next };
}
