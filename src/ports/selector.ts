import type { ScopeSnapshot, SourceName } from "../domain/tick.js";

/** A user's own order of preference. The governor takes the first of the list that has a free slot. */
export interface Selector {
  order(candidates: readonly SourceName[], snapshot: ScopeSnapshot): readonly SourceName[];
}
