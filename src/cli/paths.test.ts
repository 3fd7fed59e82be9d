import type { Command, Option } from "commander";
import { describe, expect, it } from "vitest";
import { readDotEnv } from "../config/dotenv.js";
import { createProgram, runCli } from "./program.js";
import { processTerminal } from "./terminal.js";

/** Every option and argument that names a file or a folder, of every command. */

const PATH = /<(?:file|folder|place|address|in)>/;

interface PathOption {
  readonly words: string;
  readonly parse: Option["parseArg"];
}

function pathsOf(command: Command, name: string): PathOption[] {
  const options = command.options.map(({ flags, parseArg }) => ({ words: `${name} ${flags}`, parse: parseArg }));
  const args = command.registeredArguments.map((argument) => ({
    words: `${name} <${argument.name()}>`,
    parse: argument.parseArg as PathOption["parse"],
  }));
  return [
    ...[...options, ...args].filter(({ words }) => PATH.test(words) && !/--(?:hang-at|base-url|host)/.test(words)),
    ...command.commands.flatMap((sub) => pathsOf(sub, `${name} ${sub.name()}`.trim())),
  ];
}

const paths = pathsOf(createProgram({ terminal: processTerminal, exitCode: 0 }), "");

describe("paths on the command line", () => {
  it("are many", () => {
    expect(paths.length).toBeGreaterThan(20);
  });

  it.each(paths)("$words is refused when it is empty", ({ parse }) => {
    for (const empty of ["", "  "]) expect(() => parse?.(empty, undefined)).toThrow("It is empty");
    expect(() => parse?.("some/where", undefined)).not.toThrow();
    expect(parse).toBeDefined();
  });

  it("say so with the option's name, and exit 1", async () => {
    let said = "";
    const stderr = { write: (text: string) => (said += text), isTTY: false, columns: 80 };
    expect(await runCli(["status", "--path", ""], { ...processTerminal, stderr, stdout: stderr })).toBe(1);
    expect(said).toMatch(/'--path <folder>'.*is invalid\. It is empty/);
  });
});

it("/dev/null is a dotenv file without variables", () => {
  expect(readDotEnv("/dev/null")).toEqual({});
  expect(() => readDotEnv("/dev/zero")).toThrow("is a pipe or a device");
});
