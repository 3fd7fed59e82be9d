import type { Terminal } from "./terminal.js";

/** What a command is run with: where it writes, and where it leaves its exit code. */
export interface CommandContext {
  readonly terminal: Terminal;
  exitCode: number;
}
