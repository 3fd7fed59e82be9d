import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats, statSync } from "node:fs";
import { devNull } from "node:os";

/** What is read whole into memory: settings, secrets, prices. None of them is this long. */
export const MAX_FILE_BYTES = 64 * 1_024 * 1_024;

/** A path that names no file to be read; `problem` completes "… names something that". */
export class NoRegularFile extends Error {
  readonly problem: string;

  constructor(problem: string) {
    super(problem);
    this.name = "NoRegularFile";
    this.problem = problem;
  }
}

/** What people give for a file with nothing in it; unlike other devices it ends at once. */
function isNullDevice(stats: Stats): boolean {
  return stats.isCharacterDevice() && stats.rdev === statSync(devNull).rdev;
}

/**
 * The text of a regular file, or "" of /dev/null. A pipe or another device is refused: reading it may wait for ever or
 * never end, and settings are read more than once (ADR 0049). Opened without blocking, since merely opening a pipe that nobody writes to would wait.
 * Throws NoRegularFile, or the system's error.
 */
export function readRegularFile(path: string, maxBytes = MAX_FILE_BYTES): string {
  // Windows knows no such flag, and no such pipes.
  const file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const stats = fstatSync(file);
    if (stats.isDirectory()) throw new NoRegularFile("is a folder");
    if (isNullDevice(stats)) return "";
    if (!stats.isFile()) throw new NoRegularFile("is a pipe or a device, not a file");
    if (stats.size > maxBytes) throw new NoRegularFile(`is larger than ${maxBytes / 1_048_576} MiB`);
    return readFileSync(file, "utf8");
  } finally {
    closeSync(file);
  }
}
