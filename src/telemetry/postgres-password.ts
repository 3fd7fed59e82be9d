import { createRequire } from "node:module";

/** What is used of a client class of the package `pg`. */
export type ClientClass = new (config: object) => { password?: unknown; connectionParameters?: unknown };

type PgPass = (connection: unknown, answer: (password: string | undefined) => void) => void;

/**
 * The driver reads `~/.pgpass` by itself where an address has no password, and writes to stderr that it will not do so for
 * ever. Here it is given the password, by the same file.
 */
export function withPasswordFile(Client: ClientClass, pgModule: string): ClientClass {
  const pgpass = loadPgPass(pgModule);
  return pgpass === null ? Client : givenPasswords(Client, pgpass);
}

function givenPasswords(Client: ClientClass, pgpass: PgPass): ClientClass {
  return class extends Client {
    constructor(config: object) {
      super(config);
      // Neither in the address nor in PGPASSWORD.
      if (this.password !== null) return;
      this.password = () => new Promise((resolve) => pgpass(this.connectionParameters, resolve));
    }
  };
}

/** A package of the driver's own; null where it has none (any more). */
function loadPgPass(pgModule: string): PgPass | null {
  try {
    return createRequire(pgModule)("pgpass") as PgPass;
  } catch {
    return null;
  }
}
