import { open, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Replaces a file in one step: after a crash at any moment it is the old one or the new one.
 * On any error the old file is untouched and the temporary one is gone.
 */
export async function replaceFile(
  path: string,
  fill: (write: (text: string) => Promise<void>) => Promise<void>,
): Promise<void> {
  const temporary = `${path}.tmp`;
  try {
    // A file that only its owner may read stays so.
    const mode = await stat(path).then(
      (old) => old.mode & 0o777,
      () => 0o666,
    );
    const file = await open(temporary, "w", mode);
    try {
      await fill(async (text) => {
        await file.appendFile(text);
      });
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}

/** Makes a new name durable. Not every system can; the file itself is synced anyway. */
export async function syncFolder(path: string): Promise<void> {
  try {
    const folder = await open(path, "r");
    await folder.sync().finally(() => folder.close());
  } catch {
    return;
  }
}
