// Plain JavaScript: the worker thread loads it by path, without a compiler in between.
import { closeSync, openSync, readFileSync, readSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/**
 * What both drivers have in common.
 * @typedef {object} Statement
 * @property {(...values: unknown[]) => { changes: number | bigint }} run
 * @property {(...values: unknown[]) => unknown[]} all
 * @property {(...values: unknown[]) => unknown} get
 *
 * @typedef {object} Database
 * @property {(sql: string) => unknown} exec
 * @property {(sql: string) => Statement} prepare
 * @property {() => void} close
 *
 * @typedef {"busy" | "full" | "readonly" | "corrupt" | "io" | "other"} Failure
 */

/** The version that works on every supported Node; 13 needs Node 22 and crashes the process on 20. */
export const INSTALL_COMMAND = "npm install better-sqlite3@12";
const FIRST_NODE_WITH_BETTER_SQLITE3_13 = 22;
const BUSY_TIMEOUT_MS = 2_000;

const require = createRequire(import.meta.url);

/** @typedef {(path: string, readOnly: boolean) => Database} OpenDatabase */

/** @type {{ ok: true, driver: string, open: OpenDatabase } | { ok: false, reason: string, remedy: string } | undefined} */
let found;

/**
 * Finds a SQLite driver: the one of Node itself where there is one, else the optional peer better-sqlite3.
 * @returns {{ ok: true, driver: string, open: OpenDatabase } | { ok: false, reason: string, remedy: string }}
 */
export function findDriver() {
  found ??= findNodeSqlite() ?? findBetterSqlite();
  return found;
}

function findNodeSqlite() {
  const builtin = /** @type {any} */ (process).getBuiltinModule?.("node:sqlite");
  if (builtin?.DatabaseSync === undefined) return undefined;
  /** @type {OpenDatabase} */
  const open = (path, readOnly) => new builtin.DatabaseSync(path, { readOnly });
  return { ok: /** @type {const} */ (true), driver: "node:sqlite", open };
}

function findBetterSqlite() {
  const ok = /** @type {const} */ (false);
  try {
    const version = readPackageVersion();
    if (Number.parseInt(version, 10) >= 13 && nodeMajor() < FIRST_NODE_WITH_BETTER_SQLITE3_13) {
      const reason = `better-sqlite3 ${version} does not run on Node ${process.versions.node}`;
      return { ok, reason, remedy: INSTALL_COMMAND };
    }
    const Constructor = require("better-sqlite3");
    // The native part is loaded by the first database, not by `require`.
    new Constructor(":memory:").close();
    /** @type {OpenDatabase} */
    const open = (path, readOnly) => new Constructor(path, { readonly: readOnly, timeout: BUSY_TIMEOUT_MS });
    return { ok: /** @type {const} */ (true), driver: "better-sqlite3", open };
  } catch (error) {
    const missing = /** @type {any} */ (error)?.code === "MODULE_NOT_FOUND";
    const reason = missing
      ? `Node ${process.versions.node} has no built-in SQLite and better-sqlite3 is not installed`
      : `better-sqlite3 can't be loaded: ${firstLine(error)}`;
    return { ok, reason, remedy: INSTALL_COMMAND };
  }
}

function readPackageVersion() {
  // Read, not required: version 13 may crash the process when it is loaded on Node 20.
  const packageRoot = dirname(dirname(require.resolve("better-sqlite3")));
  return String(JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8")).version);
}

function nodeMajor() {
  return Number.parseInt(process.versions.node, 10);
}

/** @param {unknown} error */
function firstLine(error) {
  return String(error instanceof Error ? error.message : error).split("\n", 1)[0];
}

const SQLITE_MAGIC = "SQLite format 3\0";

/** @param {string} path */
function assertReadable(path) {
  const file = openSync(path, "r");
  try {
    const head = Buffer.alloc(SQLITE_MAGIC.length);
    const length = readSync(file, head, 0, head.length, 0);
    if (length > 0 && head.toString("latin1", 0, length) !== SQLITE_MAGIC) {
      throw Object.assign(new Error("file is not a database"), { code: "SQLITE_NOTADB" });
    }
  } finally {
    closeSync(file);
  }
}

/**
 * Opens a database for reading, or for writing with the settings telemetry uses.
 * @param {string} path
 * @param {{ readOnly: boolean }} options
 * @returns {Database}
 */
export function openDatabase(path, { readOnly }) {
  const driver = findDriver();
  if (!driver.ok) throw new Error(`${driver.reason}. Install it: ${driver.remedy}`);
  if (readOnly) assertReadable(path);
  const database = driver.open(path, readOnly);
  try {
    database.exec(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
    if (!readOnly) {
      // Takes effect on a new file only. A row has about 2 KiB: on pages of 4 KiB every commit costs twice the writes.
      database.exec(`PRAGMA page_size = ${PAGE_BYTES}`);
      useWal(database);
      database.exec("PRAGMA synchronous = NORMAL");
      database.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    }
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

const PAGE_BYTES = 16_384;
/** The log is folded into the file every 4 MiB, as SQLite does by default with its small pages. */
const CHECKPOINT_PAGES = 256;
const WAL_TRIES = 20;
const WAL_RETRY_MS = 25;

/**
 * Switching to WAL needs the file alone for a moment and doesn't wait for it by itself.
 * @param {Database} database
 */
function useWal(database) {
  for (let left = WAL_TRIES; ; left--) {
    try {
      database.exec("PRAGMA journal_mode = WAL");
      return;
    } catch (error) {
      if (left === 0 || failureOf(error) !== "busy") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, WAL_RETRY_MS);
    }
  }
}

/** @type {Record<number, Failure>} SQLite's primary result codes */
const FAILURES = { 5: "busy", 6: "busy", 8: "readonly", 10: "io", 11: "corrupt", 13: "full", 14: "io", 26: "corrupt" };
/** @type {Record<string, Failure>} */
const FAILURE_NAMES = {
  BUSY: "busy",
  LOCKED: "busy",
  READONLY: "readonly",
  IOERR: "io",
  CORRUPT: "corrupt",
  FULL: "full",
  CANTOPEN: "io",
  NOTADB: "corrupt",
};

/**
 * What kind of trouble an error of either driver is.
 * @param {unknown} error
 * @returns {Failure}
 */
export function failureOf(error) {
  const { code, errcode } = /** @type {any} */ (error ?? {});
  if (typeof errcode === "number") return FAILURES[errcode & 0xff] ?? "other";
  const name = typeof code === "string" ? code.replace(/^SQLITE_/, "").split("_", 1)[0] : "";
  if (["EACCES", "EPERM", "EROFS", "ENOENT", "ENOSPC", "EIO"].includes(String(code))) return "io";
  // better-sqlite3 reports a missing folder as a TypeError without a code.
  if (error instanceof TypeError && /directory does not exist/.test(error.message)) return "io";
  return FAILURE_NAMES[name ?? ""] ?? "other";
}

/** @param {Database} database */
export function rollback(database) {
  try {
    database.exec("ROLLBACK");
  } catch {
    // SQLite has already rolled back by itself.
  }
}
