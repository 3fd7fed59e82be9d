import type { Metrics } from "../../../src/testing/simulation/metrics.js";
import type { ScenarioPlan } from "./messages.js";

export interface RealResult {
  readonly plan: ScenarioPlan;
  readonly simulated: Pick<Metrics, "capacity" | "makespanMs" | "attempts" | "limitedShare" | "wastedShare">;
  /** Times are simulated ones. */
  readonly real: {
    readonly capacity: number;
    readonly makespanMs: number;
    readonly attempts: number;
    readonly limited: number;
    readonly wastedShare: number;
  };
  readonly failures: Readonly<Record<string, number>>;
  readonly scriptsPerCall: number;
  /** Of one processor. */
  readonly redisCpuShare: number;
}

/** What real processes must reach of the simulated throughput. */
export const LEAST_SHARE = 0.95;

/** Calls a second while calls waited, against the simulation's. */
export const throughputShare = ({ real, simulated }: RealResult): number => real.capacity / simulated.capacity;

export function reachesSimulation(result: RealResult): boolean {
  return throughputShare(result) >= LEAST_SHARE && Object.keys(result.failures).length === 0;
}

const percent = (share: number, digits = 1): string => `${(100 * share).toFixed(digits)} %`;
const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

export function scenarioReport(result: RealResult): string {
  const { plan, simulated, real, failures, scriptsPerCall, redisCpuShare } = result;
  const row = (name: string, left: string, right: string): string =>
    `${name.padEnd(34)}${left.padStart(12)}${right.padStart(12)}`;
  const lost = Object.entries(failures).map(([code, count]) => `${count} ${code}`);
  const verdict = reachesSimulation(result) ? "reached" : "MISSED";
  return [
    row(`scenario ${plan.scenario}, seed ${plan.seed}`, "simulated", "real"),
    row("of the nominal capacity", percent(simulated.capacity), percent(real.capacity)),
    row("makespan, simulated time", seconds(simulated.makespanMs), seconds(real.makespanMs)),
    row("makespan, real time", "", seconds(real.makespanMs / plan.scale)),
    row("attempts", String(simulated.attempts), String(real.attempts)),
    row("429s", String(Math.round(simulated.limitedShare * simulated.attempts)), String(real.limited)),
    row("attempts without an answer", percent(simulated.wastedShare, 2), percent(real.wastedShare, 2)),
    row("scripts a call", "", scriptsPerCall.toFixed(2)),
    row("Redis, of one processor", "", percent(redisCpuShare, 0)),
    row("calls lost", "", lost.length === 0 ? "0" : lost.join(", ")),
    "",
    `${percent(throughputShare(result))} of the simulated throughput (at least ${percent(LEAST_SHARE, 0)}: ${verdict}); ` +
      `makespan ${percent(simulated.makespanMs / real.makespanMs)}; time scale ${plan.scale}`,
  ].join("\n");
}
