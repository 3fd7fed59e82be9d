import { closeSync, constants, copyFileSync, fsyncSync, linkSync, openSync, rmSync, writeFileSync } from "node:fs";

/**
 * Writes a file that must not exist yet: whole or not at all, and never over another one, whoever else writes.
 * Throws the error of the file system; EEXIST when the name is taken.
 */
export function writeNew(path: string, text: string, mode: number): void {
  const temporary = `${path}.${process.pid}.tmp`;
  const file = openSync(temporary, "wx", mode);
  try {
    try {
      writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    publish(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** A second name is given in one step, and only when the name is free. */
function publish(temporary: string, path: string): void {
  try {
    linkSync(temporary, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") throw error;
    // Some file systems have no hard links.
    copyFileSync(temporary, path, constants.COPYFILE_EXCL);
  }
}
