import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

/**
 * Makes a folder with those above it. Step by step, since Node's own `recursive` never ends where a system denies that a
 * folder is there which it lists, as /proc does. Throws the error of the file system.
 */
export function makeFolder(path: string): void {
  const missing: string[] = [];
  for (let at = path; ; at = dirname(at)) {
    const stats = statSync(at, { throwIfNoEntry: false });
    if (stats?.isDirectory() === true) break;
    if (stats !== undefined) throw Object.assign(new Error(`${at} is a file`), { code: "ENOTDIR" });
    // The root of a drive that isn't there.
    if (dirname(at) === at) throw Object.assign(new Error(`there is no ${at}`), { code: "ENOENT" });
    missing.unshift(at);
  }
  for (const folder of missing) {
    try {
      mkdirSync(folder);
    } catch (error) {
      // Somebody else made it meanwhile.
      if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) throw error;
    }
  }
}
