import type { ScopeState } from "../scope-state.js";
import type { Want } from "../tick.js";

/** Priority classes (spec 10 §6): strict, but every tenth grant belongs to the class below. */

const UPPER_GRANTS = 9;

/** Where in the line the next grant is looked for: at its head, or at the first call of a lower class whose turn it is. */
export function nextPosition(state: ScopeState, line: readonly number[], wants: readonly Want[]): number {
  if (state.grantsOfUpperClass < UPPER_GRANTS || line.length < 2) return 0;
  const at = firstLower(line, wants, wants[line[0]!]!.priority);
  return at === -1 ? 0 : at;
}

/** Books a grant, before the call leaves the line. */
export function noteClass(state: ScopeState, line: readonly number[], wants: readonly Want[], granted: Want): void {
  if (wants[line[0]!]!.priority < granted.priority) state.grantsOfUpperClass = 0;
  else if (firstLower(line, wants, granted.priority) !== -1) state.grantsOfUpperClass += 1;
}

function firstLower(line: readonly number[], wants: readonly Want[], priority: number): number {
  // Calls stand in the order of their classes: when the last one is of this class, all are.
  if (wants[line[line.length - 1]!]!.priority <= priority) return -1;
  return line.findIndex((position) => wants[position]!.priority > priority);
}
