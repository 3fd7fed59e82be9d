import type { Metrics } from "./metrics.js";

/** One figure of spec 10 §10 that every seed must reach. */
export interface Goal {
  readonly scenario: string;
  readonly name: string;
  readonly kind: "at least" | "at most";
  readonly limit: number;
  readonly unit: "%" | "s" | "";
  /** `other` = the same seed's run of a scenario named in `comparesWith`. */
  readonly read: (metrics: Metrics, other: (scenario: string) => Metrics) => number;
}

type Read = Goal["read"];
type Limit = Pick<Goal, "kind" | "limit" | "unit">;

const percent = (kind: Goal["kind"], limit: number): Limit => ({ kind, limit, unit: "%" });
const seconds = (limit: number): Limit => ({ kind: "at most", limit, unit: "s" });
const number = (kind: Goal["kind"], limit: number): Limit => ({ kind, limit, unit: "" });

const capacity: Read = (m) => 100 * m.capacity;
const limited: Read = (m) => 100 * m.limitedShare;
const wasted: Read = (m) => 100 * m.wastedShare;
const lost: Read = (m) => m.lost;
const jain: Read = (m) => m.jain;
const ticks: Read = (m) => m.ticksPerCall;
const p99: Read = (m) => m.p99Ms / 1_000;

function goal(scenario: string, name: string, read: Read, limit: Limit): Goal {
  return { scenario, name, read, ...limit };
}

const noneLost = (scenario: string): Goal => goal(scenario, "calls lost", lost, number("at most", 0));

/** What A asks for, and Ap too. */
const healthy = (scenario: string): readonly Goal[] => [
  goal(scenario, "capacity", capacity, percent("at least", 104)),
  goal(scenario, "429", limited, percent("at most", 0.1)),
  goal(scenario, "wasted", wasted, percent("at most", 0.5)),
  noneLost(scenario),
];

const isolatedAttempts: Read = (m) => m.isolation?.attempts ?? Infinity;

export const GOALS: readonly Goal[] = [
  ...healthy("A"),
  // Spec 10 §10, row Redis: here its scripts are ticks.
  goal("A", "ticks a call", ticks, number("at most", 2.2)),
  goal("A1", "capacity", capacity, percent("at least", 93)),
  ...healthy("Ap"),
  goal("B", "capacity", capacity, percent("at least", 90)),
  goal("B", "429", limited, percent("at most", 1.3)),
  noneLost("B"),
  goal("Bh", "capacity", capacity, percent("at least", 103)),
  goal("Bh", "429", limited, percent("at most", 1)),
  goal("C", "attempts until isolated", isolatedAttempts, number("at most", 45)),
  goal("C", "isolated after", (m) => (m.isolation?.afterMs ?? Infinity) / 1_000, seconds(9)),
  goal("C", "attempts into it", (m) => m.intoBroken ?? Infinity, number("at most", 150)),
  goal("C", "wasted", wasted, percent("at most", 1.4)),
  goal("C", "p99 over that of A", (m, other) => m.p99Ms / other("A").p99Ms, number("at most", 1.25)),
  goal("C", "80 % back after", (m) => (m.recoveryMs ?? Infinity) / 1_000, seconds(75)),
  goal("C", "capacity", capacity, percent("at least", 103)),
  noneLost("C"),
  goal("D", "capacity", capacity, percent("at least", 100)),
  goal("D", "wasted", wasted, percent("at most", 2.5)),
  goal("D", "calls to the dead key", (m) => m.intoDead ?? Infinity, number("at most", 8)),
  noneLost("D"),
  noneLost("E"),
  goal("E", "wasted", wasted, percent("at most", 3)),
  goal("E", "80 % back after", (m) => (m.recoveryMs ?? Infinity) / 1_000, seconds(20)),
  goal("F", "deadlines missed", (m) => 100 * m.lostShare, percent("at most", 0.05)),
  goal("F", "wasted", wasted, percent("at most", 1)),
  goal("F", "ticks a call", ticks, number("at most", 2.2)),
  goal(
    "Fh",
    "first-token p99 over that of F",
    (m, other) => m.firstTokenP99Ms / other("F").firstTokenP99Ms,
    number("at most", 0.8),
  ),
  goal("Fh", "attempts more than F", (m, other) => 100 * (m.attempts / other("F").attempts - 1), percent("at most", 5)),
  goal("G", "capacity", capacity, percent("at least", 91)),
  goal("G", "429", limited, percent("at most", 0.7)),
  goal("G", "Jain", jain, number("at least", 0.99)),
  goal("G", "ticks a call", ticks, number("at most", 3)),
  goal("H", "capacity", capacity, percent("at least", 93)),
  goal("H", "p99", p99, seconds(135)),
  goal("H", "wasted", wasted, percent("at most", 2.5)),
  goal("T", "capacity", capacity, percent("at least", 94)),
  goal("T", "429", limited, percent("at most", 0.2)),
  goal("T", "ticks a call", ticks, number("at most", 3)),
  goal("T1", "capacity", capacity, percent("at least", 96)),
  goal("T1", "429", limited, percent("at most", 0.2)),
  goal("S", "capacity", capacity, percent("at least", 103)),
  goal("S", "429", limited, percent("at most", 0.2)),
  goal("S", "attempts until isolated", isolatedAttempts, number("at most", 45)),
  goal("S", "ticks a call", ticks, number("at most", 2.2)),
  noneLost("S"),
  goal("fair", "Jain", jain, number("at least", 0.98)),
  goal("prio", "first-token p99 of the high class", (m) => (m.highFirstTokenP99Ms ?? Infinity) / 1_000, seconds(4)),
];

/** A goal over all its seeds. */
export interface GoalVerdict {
  readonly goal: Goal;
  readonly met: boolean;
  /** The worst value, and the seed it came from. */
  readonly worst: number;
  readonly worstSeed: number;
  readonly seeds: number;
}

export interface JudgedRun {
  readonly seed: number;
  readonly metrics: Metrics;
}

/** Judges what has been run; a goal whose scenario has not is left out. */
export function judgeGoals(runs: ReadonlyMap<string, readonly JudgedRun[]>): GoalVerdict[] {
  return GOALS.flatMap((goal) => {
    const own = runs.get(goal.scenario) ?? [];
    const values = own.flatMap(({ seed, metrics }) => {
      const value = readValue(goal, metrics, seed, runs);
      return value === null ? [] : [{ seed, value }];
    });
    if (values.length === 0) return [];
    const worst = values.reduce((a, b) => (isWorse(goal, b.value, a.value) ? b : a));
    const met = !isWorse(goal, worst.value, goal.limit);
    return [{ goal, met, worst: worst.value, worstSeed: worst.seed, seeds: values.length }];
  });
}

/** null = the run it compares with is missing. */
function readValue(
  goal: Goal,
  metrics: Metrics,
  seed: number,
  runs: ReadonlyMap<string, readonly JudgedRun[]>,
): number | null {
  let isMissing = false;
  const value = goal.read(metrics, (scenario) => {
    const other = runs.get(scenario)?.find((run) => run.seed === seed);
    if (other === undefined) isMissing = true;
    return (other ?? { metrics }).metrics;
  });
  return isMissing ? null : value;
}

/** Not a number is worse than anything. */
function isWorse(goal: Goal, value: number, than: number): boolean {
  if (Number.isNaN(value)) return true;
  return goal.kind === "at least" ? value < than : value > than;
}
