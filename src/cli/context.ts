import type { ProcessSettings } from "../config/schema-process.js";
import type { Terminal } from "./terminal.js";

/** What a command is run with: where it writes, and where it leaves its exit code. */
export interface CommandContext {
  readonly terminal: Terminal;
  exitCode: number;
  /** Default: COMMAND_RULES. */
  readonly rules?: CommandRules;
}

/** What a command takes for granted of its surroundings, and a test of it may not. */
export interface CommandRules {
  /** Do processes with these settings keep the limits together? */
  readonly sharesLimits: (settings: Partial<ProcessSettings>) => boolean;
}

export const COMMAND_RULES: CommandRules = {
  sharesLimits: ({ limiterBackend }) => limiterBackend === "redis",
};
