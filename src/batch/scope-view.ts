import { troubleIn } from "./trouble.js";
import type { BatchClient, BatchSnapshot } from "./types.js";
import { permitsOf } from "./workers/snapshots.js";

/** What the governor knows of the scope, for what the errors of single calls don't tell. Never rejects. */
export interface ScopeView {
  /** true also when the governor can't say. */
  allDead(): Promise<boolean>;
  /** No attempt of this batch is under way; false also when the governor can't say. */
  idle(): Promise<boolean>;
  /** What the sources said last; "" when they said nothing. */
  trouble(): Promise<string>;
}

export function createScopeView(client: BatchClient): ScopeView {
  async function ask<Answer>(read: (snapshot: BatchSnapshot) => Answer, otherwise: Answer): Promise<Answer> {
    try {
      return read(await client.snapshot());
    } catch {
      return otherwise;
    }
  }
  return {
    allDead: () => ask(({ sources }) => sources.every(({ dead }) => dead), true),
    idle: () => ask((snapshot) => snapshot.sources.length > 0 && permitsOf(snapshot) === 0, false),
    trouble: () => ask(troubleIn, ""),
  };
}
