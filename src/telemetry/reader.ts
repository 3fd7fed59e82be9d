import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";
import { isPostgresDsn } from "../domain/postgres-dsn.js";
import { openJsonlFile } from "./jsonl-file.js";
import { openPostgresStore } from "./postgres-store.js";
import { openSqliteFile } from "./sqlite-file.js";
import { type TelemetryFile, TelemetryFileError } from "./store.js";

const SQLITE_MAGIC = "SQLite format 3\0";
const HEAD_BYTES = 64;

/**
 * Opens a telemetry file for reading, or the PostgreSQL database of an address; what a file is, is seen in its content. Where `path` doesn't exist, the JSONL file
 * that the CLI falls back to without a SQLite driver (same name ending in `.jsonl`) is taken.
 * Throws TelemetryFileError: missing, damaged, neither SQLite nor JSONL, or no SQLite driver.
 */
export function openTelemetryFile(path: string, options: { readonly table?: string } = {}): TelemetryFile {
  if (isPostgresDsn(path)) return openPostgresStore(path, options.table);
  refuseOtherAddress(path);
  const existing = existingPath(path);
  switch (kindOf(existing)) {
    case "sqlite":
      return openSqliteFile(existing, options.table);
    case "jsonl":
      if (options.table !== undefined)
        throw new TelemetryFileError(existing, "is JSONL, which has no tables", "Leave out --table");
      return openJsonlFile(existing);
    default:
      throw TelemetryFileError.foreign(
        existing,
        "it is neither a SQLite database nor JSONL telemetry, or its beginning is damaged",
      );
  }
}

/** An address of another database, or one in another form, is no file. It isn't quoted: it may hold a password. */
export function refuseOtherAddress(text: string): void {
  const isAddress = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) || /\b(?:host|password)\s*=/i.test(text);
  if (!isAddress) return;
  const remedy = "Give the path of a telemetry file, or postgres://user:password@host:5432/database";
  const problem = "is no file, and no address of PostgreSQL in the form of a URL";
  throw new TelemetryFileError("…", problem, remedy, `What is given as telemetry ${problem}`);
}

function existingPath(path: string): string {
  if (existsSync(path)) {
    // Merely opening a pipe that nobody writes to would wait for ever.
    const isOther = !statSync(path).isFile() && !statSync(path).isDirectory();
    if (isOther) throw new TelemetryFileError(path, "is a pipe or a device", "Give the path of a telemetry file");
    return path;
  }
  const fallback = `${path.replace(/\.(db|sqlite3?)$/, "")}.jsonl`;
  if (existsSync(fallback)) return fallback;
  throw new TelemetryFileError(path, "does not exist", "Run something that records telemetry first, or give --db PATH");
}

function kindOf(path: string): "sqlite" | "jsonl" | "unknown" {
  const head = readHead(path);
  if (head.startsWith(SQLITE_MAGIC)) return "sqlite";
  if (head.trim() === "") return path.endsWith(".jsonl") ? "jsonl" : "sqlite";
  return head.trimStart().startsWith("{") || path.endsWith(".jsonl") ? "jsonl" : "unknown";
}

function readHead(path: string): string {
  try {
    const file = openSync(path, "r");
    try {
      const head = Buffer.alloc(HEAD_BYTES);
      return head.toString("latin1", 0, readSync(file, head, 0, HEAD_BYTES, 0));
    } finally {
      closeSync(file);
    }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new TelemetryFileError(path, `can't be read (${code})`, "Check the path and its permissions");
  }
}
