import { lstatSync } from "node:fs";
import { makeFolder } from "../make-folder.js";

/** In a temporary folder that all share, somebody else may have taken the name. Throws what is wrong. */
export function refuseForeignFolder(folder: string): void {
  const stats = lstatSync(folder, { throwIfNoEntry: false });
  if (stats === undefined) return;
  const user = process.getuid?.();
  if (stats.isDirectory() && (user === undefined || stats.uid === user)) return;
  throw new Error(`${folder} is not a folder of this user`);
}

export function makeOwnFolder(folder: string): void {
  makeFolder(folder, 0o700);
}
