// Plain JavaScript: the worker thread loads it by path, without a compiler in between.
import { rollback } from "./sqlite-driver.js";

/**
 * @typedef {import("./sqlite-driver.js").Database} Database
 * @typedef {import("./table-layout.js").TableLayout} TableLayout
 */

/** @param {string} name */
function quoted(name) {
  return `"${name.replaceAll('"', '""')}"`;
}

/**
 * @param {Database} database
 * @param {string} table
 * @returns {Set<string>} empty when there is no such table
 */
export function columnsOf(database, table) {
  const rows = /** @type {{ name: string }[]} */ (database.prepare(`PRAGMA table_info(${quoted(table)})`).all());
  return new Set(rows.map((row) => row.name));
}

/**
 * Creates what is missing; a complete table sees no DDL.
 * @param {Database} database
 * @param {TableLayout} layout
 */
export function prepareTables(database, layout) {
  if (isComplete(database, layout)) return;
  database.exec("BEGIN IMMEDIATE");
  try {
    if (columnsOf(database, layout.table).size === 0) createCallTable(database, layout);
    addMissing(database, layout.table, layout.columns);
    const open = layout.openColumns.map(definition).join(", ");
    database.exec(`CREATE TABLE IF NOT EXISTS ${quoted(layout.openTable)} (${open})`);
    addMissing(database, layout.openTable, layout.openColumns);
    database.exec("COMMIT");
  } catch (error) {
    rollback(database);
    throw error;
  }
}

/**
 * @param {Database} database
 * @param {string} table
 * @param {readonly import("./table-layout.js").Column[]} columns
 */
function addMissing(database, table, columns) {
  const existing = columnsOf(database, table);
  for (const column of columns) {
    if (existing.has(column.name)) continue;
    database.exec(`ALTER TABLE ${quoted(table)} ADD COLUMN ${quoted(column.name)} ${column.type}`);
  }
}

/**
 * @param {Database} database
 * @param {TableLayout} layout
 */
function isComplete(database, layout) {
  const existing = columnsOf(database, layout.table);
  const open = columnsOf(database, layout.openTable);
  return (
    layout.columns.every((column) => existing.has(column.name)) &&
    layout.openColumns.every((column) => open.has(column.name))
  );
}

/**
 * @param {Database} database
 * @param {TableLayout} layout
 */
function createCallTable(database, { table, columns, createdAtIndex }) {
  const definitions = columns.map(definition);
  definitions.splice(createdAtIndex, 0, "created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))");
  database.exec(`CREATE TABLE ${quoted(table)} (${definitions.join(", ")})`);
  addIndex(database, table, { name: `${table}_created_at`, column: "created_at", isPartial: false });
  // Most rows have no session, and none is ever looked for.
  addIndex(database, table, { name: `${table}_session_id`, column: "session_id", isPartial: true });
}

/**
 * @param {Database} database
 * @param {string} table
 * @param {{ name: string, column: string, isPartial: boolean }} index
 * @returns {boolean} false when it was there
 */
export function addIndex(database, table, { name, column, isPartial }) {
  const found = database.prepare("SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?").get(name);
  if (found !== undefined) return false;
  const some = isPartial ? ` WHERE ${quoted(column)} IS NOT NULL` : "";
  // Another process may be at the same.
  database.exec(`CREATE INDEX IF NOT EXISTS ${quoted(name)} ON ${quoted(table)} (${quoted(column)})${some}`);
  return true;
}

/**
 * @param {import("./table-layout.js").Column} column
 * @param {number} index
 */
function definition({ name, type }, index) {
  return `${quoted(name)} ${type}${index === 0 ? " NOT NULL PRIMARY KEY" : ""}`;
}

/**
 * @param {string} table
 * @param {readonly Column[]} columns
 */
export function insertSql(table, columns) {
  const names = columns.map((column) => quoted(column.name)).join(", ");
  return `INSERT OR IGNORE INTO ${quoted(table)} (${names}) VALUES (${columns.map(() => "?").join(", ")})`;
}

/** @param {string} table */
export function findSql(table) {
  return `SELECT 1 FROM ${quoted(table)} WHERE call_id = ?`;
}

/** @param {string} table */
export function deleteOpenSql(table) {
  return `DELETE FROM ${quoted(table)} WHERE call_id = ?`;
}
