import { accountCount } from "./accounting-queue.js";
import type { Desk } from "./desk.js";
import { wantsFailed } from "./tick-failure.js";
import { allEntries } from "./want-queue.js";

/** Accounts that arose while others were being told go with the second one. */
const LAST_TICKS = 2;

/**
 * The governor is going to be closed. What waits for a permit ends with `refusal`, and so does what asks from now on; what
 * has one goes on to its end. Resolves when all of them are back and told, or the governor failed to listen.
 */
export async function finishCalls(
  desk: Desk,
  refusal: Error,
  { wake, told }: { wake(): void; told(): Promise<void> },
): Promise<void> {
  desk.refusal = refusal;
  wantsFailed(desk, refusal, [...allEntries(desk.queue)], false);
  await desk.live.whenNone();
  await told();
  for (let tick = 0; tick < LAST_TICKS && accountCount(desk.accounts) > 0; tick += 1) {
    wake();
    await told();
  }
}
