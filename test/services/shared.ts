import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { servicesAreRequired } from "./binaries.js";
import { type PostgresServer, startPostgres } from "./postgres.js";

/**
 * One server of each kind for a whole run of the tests, whose files run in processes of their own: vitest's main process
 * keeps them, starts one when the first file asks for it, and ends them all by their pids.
 */
const ADDRESS = "PGW_TEST_SERVICES";

type Answer =
  | { readonly ok: true; readonly port: number; readonly logPath: string }
  | { readonly ok: false; readonly reason: string };

export interface SharedPostgres {
  /** Default user: the super-user `postgres`. */
  url(database: string, user?: string): string;
  /** What the server has logged so far. */
  log(): string;
}

/** For vitest's `globalSetup`. */
export default async function setup(): Promise<() => Promise<void>> {
  const keeper = new Keeper();
  process.env[ADDRESS] = await keeper.listen();
  return () => keeper.close();
}

class Keeper {
  #server: Server | null = null;
  #postgres: Promise<Awaited<ReturnType<typeof startPostgres>>> | null = null;
  #running: PostgresServer | null = null;
  readonly #onExit = () => this.#running?.disposeSync();

  listen(): Promise<string> {
    const server = createServer((_request, response) => {
      void this.#answer().then((answer) => response.end(JSON.stringify(answer)));
    });
    server.unref();
    this.#server = server;
    process.once("exit", this.#onExit);
    return new Promise((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
    });
  }

  async close(): Promise<void> {
    this.#server?.close();
    await this.#postgres;
    await this.#running?.dispose();
    this.#running = null;
    process.off("exit", this.#onExit);
  }

  async #answer(): Promise<Answer> {
    this.#postgres ??= startPostgres();
    const started = await this.#postgres;
    if (!started.ok) return started;
    this.#running = started.server;
    return { ok: true, port: started.server.port, logPath: started.server.logPath };
  }
}

/**
 * The shared PostgreSQL, or why there is none: then the tests that need it are left out, and say so. Where services are
 * required (CI), that fails the run instead.
 */
export async function sharedPostgres(): Promise<SharedPostgres | null> {
  const address = process.env[ADDRESS];
  if (address === undefined) throw new Error("the tests of PostgreSQL need vitest's globalSetup (vitest.config.ts)");
  const answer = (await (await fetch(`${address}/postgres`)).json()) as Answer;
  if (answer.ok) {
    const { port, logPath } = answer;
    return {
      url: (database, user = "postgres") => `postgres://${user}@127.0.0.1:${port}/${database}`,
      log: () => readFileSync(logPath, "utf8"),
    };
  }
  if (servicesAreRequired()) throw new Error(answer.reason);
  console.warn(`Skipped, because there is no PostgreSQL: ${answer.reason}`);
  return null;
}
