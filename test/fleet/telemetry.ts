import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StoredRow } from "../../src/telemetry/columns.js";
import { openTelemetryFile } from "../../src/telemetry/reader.js";
import { type ReconcileReport, reconcileStore } from "../../src/telemetry/reconcile.js";
import { parseWorkerId } from "../../src/telemetry/worker-id.js";
import { onConnection } from "../services/database.js";
import { type PostgresServer, startPostgres } from "../services/postgres.js";
import { startTcpRelay, type TcpRelay } from "../services/tcp-relay.js";
import type { JudgedRow } from "./books-judge.js";
import type { TelemetryPlan } from "./messages.js";

/** Who writes the rows: a role that is asked for its password. */
export const POSTGRES_ROLE = "fleet";

export interface PostgresStore {
  readonly server: PostgresServer;
  readonly relay: TcpRelay;
  readonly password: string;
}

/** Where all processes of a run write their rows. */
export interface TelemetryStore {
  readonly kind: TelemetryPlan["kind"];
  readonly place: string;
  /** The same by way of the relay. */
  readonly relayedPlace: string;
  readonly postgres: PostgresStore | null;
  dispose(): Promise<void>;
}

export function openStore(kind: TelemetryPlan["kind"], password: string): Promise<TelemetryStore> {
  return kind === "sqlite" ? Promise.resolve(openFile()) : openPostgres(password);
}

function openFile(): TelemetryStore {
  const folder = mkdtempSync(join(tmpdir(), "pgw-fleet-"));
  const place = join(folder, "fleet.db");
  const dispose = async (): Promise<void> => rmSync(folder, { recursive: true, force: true });
  return { kind: "sqlite", place, relayedPlace: place, postgres: null, dispose };
}

async function openPostgres(password: string): Promise<TelemetryStore> {
  const started = await startPostgres(process.pid, [POSTGRES_ROLE]);
  if (!started.ok) throw new Error(`${started.reason}\nOr use a file: npm run fleet -- --telemetry sqlite`);
  const { server } = started;
  await onConnection(server.url(), async (client) => {
    await client.query(`CREATE ROLE ${POSTGRES_ROLE} LOGIN PASSWORD '${password}'`);
    await client.query(`GRANT CREATE ON SCHEMA public TO ${POSTGRES_ROLE}`);
  });
  const relay = await startTcpRelay(server.port);
  const at = (port: number) => `postgres://${POSTGRES_ROLE}:${password}@127.0.0.1:${port}/postgres`;
  return {
    kind: "postgres",
    place: at(server.port),
    relayedPlace: at(relay.port),
    postgres: { server, relay, password },
    async dispose() {
      await relay.close();
      await server.dispose();
    },
  };
}

export interface Books {
  readonly report: ReconcileReport;
  readonly rows: readonly JudgedRow[];
  /** By process: its rows in the store before any repair. */
  readonly stored: ReadonlyMap<number, number>;
}

/** Reads everything, closes what the dead left open, and reads what that added. `look` sees every text. */
export async function readBooks(place: string, look: (text: string) => void): Promise<Books> {
  const stored = new Map<number, number>();
  const rows: JudgedRow[] = [];
  const file = openTelemetryFile(place);
  try {
    for (const open of await file.openAttempts()) look(JSON.stringify(open));
    for await (const row of file.rows()) {
      look(JSON.stringify(row));
      const pid = parseWorkerId(String(row.worker))?.pid ?? 0;
      stored.set(pid, (stored.get(pid) ?? 0) + 1);
    }
    const report = await reconcileStore({ store: place, now: Date.now() });
    for await (const row of file.rows({ withoutTexts: true })) rows.push(judged(row));
    return { report, rows, stored };
  } finally {
    file.close();
  }
}

/** A run has hundreds of thousands of them. */
function judged(row: StoredRow): JudgedRow {
  const { call_id, request_id, source_name, outcome, attempt, final } = row;
  const { usage_source, prompt_tokens, completion_tokens } = row;
  return {
    ...{ call_id, request_id, source_name, outcome, attempt, final },
    ...{ usage_source, prompt_tokens, completion_tokens },
  };
}
