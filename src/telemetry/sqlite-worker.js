// The thread that owns the database file: one message is one transaction. Loaded by path, hence plain JavaScript.
import { statSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { failureOf, findDriver, INSTALL_COMMAND, openDatabase, rollback } from "./sqlite-driver.js";
import { deleteOpenSql, findSql, insertSql, prepareTables } from "./sqlite-tables.js";

/**
 * @typedef {import("./sqlite-driver.js").Database} Database
 * @typedef {import("./sqlite-driver.js").Statement} Statement
 * @typedef {{ code: string, message: string }} Problem
 *
 * Kinds of an entry: 0 = journal row, 1 = record, 2 = record that also deletes its journal row.
 * @typedef {{ type: "write", kinds: number[], values: (string | number | null)[] }} WriteMessage
 * @typedef {WriteMessage | { type: "tick", delayMs: number } | { type: "close" }} Message
 *
 * `status`: committed (but for the entries listed as `lost`), to be tried again, or never possible.
 * @typedef {{ type: "done", status: "committed" | "retry" | "hopeless", lost: number[], problem: Problem | null }} Done
 */

/** @type {{ path: string, layout: import("./table-layout.js").TableLayout }} */
const { path, layout } = workerData;
const port = /** @type {import("node:worker_threads").MessagePort} */ (parentPort);
const OPEN = 0;
const RECORD_CLOSING_OPEN = 2;
const MAX_REPLACEMENTS = 9;

/** @type {{ database: Database, file: string, inode: number, insert: Statement, insertOpen: Statement, deleteOpen: Statement, find: Statement } | null} */
let store = null;
/** @type {Problem | null} the newest thing worth telling, although the write went on */
let notice = null;
/** @type {Set<string>} files found damaged by this thread */
const damagedFiles = new Set();

port.on("message", (/** @type {Message} */ message) => {
  // Unref: a pending tick must not delay the end of the thread.
  if (message.type === "tick") setTimeout(() => port.postMessage({ type: "tick" }), message.delayMs).unref();
  else if (message.type === "write") port.postMessage(write(message));
  else {
    closeStore();
    port.close();
  }
});

const MAX_TRIES = 3;

/**
 * @param {WriteMessage} message
 * @returns {Done}
 */
function write(message) {
  if (!findDriver().ok) return failed("hopeless", "SQLITE_TELEMETRY_DRIVER", driverText());
  /** @type {unknown} */
  let lastError;
  for (let tries = 1; tries <= MAX_TRIES; tries++) {
    try {
      return commit(message);
    } catch (error) {
      lastError = error;
      const failure = failureOf(error);
      if (failure === "corrupt") damagedFiles.add(store?.file ?? path);
      closeStore();
      // Opened anew, a damaged file is replaced and lost tables are made again.
      const mayHelp = failure === "corrupt" || (failure === "other" && tries === 1);
      if (!mayHelp) break;
    }
  }
  return failureOf(lastError) === "other" ? oneByOne(message, lastError) : giveBack(lastError);
}

/**
 * @param {unknown} error
 * @returns {Done}
 */
function giveBack(error) {
  const failure = failureOf(error);
  if (failure === "other")
    return failed("hopeless", "SQLITE_TELEMETRY_WRITE", `${path}: ${text(error)}; rows are lost`);
  return failed("retry", `SQLITE_TELEMETRY_${failure.toUpperCase()}`, retryText(failure, error));
}

/**
 * @param {WriteMessage} message
 * @returns {Done}
 */
function commit(message) {
  const open = openStore();
  open.database.exec("BEGIN IMMEDIATE");
  try {
    forEachEntry(message, (kind, values) => writeEntry(open, kind, values));
    open.database.exec("COMMIT");
  } catch (error) {
    rollback(open.database);
    throw error;
  }
  return committed([]);
}

/**
 * One bad row must not cost its neighbours: each gets its own savepoint.
 * @param {WriteMessage} message
 * @param {unknown} cause
 * @returns {Done}
 */
function oneByOne(message, cause) {
  /** @type {number[]} */
  const lost = [];
  try {
    const open = openStore();
    open.database.exec("BEGIN IMMEDIATE");
    forEachEntry(message, (kind, values, index) => {
      open.database.exec("SAVEPOINT entry");
      try {
        writeEntry(open, kind, values);
      } catch (error) {
        if (failureOf(error) !== "other") throw error;
        lost.push(index);
        open.database.exec("ROLLBACK TO entry");
      }
      open.database.exec("RELEASE entry");
    });
    open.database.exec("COMMIT");
  } catch (error) {
    if (store !== null) rollback(store.database);
    closeStore();
    return giveBack(error);
  }
  if (lost.length > 0) {
    notice = {
      code: "SQLITE_TELEMETRY_ROW",
      message: `${lost.length} rows refused by ${path} and lost: ${text(cause)}`,
    };
  }
  return committed(lost);
}

/**
 * @param {WriteMessage} message
 * @param {(kind: number, values: (string | number | null)[], index: number) => void} visit
 */
function forEachEntry({ kinds, values }, visit) {
  let offset = 0;
  for (let index = 0; index < kinds.length; index++) {
    const kind = /** @type {number} */ (kinds[index]);
    const width = kind === OPEN ? layout.openColumns.length : layout.columns.length;
    visit(kind, values.slice(offset, offset + width), index);
    offset += width;
  }
}

/**
 * @param {NonNullable<typeof store>} open
 * @param {number} kind
 * @param {(string | number | null)[]} values
 */
function writeEntry(open, kind, values) {
  if (kind === OPEN) {
    open.insertOpen.run(...values);
    return;
  }
  const { changes } = open.insert.run(...values);
  // Nothing inserted: written before (fine), or against a rule of a table made by others.
  if (Number(changes) === 0 && open.find.get(values[0]) === undefined) throw new Error("the table refuses this row");
  if (kind === RECORD_CLOSING_OPEN) open.deleteOpen.run(values[0]);
}

/** @returns {NonNullable<typeof store>} */
function openStore() {
  if (store !== null && inodeOf(store.file) !== store.inode) {
    notice = { code: "SQLITE_TELEMETRY_DELETED", message: `${store.file} was removed or replaced; a new one is used` };
    closeStore();
  }
  store ??= openFirstHealthy();
  return store;
}

/** A corrupt file is left as it is: rows go to a new file beside it. */
function openFirstHealthy() {
  /** @type {unknown} */
  let damage;
  for (let number = 0; number <= MAX_REPLACEMENTS; number++) {
    const file = number === 0 ? path : `${path}.recovered-${number}`;
    if (damagedFiles.has(file)) continue;
    try {
      const opened = openFile(file);
      if (number > 0) {
        const message = `${path} is damaged and left as it is; rows are written to ${file}`;
        notice = { code: "SQLITE_TELEMETRY_CORRUPT", message };
      }
      return opened;
    } catch (error) {
      if (failureOf(error) !== "corrupt") throw error;
      damagedFiles.add(file);
      damage = error;
    }
  }
  throw damage ?? Object.assign(new Error("no healthy file is left"), { code: "SQLITE_CORRUPT" });
}

/** @param {string} file */
function openFile(file) {
  const database = openDatabase(file, { readOnly: false });
  try {
    prepareTables(database, layout);
    return {
      database,
      file,
      inode: inodeOf(file),
      insert: database.prepare(insertSql(layout.table, layout.columns)),
      insertOpen: database.prepare(insertSql(layout.openTable, layout.openColumns)),
      deleteOpen: database.prepare(deleteOpenSql(layout.openTable)),
      find: database.prepare(findSql(layout.table)),
    };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** @param {string} file */
function inodeOf(file) {
  return statSync(file, { throwIfNoEntry: false })?.ino ?? -1;
}

function closeStore() {
  try {
    store?.database.close();
  } catch {
    // A damaged file may refuse even that; the descriptor goes with the thread.
  }
  store = null;
}

/**
 * @param {number[]} lost
 * @returns {Done}
 */
function committed(lost) {
  const problem = notice;
  notice = null;
  return { type: "done", status: "committed", lost, problem };
}

/**
 * @param {"retry" | "hopeless"} status
 * @param {string} code
 * @param {string} message
 * @returns {Done}
 */
function failed(status, code, message) {
  return { type: "done", status, lost: [], problem: { code, message } };
}

/**
 * @param {import("./sqlite-driver.js").Failure} failure
 * @param {unknown} error
 */
function retryText(failure, error) {
  const causes = {
    busy: "is locked by another process",
    full: "can't grow: the disk or its quota is full",
    readonly: "is read-only",
    io: "can't be opened or written",
    corrupt: "is damaged",
    other: "refuses rows",
  };
  return `${path} ${causes[failure]} (${text(error)}); rows are kept and tried again`;
}

function driverText() {
  const driver = findDriver();
  return driver.ok ? "" : `${driver.reason}. Rows are lost until a driver is there: ${INSTALL_COMMAND}`;
}

/** @param {unknown} error */
function text(error) {
  return error instanceof Error ? error.message : String(error);
}
