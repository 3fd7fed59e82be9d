import { closeSync, fstatSync, fsyncSync, openSync, readSync, writeSync } from "node:fs";
import type { OpenAttempt } from "../domain/record.js";
import { type ColumnValue, ID_COLUMNS, isSince, type StoredRow } from "./columns.js";
import { isTornLine, parseTelemetryLine, readLines, rowLine } from "./json-lines.js";
import { type RowFilter, type StoreRepair, type TelemetryFile, TelemetryFileError } from "./store.js";

/**
 * Reads telemetry lines; torn and foreign ones are passed over and counted.
 * A file of foreign lines alone is refused with TelemetryFileError once its rows were read.
 */
export function openJsonlFile(path: string): TelemetryFile {
  let unreadableLines = 0;

  async function* rows(filter: RowFilter = {}): AsyncGenerator<StoredRow> {
    unreadableLines = 0;
    let isOurs = false;
    const ids = filter.ids === undefined ? null : new Set<ColumnValue>(filter.ids);
    for await (const text of readLines(path)) {
      if (text.trim() === "") continue;
      const line = parseTelemetryLine(text);
      if (line.kind === "unreadable") unreadableLines += 1;
      isOurs ||= line.kind !== "unreadable" || isTornLine(text);
      if (line.kind !== "record" || !isSince(line.row, filter.sinceMs)) continue;
      if (filter.sessionId !== undefined && line.row.session_id !== filter.sessionId) continue;
      if (ids === null || ID_COLUMNS.some((name) => ids.has(line.row[name]))) yield line.row;
    }
    // Nothing but foreign lines: empty books of it would say that all is well.
    if (unreadableLines > 0 && !isOurs) throw TelemetryFileError.foreign(path, "none of its lines is a telemetry row");
  }

  async function openAttempts(): Promise<OpenAttempt[]> {
    const open = new Map<string, OpenAttempt>();
    for await (const text of readLines(path)) {
      const line = parseTelemetryLine(text);
      if (line.kind === "open") open.set(line.open.callId, line.open);
      else if (line.kind === "record") open.delete(String(line.row.call_id));
    }
    return [...open.values()];
  }

  return {
    kind: "jsonl",
    path,
    rows,
    requireTable: async () => {},
    openAttempts,
    // A record line closes its journal line by itself.
    repair: async ({ rows: added }: StoreRepair) => appendSynced(path, added.map(rowLine).join("")),
    get unreadableLines() {
      return unreadableLines;
    },
    close: () => {},
  };
}

const NEWLINE = 0x0a;

function appendSynced(path: string, text: string): void {
  if (text === "") return;
  const file = openSync(path, "a+");
  try {
    const { size } = fstatSync(file);
    const last = Buffer.alloc(1);
    // Half a line left by a kill must not swallow the next one.
    const torn = size > 0 && readSync(file, last, 0, 1, size - 1) === 1 && last[0] !== NEWLINE;
    const bytes = Buffer.from(torn ? `\n${text}` : text);
    for (let offset = 0; offset < bytes.length; ) offset += writeSync(file, bytes, offset);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
