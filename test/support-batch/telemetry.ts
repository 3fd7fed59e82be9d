import type { StoredRow } from "../../src/telemetry/columns.js";
import { openTelemetryFile } from "../../src/telemetry/reader.js";

/** A telemetry file read back for a test. */
export interface Records {
  readonly rows: readonly StoredRow[];
  /** Rows that stand for one send each: terminal rows and dead reused sockets apart. */
  readonly sends: readonly StoredRow[];
  /** How many sends ended in which way. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Journal rows whose end nobody has recorded. */
  readonly openAttempts: number;
}

export async function readRecords(path: string): Promise<Records> {
  const file = openTelemetryFile(path);
  try {
    const rows: StoredRow[] = [];
    for await (const row of file.rows({ withoutTexts: true })) rows.push(row);
    const sends = rows.filter((row) => row.attempt !== null && row.outcome !== "stale_socket");
    const outcomes: Record<string, number> = {};
    for (const { outcome } of sends) outcomes[String(outcome)] = (outcomes[String(outcome)] ?? 0) + 1;
    return { rows, sends, outcomes, openAttempts: (await file.openAttempts()).length };
  } finally {
    file.close();
  }
}
