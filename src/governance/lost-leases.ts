import type { TickReply } from "../domain/tick.js";
import type { TakenAccounts } from "./accounting-queue.js";
import { type Desk, warnOf } from "./desk.js";

/**
 * How many leases a tick showed to be gone while this process still worked on them. A renewal says so itself. A settle
 * that took no effect may also be an outcome the breaker no longer wanted: it counts only where the lease's time was over.
 * `sentMs`: when the tick left; null when it was answered in the same turn.
 */
export function countLostLeases(desk: Desk, reply: TickReply, accounts: TakenAccounts, sentMs: number | null): number {
  const { settles, renew } = accounts;
  const { applied } = reply;
  let lost = 0;
  for (let i = 0; i < settles.length; i += 1) {
    if (settles[i]!.wasOver && applied[i] === false) lost += 1;
  }
  // Renewals stand last in `applied`.
  const first = applied.length - renew.length;
  const askedMs = renew.length === 0 ? 0 : (sentMs ?? desk.options.runtime.now());
  for (let i = 0; i < renew.length; i += 1) {
    if (applied[first + i] !== false) desk.live.renewed(renew[i]!, askedMs);
    else if (desk.live.remove(renew[i]!) !== undefined) lost += 1;
  }
  if (lost > 0) {
    const text = "leases were lost because they were not renewed in time; their calls go on";
    warnOf(desk, "lease_lost", `${lost} ${text}`);
  }
  return lost;
}
