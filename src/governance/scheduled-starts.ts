import type { Grant, LeaseId, SourceName } from "../domain/tick.js";

/**
 * Grants whose start lies ahead. News about their source makes them stale: what was decided no longer holds, and the
 * permit goes back unsent (spec 10 §2). Kept by grant instead of by time, because news may come in the very moment.
 */
export class ScheduledStarts {
  readonly #sources = new Map<LeaseId, SourceName>();

  add(grant: Grant): void {
    if (grant.startInMs > 0) this.#sources.set(grant.leaseId, grant.source);
  }

  remove(leaseId: LeaseId): void {
    if (this.#sources.size > 0) this.#sources.delete(leaseId);
  }

  /** The state of this source changed, or it cools. */
  newsOf(source: SourceName): void {
    for (const [leaseId, name] of this.#sources) if (name === source) this.#sources.delete(leaseId);
  }

  /** Whether there was news since the grant came. Asked once, when it is due. */
  isStale(grant: Grant): boolean {
    return !this.#sources.delete(grant.leaseId);
  }
}
