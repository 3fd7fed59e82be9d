import { availableParallelism } from "node:os";
import { isMainThread, parentPort } from "node:worker_threads";
import { createSystemRuntime } from "../../backends/system.js";
import { BASELINES } from "./baselines.js";
import { FlagError } from "./flag-values.js";
import { parseFlags, type SimFlags, USAGE } from "./flags.js";
import { type GoalVerdict, type JudgedRun, judgeGoals } from "./goals.js";
import { type Job, runJobs, serveJobs } from "./jobs.js";
import { goalLines, markdownTables, resultTable, violationLines } from "./report.js";
import type { RunResult } from "./run.js";
import { scenarioOf } from "./scenarios.js";
import { BENCHMARKS_PAGE, writeTables } from "./write-tables.js";

/** `npm run sim`: plays the scenarios, prints the table and judges the goals. Exit code 1 = missed or broken, 2 = misused. */

const EXIT_MISSED = 1;
const EXIT_MISUSED = 2;

/** What was asked for, and what its goals compare with. */
function scenariosToRun(flags: SimFlags): readonly string[] {
  const ids = new Set(flags.scenarios);
  if (flags.worst) return [...ids];
  for (const id of flags.scenarios) for (const other of scenarioOf(id, 1).comparesWith ?? []) ids.add(other);
  return [...ids];
}

/** Seed by seed, so that a time box judges whole sets of scenarios. */
function* plan(flags: SimFlags): Generator<Job> {
  const scenarios = scenariosToRun(flags);
  const policies = [null, ...(flags.baselines ? BASELINES.map(({ name }) => name) : [])];
  for (const seed of flags.seeds) {
    for (const scenario of scenarios) {
      for (const baseline of policies) yield { scenario, seed, baseline, keepsTrace: flags.trace };
    }
  }
}

function judge(results: readonly RunResult[]): GoalVerdict[] {
  const runs = new Map<string, JudgedRun[]>();
  for (const { scenario, policy, seed, metrics } of results) {
    if (policy !== "gateway") continue;
    runs.set(scenario.id, [...(runs.get(scenario.id) ?? []), { seed, metrics }]);
  }
  return judgeGoals(runs);
}

function print(text: string): void {
  if (text !== "") process.stdout.write(`${text}\n`);
}

function summary(results: readonly RunResult[], verdicts: readonly GoalVerdict[]): string {
  const broken = results.filter(({ violationCount }) => violationCount > 0).length;
  const missed = verdicts.filter(({ met }) => !met).length;
  const goals = verdicts.length === 0 ? "" : `${verdicts.length - missed} of ${verdicts.length} goals met; `;
  const invariants = broken === 0 ? "every invariant held" : `invariants broken in ${broken} of ${results.length} runs`;
  return `${goals}${invariants} (${results.length} runs).`;
}

async function simulate(flags: SimFlags): Promise<number> {
  const runtime = createSystemRuntime();
  const beganMs = runtime.now();
  const mayBegin = (): boolean => flags.forMs === null || runtime.now() - beganMs < flags.forMs;
  const results = await runJobs(plan(flags), {
    program: new URL(import.meta.url),
    threads: flags.jobs,
    mayBegin,
    onResult({ scenario, seed, baseline }, result) {
      const elapsedS = ((runtime.now() - beganMs) / 1_000).toFixed(0);
      const bad = result.violationCount > 0 ? ", INVARIANT BROKEN" : "";
      process.stderr.write(
        `… ${scenario} seed ${seed}${baseline === null ? "" : ` ${baseline}`} (${elapsedS} s)${bad}\n`,
      );
    },
  });
  if (results.length === 0) {
    print("No run was begun: --for is over before the first one.");
    return EXIT_MISSED;
  }
  if (flags.trace) {
    for (const { scenario, policy, seed, trace, hash } of results)
      print([...trace, `hash ${scenario.id} ${policy} seed ${seed}: ${hash}`].join("\n"));
  }
  const verdicts = judge(results);
  print(resultTable(results));
  print("");
  if (verdicts.length > 0) print(`${goalLines(verdicts)}\n`);
  print(violationLines(results));
  print(summary(results, verdicts));
  if (flags.write) {
    writeTables(markdownTables(results, verdicts));
    print(`Written to ${BENCHMARKS_PAGE}.`);
  }
  const isGood = verdicts.every(({ met }) => met) && results.every(({ violationCount }) => violationCount === 0);
  return isGood ? 0 : EXIT_MISSED;
}

async function main(args: readonly string[]): Promise<number> {
  try {
    const flags = parseFlags(args, availableParallelism());
    if (!flags.help) return await simulate(flags);
    print(USAGE);
    return 0;
  } catch (error) {
    if (!(error instanceof FlagError)) throw error;
    process.stderr.write(`sim: ${error.message}\nRun npm run sim -- --help to see what it takes.\n`);
    return EXIT_MISUSED;
  }
}

if (isMainThread) process.exitCode = await main(process.argv.slice(2));
else serveJobs(parentPort!);
