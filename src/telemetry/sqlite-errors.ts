import { failureOf } from "./sqlite-driver.js";
import { TelemetryFileError } from "./store.js";

/** Runs `read`; what SQLite says about the file becomes a TelemetryFileError in plain words. */
export function explained<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof TelemetryFileError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    switch (failureOf(error)) {
      case "corrupt":
        throw new TelemetryFileError(path, `is damaged (${reason})`, DAMAGED_REMEDY);
      case "busy":
        throw new TelemetryFileError(
          path,
          `is locked by another process (${reason})`,
          "Try again when that one is done",
        );
      default:
        throw new TelemetryFileError(path, `can't be used (${reason})`, "Check the path and its permissions");
    }
  }
}

const DAMAGED_REMEDY =
  "It was left as it is; newer rows may be in the file of the same name ending in .recovered-1. `sqlite3 FILE .recover` may save the old ones";
