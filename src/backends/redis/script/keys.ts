/** The names of a scope's keys behind their common beginning, which holds the hash tag: one slot of a cluster. */
export const STATE_KEY = "s";
export const LEASES_KEY = "l";
export const GRANTS_KEY = "g";
export const WORKERS_KEY = "w";
export const SIZES_KEY = "est";
/** Field of STATE_KEY for the scope as a whole: no source has this name. */
export const SCOPE_FIELD = "*";

/** The live leases of one source. */
export function sourceLeasesKey(source: string): string {
  return `${LEASES_KEY}:${source}`;
}
