/** When a worker that died comes back, and when that makes no sense any more. */

const FIRST_WAIT_MS = 250;
const MAX_WAIT_MS = 8_000;
/** Without a finished line in between. With the waits before them they take about 4 s. */
export const MAX_DEATHS_IN_A_ROW = 5;

/** The n-th death in a row, from 1. */
export function restartAfterMs(deathsInRow: number): number {
  return Math.min(FIRST_WAIT_MS * 2 ** (deathsInRow - 1), MAX_WAIT_MS);
}

/** Why the batch should end rather than go on like this; undefined = it goes on. `how` ends no sentence. */
export function whyGiveUp(deathsInRow: number, how: string): string | undefined {
  if (deathsInRow < MAX_DEATHS_IN_A_ROW) return undefined;
  return `A worker died ${deathsInRow} times in a row without finishing a line (the last one ${how}).`;
}

/** Workers can't do the work: the batch ends and can be resumed. Never a failure line. */
export class WorkersFailedError extends Error {
  override readonly name = "WorkersFailedError";
}

/** Workers die of this line, and of no other: it becomes a failure line, and the batch goes on. */
export class LineKillsWorkersError extends Error {
  override readonly name = "LineKillsWorkersError";
}
