import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openTelemetryFile } from "../../src/telemetry/reader.js";
import { type ReconcileReport, reconcileStore } from "../../src/telemetry/reconcile.js";
import { startPostgres } from "../services/postgres.js";
import type { JudgedRow } from "./books-judge.js";
import type { WorkerPlan } from "./messages.js";

/** Where all processes of a run write their rows. */
export interface TelemetryStore {
  readonly plan: WorkerPlan["telemetry"];
  dispose(): Promise<void>;
}

export async function openStore(kind: "postgres" | "sqlite"): Promise<TelemetryStore> {
  if (kind === "sqlite") {
    const folder = mkdtempSync(join(tmpdir(), "pgw-fleet-"));
    const dispose = async (): Promise<void> => rmSync(folder, { recursive: true, force: true });
    return { plan: { kind, place: join(folder, "fleet.db") }, dispose };
  }
  const started = await startPostgres();
  if (!started.ok) throw new Error(`${started.reason}\nOr use a file: npm run fleet -- --telemetry sqlite`);
  const { server } = started;
  return { plan: { kind, place: server.url() }, dispose: () => server.dispose() };
}

/** Closes what the dead left open, and reads everything. */
export async function readBooks(place: string): Promise<{ report: ReconcileReport; rows: JudgedRow[] }> {
  const report = await reconcileStore({ store: place, now: Date.now() });
  const file = openTelemetryFile(place);
  const rows: JudgedRow[] = [];
  try {
    for await (const row of file.rows({ withoutTexts: true })) rows.push(judged(row));
  } finally {
    file.close();
  }
  return { report, rows };
}

/** A run has hundreds of thousands of them. */
function judged(row: JudgedRow): JudgedRow {
  const { call_id, request_id, source_name, outcome, attempt, final } = row;
  const { usage_source, prompt_tokens, completion_tokens } = row;
  return {
    ...{ call_id, request_id, source_name, outcome, attempt, final },
    ...{ usage_source, prompt_tokens, completion_tokens },
  };
}
