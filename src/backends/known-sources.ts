import type { TickBatch } from "../domain/tick.js";
import { SourceNotConfiguredError } from "../errors.js";

/**
 * Refuses a batch that names an unknown source. Asked before anything is changed: a batch takes effect as a whole or not at
 * all. Throws SourceNotConfiguredError.
 */
export function refuseUnknownSources(
  scope: string,
  known: { has(name: string): boolean; keys(): Iterable<string> },
  batch: TickBatch,
): void {
  const require = (name: string): void => {
    if (known.has(name)) return;
    const names = [...known.keys()].join(", ");
    throw new SourceNotConfiguredError(
      `source ${name} is not configured in the governor of scope ${scope} (it knows: ${names || "none"}). ` +
        "Give the client and its governor the same sources.",
      { sourceName: name },
    );
  };
  for (const s of batch.settles) require(s.source);
  for (const v of batch.verdicts) require(v.source);
  // One list is shared by all calls of a client that may use the same sources.
  let looked: readonly string[] | null = null;
  for (const { candidates } of batch.wants) {
    if (candidates === looked) continue;
    for (const name of candidates) require(name);
    looked = candidates;
  }
}
