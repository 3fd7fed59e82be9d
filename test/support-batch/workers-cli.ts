import { runCli } from "../../src/cli/program.js";
import { processTerminal } from "../../src/cli/terminal.js";

// The command, but for one rule: workers may count limits in memory, each its own.
process.exitCode = await runCli(process.argv.slice(2), processTerminal, { sharesLimits: () => true });
