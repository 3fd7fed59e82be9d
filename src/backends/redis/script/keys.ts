import { LAYOUT_VERSION } from "./layout.js";

/** The names of a scope's keys behind their common beginning, which holds the hash tag: one slot of a cluster. */

/** Another layout is other state: two versions of the script that run at once must not undo each other's. */
export const STATE_KEY = `s${LAYOUT_VERSION}`;
/** Leases themselves; their places in the sorted sets are alike for all versions, so that they count for each other. */
export const GRANTS_KEY = `g${LAYOUT_VERSION}`;
export const LEASES_KEY = "l";
export const WORKERS_KEY = "w";
export const SIZES_KEY = "est";
/** Field of STATE_KEY for the scope as a whole: no source has this name. */
export const SCOPE_FIELD = "*";
/** The same for its clock. */
export const CLOCK_FIELD = "@";
/** What limits processes have, and whose they all were when one last said so. */
export const LIMITS_FIELD = "~";
export const LIMITS_ID_FIELD = "~~";

/** The live leases of one source. */
export function sourceLeasesKey(source: string): string {
  return `${LEASES_KEY}:${source}`;
}

/** All keys that a tick may touch, for KEYS: a cluster wants them declared. The first is that of the state. */
export function scopeKeys(prefix: string, sources: Iterable<string>): string[] {
  const keys = [STATE_KEY, LEASES_KEY, GRANTS_KEY, WORKERS_KEY, SIZES_KEY];
  for (const source of sources) keys.push(sourceLeasesKey(source));
  return keys.map((name) => prefix + name);
}
