import { readFileSync } from "node:fs";
import { startPostgres } from "./postgres.js";
import { sharedService } from "./run.js";

export interface SharedPostgres {
  /** Default user: the super-user `postgres`. */
  url(database: string, user?: string): string;
  /** What the server has logged so far. */
  log(): string;
}

/**
 * The PostgreSQL that all files of a run share; null = there is none, which is said: tests then skip. Where services are
 * required (CI) that is an error instead.
 */
export async function sharedPostgres(): Promise<SharedPostgres | null> {
  const shared = await sharedService("postgres", async (owner) => {
    const started = await startPostgres(owner);
    if (!started.ok) throw new Error(started.reason);
    const { port, pid, folder, logPath } = started.server;
    return { port, logPath, pids: [pid], folders: [folder] };
  });
  if (shared === null) return null;
  return {
    url: (database, user = "postgres") => `postgres://${user}@127.0.0.1:${shared.port}/${database}`,
    log: () => readFileSync(shared.logPath, "utf8"),
  };
}
