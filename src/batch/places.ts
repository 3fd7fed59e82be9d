import { accessSync, closeSync, constants, openSync, realpathSync, type Stats, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { isSameFile } from "./same-file.js";
import { BatchRefusedError } from "./types.js";

/** Where a batch reads and writes, after every check that needs no reading. */
export interface Places {
  /** As the user wrote it. */
  readonly inName: string;
  /** A regular file is read twice, anything else (pipe, `-`) once. */
  readonly inIsFile: boolean;
  /** Real path: two names of one file are one output. */
  readonly outPath: string;
  readonly outExists: boolean;
  /** A device keeps nothing: no lock, no resume. */
  readonly outIsDevice: boolean;
  readonly lockPath: string;
  readonly tiesPath: string;
}

/** Throws BatchRefusedError. Changes nothing on the disk. */
export function findPlaces(inPath: string, outPath: string): Places {
  const input = inPath === "-" ? undefined : checkInput(inPath);
  const { path, stats } = checkOutput(outPath);
  if (input !== undefined && stats !== undefined && isSameFile(input, stats)) {
    throw new BatchRefusedError("out_is_in", `Input and output are the same file (${inPath}). Choose another output.`);
  }
  return {
    inName: inPath === "-" ? "stdin" : inPath,
    inIsFile: input?.isFile() ?? false,
    outPath: path,
    outExists: stats !== undefined,
    outIsDevice: stats !== undefined && !stats.isFile(),
    lockPath: `${path}.lock`,
    tiesPath: `${path}.pgw.json`,
  };
}

function statOf(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

function checkInput(path: string): Stats {
  let stats: Stats | undefined;
  try {
    stats = statOf(path);
    if (stats !== undefined) accessSync(path, constants.R_OK);
  } catch (error) {
    throw unreadableInput(path, error);
  }
  if (stats === undefined) throw new BatchRefusedError("in_missing", `There is no input file ${path}.`);
  if (stats.isDirectory()) {
    throw new BatchRefusedError("in_unreadable", `The input ${path} is a folder; name a JSONL file in it.`);
  }
  return stats;
}

export function unreadableInput(name: string, error: unknown): BatchRefusedError {
  const text = error instanceof Error ? error.message : String(error);
  return new BatchRefusedError("in_unreadable", `The input ${name} can't be read: ${text}.`, error);
}

export function unwritableOutput(path: string, error: unknown): BatchRefusedError {
  const text = error instanceof Error ? error.message : String(error);
  return new BatchRefusedError(
    "out_unwritable",
    `The output ${path} can't be written: ${text}. Nothing was sent. Choose a file you may write to.`,
    error,
  );
}

function checkOutput(given: string): { path: string; stats: Stats | undefined } {
  if (given === "-" || given === "") {
    throw new BatchRefusedError("option", "The output must be a file: a run that was stopped goes on from it.");
  }
  if (given.endsWith(".gz")) {
    throw new BatchRefusedError("option", `The output ${given} would not be gzip: choose a name without .gz.`);
  }
  try {
    const stats = statOf(given);
    if (stats?.isDirectory()) throw new Error("it is a folder");
    if (stats !== undefined) closeSync(openSync(given, constants.O_WRONLY | constants.O_APPEND | constants.O_NONBLOCK));
    else accessSync(dirname(given), constants.W_OK);
    return { path: realPathOf(given, stats), stats };
  } catch (error) {
    throw unwritableOutput(given, error);
  }
}

function realPathOf(given: string, stats: Stats | undefined): string {
  // What /dev/stdout stands for may be a pipe, which has no path of its own.
  if (stats !== undefined && !stats.isFile()) return given;
  return stats === undefined ? join(realpathSync(dirname(given)), basename(given)) : realpathSync(given);
}
