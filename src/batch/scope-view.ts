import { GovernanceBackendError } from "../errors.js";
import { troubleIn } from "./trouble.js";
import type { BatchClient, BatchSnapshot } from "./types.js";

/** What the governor knows of the scope, for what the errors of single calls don't tell. Never rejects. */
export interface ScopeView {
  /** true also when the governor can't say. */
  allDead(): Promise<boolean>;
  /** No attempt of this batch is under way, whatever the governor says. */
  idle(): Promise<boolean>;
  /** What the sources said last, or why nobody can be asked for them; "" when they said nothing. */
  trouble(): Promise<string>;
}

export function createScopeView(client: BatchClient): ScopeView {
  async function ask<Answer>(
    read: (snapshot: BatchSnapshot) => Answer,
    otherwise: (error: unknown) => Answer,
  ): Promise<Answer> {
    try {
      return read(await client.snapshot());
    } catch (error) {
      return otherwise(error);
    }
  }
  return {
    allDead: () =>
      ask(
        ({ sources }) => sources.every(({ dead }) => dead),
        () => true,
      ),
    async idle() {
      return (await client.leases()).live === 0;
    },
    trouble: () => ask(troubleIn, (error) => (GovernanceBackendError.isInstance(error) ? error.message : "")),
  };
}
