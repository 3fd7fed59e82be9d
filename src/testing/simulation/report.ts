import type { GoalVerdict } from "./goals.js";
import type { Metrics } from "./metrics.js";
import type { RunResult } from "./run.js";

/** What the simulator prints. Pure: results go in, lines come out. */

const HEAD = [
  "scenario",
  "policy",
  "capacity",
  "makespan",
  "429",
  "wasted",
  "p50 / p99 s",
  "lost",
  "ticks/call",
  "other",
];
const LEFT_ALIGNED = new Set([0, 1, 9]);

/** One row a scenario and policy: the mean of its seeds. */
export function resultTable(results: readonly RunResult[]): string {
  return table(resultRows(results));
}

function resultRows(results: readonly RunResult[]): string[][] {
  const groups = new Map<string, RunResult[]>();
  for (const result of results) {
    const key = `${result.scenario.id} ${result.policy}`;
    groups.set(key, [...(groups.get(key) ?? []), result]);
  }
  return [HEAD, ...[...groups.values()].map(rowOf)];
}

function rowOf(results: readonly RunResult[]): string[] {
  const { scenario, policy } = results[0]!;
  const mean = (read: (metrics: Metrics) => number): number =>
    results.reduce((sum, { metrics }) => sum + read(metrics), 0) / results.length;
  return [
    `${scenario.id} ${scenario.title}`,
    policy,
    `${(100 * mean((m) => m.capacity)).toFixed(1)} %`,
    `${(mean((m) => m.makespanMs) / 1_000).toFixed(0)} s`,
    `${(100 * mean((m) => m.limitedShare)).toFixed(2)} %`,
    `${(100 * mean((m) => m.wastedShare)).toFixed(2)} %`,
    `${(mean((m) => m.p50Ms) / 1_000).toFixed(1)} / ${(mean((m) => m.p99Ms) / 1_000).toFixed(1)}`,
    shortNumber(mean((m) => m.lost)),
    policy === "gateway" ? mean((m) => m.ticksPerCall).toFixed(2) : "-",
    others(scenario, results, mean),
  ];
}

function others(
  scenario: RunResult["scenario"],
  results: readonly RunResult[],
  mean: (read: (metrics: Metrics) => number) => number,
): string {
  const notes: string[] = [];
  const isolated = results.flatMap(({ metrics }) => (metrics.isolation === null ? [] : [metrics.isolation]));
  if (isolated.length > 0) {
    const attempts = isolated.reduce((sum, own) => sum + own.attempts, 0) / isolated.length;
    const afterS = isolated.reduce((sum, own) => sum + own.afterMs, 0) / isolated.length / 1_000;
    notes.push(`isolated after ${attempts.toFixed(0)} attempts, ${afterS.toFixed(1)} s`);
  }
  if (scenario.watched !== undefined) {
    const recoveryS = mean((m) => m.recoveryMs ?? 0) / 1_000;
    notes.push(Number.isFinite(recoveryS) ? `80 % back after ${recoveryS.toFixed(0)} s` : "not back before the end");
    notes.push(`${mean((m) => m.intoBroken ?? 0).toFixed(0)} attempts while broken`);
  }
  if (scenario.deadSource !== undefined) notes.push(`${mean((m) => m.intoDead ?? 0).toFixed(1)} to the dead key`);
  if (scenario.highShare !== undefined)
    notes.push(`high class: first token p99 ${(mean((m) => m.highFirstTokenP99Ms ?? 0) / 1_000).toFixed(1)} s`);
  if (scenario.deadlineMs !== undefined)
    notes.push(`first token p99 ${(mean((m) => m.firstTokenP99Ms) / 1_000).toFixed(1)} s`);
  const isSkewed = new Set(scenario.callers).size > 1;
  if (isSkewed) notes.push(`Jain ${mean((m) => m.jain).toFixed(3)}`);
  const failures = failureNote(results);
  if (failures !== "") notes.push(failures);
  return notes.join(", ");
}

/** How the lost calls of all seeds ended. */
function failureNote(results: readonly RunResult[]): string {
  const counts = new Map<string, number>();
  for (const { metrics } of results) {
    for (const [code, count] of Object.entries(metrics.failures)) counts.set(code, (counts.get(code) ?? 0) + count);
  }
  return [...counts].map(([code, count]) => `${shortNumber(count / results.length)} ${code}`).join(", ");
}

/** One line a goal: met or missed, the worst seed's value, and what was asked for. */
export function goalLines(verdicts: readonly GoalVerdict[]): string {
  return table(goalRows(verdicts), new Set([0, 1, 2, 4, 5]));
}

const GOAL_HEAD = ["", "scenario", "goal", "value", "asked for", ""];

function goalRows(verdicts: readonly GoalVerdict[]): string[][] {
  const rows = verdicts.map(({ goal, met, worst, worstSeed, seeds }) => [
    met ? "met" : "MISSED",
    goal.scenario,
    goal.name,
    withUnit(worst, goal.unit),
    `${goal.kind} ${withUnit(goal.limit, goal.unit)}`,
    `worst of ${seeds}: seed ${worstSeed}`,
  ]);
  return [GOAL_HEAD, ...rows];
}

/** The same two tables for a page of the documentation. */
export function markdownTables(results: readonly RunResult[], verdicts: readonly GoalVerdict[]): string {
  const seeds = new Set(results.map(({ seed }) => seed)).size;
  const tables = [markdown(resultRows(results), LEFT_ALIGNED)];
  if (verdicts.length > 0) tables.push(markdown(goalRows(verdicts), new Set([0, 1, 2, 4, 5])));
  return [
    `Mean of ${seeds === 1 ? "one seed" : `${seeds} seeds`}; a goal is judged by its worst seed.`,
    ...tables,
  ].join("\n\n");
}

function markdown(rows: readonly (readonly string[])[], leftAligned: ReadonlySet<number>): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  const [head = [], ...rest] = rows;
  return [line(head), line(head.map((_, column) => (leftAligned.has(column) ? "---" : "--:"))), ...rest.map(line)].join(
    "\n",
  );
}

export function violationLines(results: readonly RunResult[]): string {
  const lines = results.flatMap(({ scenario, seed, violations, violationCount }) => {
    if (violationCount === 0) return [];
    const more = violationCount > violations.length ? [`  … and ${violationCount - violations.length} more`] : [];
    const replay = scenario.id === "worst" ? "--worst" : `--scenario ${scenario.id}`;
    const head = `INVARIANT BROKEN in ${scenario.id}, seed ${seed} (replay: npm run sim -- ${replay} --seed ${seed} --trace)`;
    return [head, ...violations.map((violation) => `  ${violation}`), ...more];
  });
  return lines.join("\n");
}

function withUnit(value: number, unit: string): string {
  const text = Number.isFinite(value) ? String(Number(value.toFixed(value < 10 ? 3 : 1))) : "never";
  return unit === "" || text === "never" ? text : `${text} ${unit}`;
}

function shortNumber(value: number): string {
  return String(Number(value.toFixed(1)));
}

function table(rows: readonly (readonly string[])[], leftAligned: ReadonlySet<number> = LEFT_ALIGNED): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => (leftAligned.has(column) ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
      .join("  ")
      .trimEnd(),
  );
  return lines.join("\n");
}
