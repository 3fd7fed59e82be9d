import { FlagError } from "../../src/testing/simulation/flag-values.js";
import { parseFlags, USAGE } from "./flags.js";
import { playRun } from "./run.js";
import type { ScenarioPlan } from "./scenario/messages.js";
import { playScenario } from "./scenario/play.js";
import { reachesSimulation, scenarioReport } from "./scenario/report.js";
import { isGood, scoreboard } from "./scoreboard.js";
import { withStage } from "./stage.js";

/** `npm run fleet`: exit code 1 = something was broken or never tried, 2 = misused. */

const EXIT_BROKEN = 1;
const EXIT_MISUSED = 2;

async function compare({ scenario, seed, scale }: ScenarioPlan): Promise<number> {
  const result = await playScenario({ scenario, seed, scale }, (text) => process.stderr.write(`… ${text}\n`));
  process.stdout.write(`${scenarioReport(result)}\n`);
  return reachesSimulation(result) ? 0 : EXIT_BROKEN;
}

async function main(args: readonly string[]): Promise<number> {
  try {
    const flags = parseFlags(args);
    if (flags.help) {
      process.stdout.write(USAGE);
      return 0;
    }
    if (flags.scenario !== null) return await compare({ ...flags, scenario: flags.scenario });
    const score = await withStage(flags, (stage) => playRun(flags, stage));
    process.stdout.write(`${scoreboard(score)}\n`);
    return isGood(score) ? 0 : EXIT_BROKEN;
  } catch (error) {
    if (!(error instanceof FlagError)) throw error;
    process.stderr.write(`fleet: ${error.message}\nRun npm run fleet -- --help to see what it takes.\n`);
    return EXIT_MISUSED;
  }
}

process.exitCode = await main(process.argv.slice(2));
