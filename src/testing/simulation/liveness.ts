import type { World } from "./world.js";

/** Times in which calls waited and no attempt was on its way, longer than the scenario can explain. */
export function idleTimes({ attempts, ends, scenario }: World): readonly string[] {
  const { idlesAtMostMs } = scenario;
  if (idlesAtMostMs === undefined) return [];
  const lastMs = ends.reduce((latest, { endMs }) => Math.max(latest, endMs), 0);
  const found: string[] = [];
  let busyUntilMs = 0;
  const judge = (untilMs: number): void => {
    if (untilMs - busyUntilMs <= idlesAtMostMs) return;
    const span = `${busyUntilMs.toFixed(0)} to ${untilMs.toFixed(0)} ms`;
    found.push(`calls waited from ${span} without one attempt`);
  };
  // Attempts are in the order of their starts.
  for (const { startMs, endMs } of attempts) {
    judge(startMs);
    busyUntilMs = Math.max(busyUntilMs, endMs);
  }
  judge(lastMs);
  return found;
}
