import type { Governor } from "../ports/governor.js";
import type { Runtime } from "../ports/runtime.js";
import { askGovernor } from "./backend-errors.js";

/** How long ago anything in the scope made progress: the governor's word, or this process's own when that is newer. */
export interface Progress {
  /** A success or first token of this process; the governor may not have heard of it yet. */
  note(nowMs: number): void;
  /** Throws or rejects with GovernanceBackendError when the governor can't say. */
  ageMs(): number | Promise<number>;
  /** null where the governor would have to be waited for, or fails. */
  knownAgeMs(): number | null;
}

export function createProgress(governor: Governor, runtime: Runtime): Progress {
  let newestMs = Number.NEGATIVE_INFINITY;
  const withOwn = (ageMs: number): number => Math.min(ageMs, runtime.now() - newestMs);
  return {
    note(nowMs) {
      newestMs = nowMs;
    },
    ageMs() {
      const age = askGovernor("progress age", governor.scope, () => governor.progressAgeMs());
      return age instanceof Promise ? age.then(withOwn) : withOwn(age);
    },
    knownAgeMs() {
      try {
        const ageMs = governor.progressAgeMs();
        if (typeof ageMs === "number") return withOwn(ageMs);
        // Nobody waits for this answer; its failure must not end the process.
        ageMs.catch(() => {});
        return null;
      } catch {
        return null;
      }
    },
  };
}
