import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { findOrInstall } from "./binaries.js";
import { childrenOf, freePorts, signalTo } from "./processes.js";

/**
 * A PostgreSQL server of the tests' own: a temporary folder, a free port of the loopback address. No password is asked but
 * from the roles that were named.
 */
export interface PostgresServer {
  readonly port: number;
  /** Of the server's main process, while it runs. */
  readonly pid: number;
  /** `postgres://…` of a database; default: the one of the super-user, who is `postgres`. */
  url(database?: string, user?: string): string;
  /** Where the server logs, DDL statements among the rest, each line with its database. */
  readonly logPath: string;
  readonly folder: string;
  /** Ends the server, without a farewell to its clients, and starts it again on the same port and data. */
  stop(): Promise<void>;
  start(): Promise<void>;
  /** SIGSTOP to all of its processes: connections stay, nothing is answered. Only where /proc tells which they are. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
  /** Ends it and removes its folder. */
  dispose(): Promise<void>;
}

export type StartedPostgres =
  | { readonly ok: true; readonly server: PostgresServer }
  | { readonly ok: false; readonly reason: string };

const SETTINGS = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  // The data is thrown away: what counts is that a commit is seen by others.
  fsync: "off",
  full_page_writes: "off",
  shared_buffers: "32MB",
  max_connections: "120",
  log_statement: "ddl",
  log_line_prefix: "%d %p ",
  timezone: "UTC",
};

/**
 * Starts a server in about two seconds; what is in the way comes back as a reason. It doesn't outlive the process `owner`.
 * `passwordRoles`: who of those that will be created is asked for a password.
 */
export async function startPostgres(
  owner = process.pid,
  passwordRoles: readonly string[] = [],
): Promise<StartedPostgres> {
  const found = findOrInstall({
    names: ["initdb", "postgres"],
    debianPackage: "postgresql",
    folders: ["/usr/lib/postgresql/*/bin"],
  });
  if (!found.ok) return found;
  const folder = mkdtempSync(join(isRoot() ? "/tmp" : tmpdir(), "pgw-postgres-"));
  const [port = 0] = await freePorts(1);
  const server = new Server(folder, found.paths, port, owner);
  try {
    server.create(passwordRoles);
    await server.start();
    return { ok: true, server };
  } catch (error) {
    await server.dispose();
    return { ok: false, reason: `PostgreSQL could not be started: ${String(error)}` };
  }
}

/** Then the server runs as another user, who may not look into the folder that TMPDIR names. */
const isRoot = (): boolean => process.getuid?.() === 0;

/** PostgreSQL refuses to run as root: then it runs as `postgres`, the user of the Debian package. */
function asOwner(program: string, args: readonly string[]): [string, string[]] {
  if (!isRoot()) return [program, [...args]];
  return ["runuser", ["-u", "postgres", "--", program, ...args]];
}

/** Ends the server and removes its folder when the process `$1` is gone, so that nothing outlives a run that was killed. */
const WATCH = `
  while kill -0 "$1" 2>/dev/null && [ -d "$2" ]; do sleep 1; done
  if [ -f "$2/data/postmaster.pid" ]; then
    server="$(head -n 1 "$2/data/postmaster.pid")"
    # It may be paused, and then so is who started it.
    kill -QUIT "$server" && kill -CONT "$server" "$(cut -d " " -f 4 "/proc/$server/stat")"
    sleep 1
  fi 2>/dev/null
  rm -rf "$2"`;

const START_LIMIT_MS = 30_000;
const POLL_MS = 20;

class Server implements PostgresServer {
  readonly port: number;
  readonly logPath: string;
  readonly folder: string;
  readonly #owner: number;
  readonly #data: string;
  readonly #programs: Readonly<Record<string, string>>;
  #child: ChildProcess | null = null;
  #paused: readonly number[] = [];

  constructor(folder: string, programs: Readonly<Record<string, string>>, port: number, owner: number) {
    this.folder = folder;
    this.#data = join(folder, "data");
    this.logPath = join(folder, "server.log");
    this.#programs = programs;
    this.port = port;
    this.#owner = owner;
  }

  get pid(): number {
    return Number.parseInt(readFileSync(join(this.#data, "postmaster.pid"), "utf8"), 10);
  }

  url(database = "postgres", user = "postgres"): string {
    return `postgres://${user}@127.0.0.1:${this.port}/${database}`;
  }

  #logged(): string {
    return existsSync(this.logPath) ? readFileSync(this.logPath, "utf8") : "";
  }

  create(passwordRoles: readonly string[]): void {
    if (isRoot()) {
      const idOf = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
      chownSync(this.folder, idOf("-u"), idOf("-g"));
    }
    chmodSync(this.folder, 0o711);
    const watch = spawn("sh", ["-c", WATCH, "sh", String(this.#owner), this.folder], {
      detached: true,
      stdio: "ignore",
    });
    watch.unref();
    const args = ["--pgdata", this.#data, "--username", "postgres", "--auth", "trust", "--encoding", "UTF8"];
    const [program, all] = asOwner(this.#programs.initdb ?? "", [...args, "--locale", "C", "--no-sync"]);
    execFileSync(program, all, { cwd: "/", stdio: ["ignore", "ignore", "pipe"] });
    // The first line that fits decides.
    const access = join(this.#data, "pg_hba.conf");
    const asked = passwordRoles.map((role) => `host all ${role} 127.0.0.1/32 scram-sha-256\n`);
    writeFileSync(access, asked.join("") + readFileSync(access, "utf8"));
  }

  async start(): Promise<void> {
    const settings = Object.entries({ ...SETTINGS, port: String(this.port) });
    const args = ["-D", this.#data, ...settings.flatMap(([name, value]) => ["-c", `${name}=${value}`])];
    const [program, all] = asOwner(this.#programs.postgres ?? "", args);
    // In a group of its own: Ctrl-C in the terminal is for the tests, which then stop it.
    const startedAt = this.#logged().length;
    const log = openSync(this.logPath, "a");
    const child = spawn(program, all, { cwd: "/", stdio: ["ignore", "ignore", log], detached: true });
    closeSync(log);
    child.unref();
    this.#child = child;
    for (let waited = 0; waited < START_LIMIT_MS; waited += POLL_MS) {
      if (this.#logged().slice(startedAt).includes("database system is ready to accept connections")) return;
      if (child.exitCode !== null) throw new Error(this.#logged().slice(startedAt).trim());
      await sleep(POLL_MS);
    }
    throw new Error(`not ready within ${START_LIMIT_MS} ms: ${this.#logged().slice(startedAt).trim()}`);
  }

  async stop(): Promise<void> {
    const child = this.#child;
    if (child === null || !this.#signal()) return;
    while (child.exitCode === null && child.signalCode === null) await sleep(POLL_MS);
    this.#child = null;
  }

  pause(): void {
    const { pid } = this;
    // The first one first, so that it makes no more of them.
    signalTo(pid, "SIGSTOP");
    this.#paused = [pid, ...childrenOf(pid)];
    for (const one of this.#paused) signalTo(one, "SIGSTOP");
  }

  resume(): void {
    // Who started the server as another user stops when it is stopped.
    for (const one of [this.#child?.pid ?? 0, ...this.#paused]) if (one > 0) signalTo(one, "SIGCONT");
    this.#paused = [];
  }

  async dispose(): Promise<void> {
    this.resume();
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** SIGQUIT: at once, all its processes with it. */
  #signal(): boolean {
    try {
      return process.kill(this.pid, "SIGQUIT");
    } catch {
      return false;
    }
  }
}
