import { parseEnv } from "node:util";
import { ConfigError, type ConfigProblem } from "../errors.js";
import { NoRegularFile, readRegularFile } from "../regular-file.js";

export interface DotEnv {
  readonly values: Readonly<Record<string, string>>;
  /** Lines that would otherwise be skipped or overwritten without a word. Only judged for names accepted by the caller. */
  readonly suspicious: readonly SuspiciousLine[];
}

export interface SuspiciousLine {
  readonly name: string;
  readonly line: number;
  /** Line of the earlier assignment, when the name is given twice; absent when the line has no `=`. */
  readonly earlier?: number;
}

const ASSIGNMENT = /^\s*(?:export\s+)?([A-Za-z_][\w.-]*)\s*(=?)/;

/** Reads dotenv text as `util.parseEnv` does; a BOM and CRLF line ends are fine. */
export function parseDotEnv(text: string): DotEnv {
  const lines = text.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  const values: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(parseEnv(lines))) {
    // The parser takes a line without "=" for the beginning of the next name, which would then be lost as well.
    if (value !== undefined)
      values[
        name
          .split("\n")
          .at(-1)
          ?.replace(/^\s*(export\s+)?/, "") ?? name
      ] = value;
  }
  return { values, suspicious: suspiciousLines(lines, values) };
}

function suspiciousLines(text: string, values: Readonly<Record<string, string>>): SuspiciousLine[] {
  const seen = new Map<string, number>();
  return text.split("\n").flatMap((content, index): SuspiciousLine[] => {
    const [, name, equals] = ASSIGNMENT.exec(content) ?? [];
    if (name === undefined) return [];
    const line = index + 1;
    const earlier = seen.get(name);
    if (equals === "=") seen.set(name, line);
    else return name in values ? [] : [{ name, line }];
    return earlier === undefined ? [] : [{ name, line, earlier }];
  });
}

/**
 * The variables of a dotenv file. Throws ConfigError when it can't be read.
 * They are only a floor: `{ ...readDotEnv(path), ...env }`, the real environment wins.
 */
export function readDotEnv(path: string): Readonly<Record<string, string>> {
  return parseDotEnv(readText(path)).values;
}

const MAX_FILE_BYTES = 16 * 1_024 * 1_024;

export function readText(path: string): string {
  try {
    return readRegularFile(path, MAX_FILE_BYTES);
  } catch (error) {
    throw new ConfigError([unreadable(path, error)]);
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "doesn't exist",
  EACCES: "may not be read by this user",
  EISDIR: "is a folder",
};

export function unreadable(path: string, error: unknown): ConfigProblem {
  const code = (error as NodeJS.ErrnoException | undefined)?.code ?? "";
  const own = error instanceof NoRegularFile ? error.problem : undefined;
  const problem = own ?? REASONS[code] ?? `can't be read${code === "" ? "" : ` (${code})`}`;
  return { key: path, problem, remedy: "Give the path of a readable file." };
}
