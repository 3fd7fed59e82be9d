import { randomBytes } from "node:crypto";
import pg from "pg";
import type { SharedPostgres } from "./shared-postgres.js";

/** A new, empty database of the shared server, and a role of its own that may do nothing yet. */
export interface TestDatabase {
  readonly name: string;
  /** Name of the role; it may connect, and has no other right in the database. */
  readonly role: string;
  /** As the super-user, or as the role. */
  url(user?: "postgres" | "role"): string;
  /** Runs statements as the super-user and answers the rows of the last one. */
  sql(text: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>;
  /** DDL statements that the server has logged for this database. */
  ddl(): string[];
  dispose(): Promise<void>;
}

/** Runs on a connection of its own. */
export async function onConnection<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

export async function createDatabase(server: SharedPostgres): Promise<TestDatabase> {
  const name = `t_${randomBytes(6).toString("hex")}`;
  const role = `r_${name}`;
  await onConnection(server.url("postgres"), async (client) => {
    await client.query(`CREATE DATABASE ${name} STRATEGY file_copy`);
    await client.query(`CREATE ROLE ${role} LOGIN`);
  });
  const admin = new pg.Pool({ connectionString: server.url(name), max: 1 });
  admin.on("error", () => {});
  // As from PostgreSQL 15 on, whatever the version here.
  await admin.query("REVOKE CREATE ON SCHEMA public FROM PUBLIC");
  return {
    name,
    role,
    url: (user = "postgres") => server.url(name, user === "role" ? role : "postgres"),
    async sql(text, values) {
      const result = await admin.query(text, values as unknown[]);
      return (Array.isArray(result) ? result.at(-1) : result).rows;
    },
    ddl: () => ddlIn(server.log(), name),
    async dispose() {
      await admin.end();
      await onConnection(server.url("postgres"), async (client) => {
        await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
        await client.query(`DROP ROLE IF EXISTS ${role}`);
      });
    },
  };
}

function ddlIn(log: string, database: string): string[] {
  const lines = log.split("\n").filter((line) => line.startsWith(`${database} `));
  return lines.flatMap((line) => /LOG: {2}(?:statement|execute [^:]*): (.*)/.exec(line)?.[1] ?? []);
}
