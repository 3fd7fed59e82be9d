#!/usr/bin/env node
import { describeFailure, EXIT } from "./failure.js";
import { runCli } from "./program.js";

// `polygateway report | head`: a reader that has seen enough is not a failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(EXIT.ok);
});
// Nobody reads the messages any more: there is nobody to tell.
process.stderr.on("error", () => {});

// A defect outside every command's own handling still ends in plain words.
process.on("uncaughtException", (error) => {
  process.stderr.write(`${describeFailure(error).text}\n`);
  if (process.env.PGW_DEBUG) process.stderr.write(`${error.stack}\n`);
  process.exit(EXIT.couldNotRun);
});

const exitCode = await runCli(process.argv.slice(2));
if (exitCode !== EXIT.ok) process.exitCode = exitCode;
