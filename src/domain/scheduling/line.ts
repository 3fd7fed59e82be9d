import type { ScopeState } from "../scope-state.js";
import type { Want } from "../tick.js";

/** Priority classes (spec 10 §6): strict, but every tenth grant belongs to the class below. */

const UPPER_GRANTS = 9;

/** Nine grants went to an upper class while a lower one waited. */
export function lowerClassIsDue(state: ScopeState): boolean {
  return state.grantsOfUpperClass >= UPPER_GRANTS;
}

/** The first call in the line of a lower class than its head's; -1 = all are of one class. */
export function firstOfLowerClass(line: readonly number[], wants: readonly Want[]): number {
  const { priority } = wants[line[0]!]!;
  // Calls stand in the order of their classes: when the last one is of this class, all are.
  if (wants[line[line.length - 1]!]!.priority <= priority) return -1;
  return line.findIndex((position) => wants[position]!.priority > priority);
}

/** Books a grant, before the call leaves the line. `isLowerTurn`: it went before a more urgent class. */
export function noteClass(
  state: ScopeState,
  line: readonly number[],
  wants: readonly Want[],
  granted: Want,
  isLowerTurn: boolean,
): void {
  if (isLowerTurn) state.grantsOfUpperClass = 0;
  else if (wants[line[line.length - 1]!]!.priority > granted.priority) state.grantsOfUpperClass += 1;
}
