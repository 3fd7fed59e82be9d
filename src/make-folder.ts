import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * A folder with those above it. Node's own `recursive` never ends, and can't be stopped, where a folder is there and takes
 * none, as in `/proc`.
 */
export function makeFolder(path: string, mode = 0o777): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (isFolder(path)) return;
    const above = dirname(path);
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || above === path || isFolder(above)) throw error;
    makeFolder(above, mode);
    makeFolder(path, mode);
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
