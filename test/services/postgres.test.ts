import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { findOrInstall } from "./binaries.js";
import { createDatabase, onConnection } from "./database.js";
import { type PostgresServer, startPostgres } from "./postgres.js";
import { sharedPostgres } from "./shared-postgres.js";

const shared = await sharedPostgres();
let server: PostgresServer | undefined;

afterAll(() => server?.dispose());

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe.skipIf(shared === null)("PostgreSQL of the tests", () => {
  test("gives every test file databases of their own on one server", async () => {
    const [one, two] = await Promise.all([createDatabase(shared!), createDatabase(shared!)]);
    await one.sql("CREATE TABLE only_here (a int)");
    expect(await two.sql("SELECT to_regclass('only_here') AS found")).toEqual([{ found: null }]);
    expect(one.ddl()).toContain("CREATE TABLE only_here (a int)");
    await one.dispose();
    await two.dispose();
  });

  test("a private one is stopped, started again with its data, and removed", async () => {
    const started = await startPostgres();
    if (!started.ok) throw new Error(started.reason);
    server = started.server;
    const { pid } = server;
    await onConnection(server.url(), (client) => client.query("CREATE TABLE kept (a int)"));
    await server.stop();
    expect(isAlive(pid)).toBe(false);
    await server.start();
    const found = await onConnection(server.url(), (client) => client.query("SELECT to_regclass('kept') AS found"));
    expect(found.rows).toEqual([{ found: "kept" }]);
    await server.dispose();
    expect(existsSync(dirname(server.logPath))).toBe(false);
  });
});

test.skipIf(shared === null || process.platform !== "linux")(
  "a private one asks the roles that were named for a password, and answers nobody while it is paused",
  async () => {
    const started = await startPostgres(process.pid, ["asked"]);
    if (!started.ok) throw new Error(started.reason);
    const other = started.server;
    try {
      await onConnection(other.url(), (client) => client.query("CREATE ROLE asked LOGIN PASSWORD 'right'"));
      const login = (password: string) =>
        onConnection(other.url("postgres", `asked:${password}`), (client) => client.query("SELECT 1 AS one"));
      await expect(login("wrong")).rejects.toThrow("password authentication failed");
      other.pause();
      let isAnswered = false;
      const answered = login("right").then(({ rows }) => {
        isAnswered = true;
        return rows;
      });
      await sleep(300);
      expect(isAnswered).toBe(false);
      other.resume();
      expect(await answered).toEqual([{ one: 1 }]);
    } finally {
      // Ends a server that was paused, too.
      other.pause();
      await other.dispose();
    }
    expect(existsSync(other.folder)).toBe(false);
  },
);

test("a program that is nowhere is named with the command that installs it", () => {
  const before = { CI: process.env.CI, install: process.env.PGW_INSTALL_SERVICES };
  delete process.env.CI;
  delete process.env.PGW_INSTALL_SERVICES;
  try {
    const found = findOrInstall({
      names: ["no-such-program"],
      debianPackage: "no-such-package",
      folders: ["/none/*/bin"],
    });
    expect(found).toEqual({
      ok: false,
      reason:
        "no-such-program not found on PATH or in /none/*/bin. Install it: apt-get install -y --no-install-recommends no-such-package",
    });
  } finally {
    if (before.CI !== undefined) process.env.CI = before.CI;
    if (before.install !== undefined) process.env.PGW_INSTALL_SERVICES = before.install;
  }
});
