import type { ProcessSettings } from "../config/schema-process.js";
import { inspectPostgres, type PostgresHealth } from "../telemetry/postgres-care.js";
import type { CheckReport } from "./check-report.js";
import { printable, type Style } from "./terminal.js";

/** The state of the telemetry database, asked once; null = the configuration names none, or not well. */
export async function checkPostgres(report: CheckReport): Promise<PostgresHealth | null> {
  const settings: ProcessSettings | undefined = report.scopes[0]?.inspection.process;
  const { telemetryBackends, postgresDsn, journal } = settings ?? {};
  if (telemetryBackends?.includes("postgres") !== true || postgresDsn === undefined) return null;
  return inspectPostgres(postgresDsn.reveal(), journal !== "off");
}

export function postgresLines(health: PostgresHealth | null, style: Style): string[] {
  if (health === null) return [];
  const marks = { ok: style.green("✓"), warning: style.yellow("warning"), problem: style.red("✗") };
  const lines = health.findings.map(({ level, text }) => `  ${marks[level]} ${printable(text)}`);
  return [style.bold(`Telemetry database ${printable(health.place)}`), ...lines, ""];
}
