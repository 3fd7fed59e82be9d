import { FlagError } from "../../src/testing/simulation/flag-values.js";
import { parseFlags, USAGE } from "./flags.js";
import { playRun } from "./run.js";
import { isGood, scoreboard } from "./scoreboard.js";
import { withStage } from "./stage.js";

/** `npm run fleet`: exit code 1 = something was broken or never tried, 2 = misused. */

const EXIT_BROKEN = 1;
const EXIT_MISUSED = 2;

async function main(args: readonly string[]): Promise<number> {
  try {
    const flags = parseFlags(args);
    if (flags.help) {
      process.stdout.write(USAGE);
      return 0;
    }
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
