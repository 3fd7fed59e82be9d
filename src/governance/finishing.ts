import { countOf } from "../domain/count-of.js";
import { accountCount } from "./accounting-queue.js";
import { type Desk, warnOf } from "./desk.js";
import { wantsFailed } from "./tick-failure.js";
import { allEntries } from "./want-queue.js";

/** Accounts that arose while others were being told go with the second one. */
const LAST_TICKS = 2;

/**
 * The governor is going to be closed. What waits for a permit ends with `refusal`, and so does what asks from now on; what
 * has one goes on to its end. Resolves when all of them are back and told, or over, or the governor failed to listen.
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
  // Those of calls that outlive them, too.
  tellLeft(desk, desk.live.count());
}

/** The end, with permits that the governor could not be told of: nobody has to do anything, if they know it. */
export function tellLeft(desk: Desk, held = 0): void {
  const count = desk.accounts.settles.length + held;
  if (count === 0) return;
  const left = countOf(count, "permit");
  const seconds = desk.options.leaseTtlMs / 1_000;
  const text = `closed with ${left}, held or asked for, that could not be given back: each comes back by itself when its lease ends, within ${seconds} s`;
  warnOf(desk, "left_permits", text);
}
