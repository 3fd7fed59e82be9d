import { lowerLimit } from "../../../domain/scheduling/pacer.js";
import type { ScopeSetup } from "../../../domain/scope-state.js";
import type { LimitConfig } from "../../../domain/source.js";
import { LIMITS_FIELD, LIMITS_ID_FIELD, SCOPE_FIELD } from "./keys.js";

/** As it comes with every message. */
export interface FleetSetup extends ScopeSetup {
  /** Alike where all limits are. */
  readonly limitsId: string;
}

type Limits = Pick<LimitConfig, "maxConcurrency" | "rpm" | "tpm">;
type Dimension = keyof Limits;

const DIMENSIONS: readonly Dimension[] = ["maxConcurrency", "rpm", "tpm"];

/** By source, the scope under SCOPE_FIELD: the lowest limit, and until when it holds for those who have a higher one. */
type Known = Record<string, Record<Dimension, [limit: number, untilMs: number]>>;

/** The setup to decide with, and the fields that tell others of it: name, value and so on. */
export interface CommonLimits {
  readonly setup: ScopeSetup;
  readonly changed: readonly string[];
}

const NOTHING_NEW: readonly string[] = [];

/**
 * Processes of one scope may be configured differently while a deployment rolls: of each limit the lowest holds, as long
 * as a process that has it was here within a lease's time to live (spec 02 §3).
 */
export function commonLimits(setup: FleetSetup, stored: Record<string, string>, nowMs: number): CommonLimits {
  const { limitsId, leaseTtlMs } = setup;
  const text = stored[LIMITS_ID_FIELD];
  const [latestId, toldAtMs] = text === undefined ? ["", 0] : (cmsgpack.unpack(text) as [string, number]);
  if (latestId === limitsId && nowMs - toldAtMs < leaseTtlMs / 3) return { setup, changed: NOTHING_NEW };
  const known = latestId === limitsId ? {} : knownOf(stored[LIMITS_FIELD], nowMs);
  const lowered = { ...setup, global: lower(known, SCOPE_FIELD, setup.global, nowMs + leaseTtlMs) };
  const sources = setup.sources.map((source) => lower(known, source.name, source, nowMs + leaseTtlMs));
  // Of one mind again, or not: while they differ, each tells of itself every time.
  const differs = lowered.global !== setup.global || sources.some((source, at) => source !== setup.sources[at]);
  const id = differs || hasOthers(known, nowMs + leaseTtlMs) ? "" : limitsId;
  const changed = [LIMITS_ID_FIELD, cmsgpack.pack([id, nowMs]), LIMITS_FIELD, cmsgpack.pack(known)];
  return { setup: { ...lowered, sources }, changed };
}

function knownOf(packed: string | undefined, nowMs: number): Known {
  const known = packed === undefined ? {} : (cmsgpack.unpack(packed) as Known);
  const valid: Known = {};
  for (const name in known) {
    const limits = known[name]!;
    for (const dimension of DIMENSIONS) if (limits[dimension][1] <= nowMs) limits[dimension] = [0, 0];
    if (DIMENSIONS.some((dimension) => limits[dimension][0] > 0)) valid[name] = limits;
  }
  return valid;
}

/** Notes a process's own limits among the known ones; gives what holds, the very same object where that is its own. */
function lower<T extends Limits>(known: Known, name: string, own: T, untilMs: number): T {
  const limits = known[name] ?? { maxConcurrency: [0, 0], rpm: [0, 0], tpm: [0, 0] };
  known[name] = limits;
  let differs = false;
  const common: Record<Dimension, number> = { maxConcurrency: 0, rpm: 0, tpm: 0 };
  for (const dimension of DIMENSIONS) {
    const lowest = lowerLimit(own[dimension], limits[dimension][0]);
    if (lowest === own[dimension] && lowest > 0) limits[dimension] = [lowest, untilMs];
    else if (lowest !== own[dimension]) differs = true;
    common[dimension] = lowest;
  }
  return differs ? { ...own, ...common } : own;
}

/** Is something known that this process did not just say itself? */
function hasOthers(known: Known, untilMs: number): boolean {
  for (const name in known) {
    for (const dimension of DIMENSIONS) {
      const [limit, until] = known[name]![dimension];
      if (limit > 0 && until !== untilMs) return true;
    }
  }
  return false;
}

/** For a repair: can it be what a tick has written? */
export function areLimits(value: unknown): boolean {
  if (type(value) !== "table") return false;
  for (const name in value as Known) {
    const limits = (value as Known)[name]!;
    if (type(limits) !== "table") return false;
    for (const dimension of DIMENSIONS) {
      const entry = limits[dimension];
      if (type(entry) !== "table" || type(entry[0]) !== "number" || type(entry[1]) !== "number") return false;
    }
  }
  return true;
}
