import type { SourceName } from "../domain/tick.js";

const MAX_SESSIONS = 10_000;

/**
 * Which source served a session last (spec 10 "Affinity"): a provider keeps the beginning of a conversation warm.
 * Per client, and bounded: the sessions served longest ago are forgotten first.
 */
export class Affinity {
  readonly #maxSessions: number;
  readonly #lastSources = new Map<string, SourceName>();

  constructor(maxSessions = MAX_SESSIONS) {
    this.#maxSessions = maxSessions;
  }

  sourceOf(sessionId: string | undefined): SourceName | undefined {
    return sessionId === undefined ? undefined : this.#lastSources.get(sessionId);
  }

  served(sessionId: string | undefined, source: SourceName): void {
    if (sessionId === undefined) return;
    // A map keeps the order of insertion: what is put in again is the youngest.
    this.#lastSources.delete(sessionId);
    this.#lastSources.set(sessionId, source);
    if (this.#lastSources.size <= this.#maxSessions) return;
    for (const oldest of this.#lastSources.keys()) {
      this.#lastSources.delete(oldest);
      return;
    }
  }
}
