import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { findOrInstall, type WantedBinaries } from "./binaries.js";
import { endProcess, eventually, freePorts, isRunning, signalTo, startServer } from "./processes.js";
import { sharedService } from "./run.js";

/** Private Redis servers for tests: free ports, own temp folders, nothing written to disk, ended by their pid. */
const REDIS: WantedBinaries = {
  names: ["redis-server"],
  debianPackage: "redis-server",
  folders: ["/usr/bin", "/usr/sbin"],
};

const HOST = "127.0.0.1";
const MOST_TRIES = 40;
const TRY_AGAIN_MS = 250;

/** Databases of a private server; tests that need one for themselves take a number of their own. */
export const DATABASES = 64;

export interface RedisOptions {
  /** Lines of redis.conf, as `{ maxmemory: "2mb" }`. */
  readonly config?: Readonly<Record<string, string | number>>;
  /** What `requirepass` asks of the helpers here. */
  readonly password?: string;
  /** Environment of the server, for a shim that changes its clock. */
  readonly env?: NodeJS.ProcessEnv;
  /** It ends when this process ends. Default: the one that starts it. */
  readonly owner?: number;
}

/** A server that others use too: own key prefixes or databases, nothing that touches another's keys. */
export interface SharedRedis {
  readonly host: string;
  readonly port: number;
  /** `redis://127.0.0.1:port` */
  readonly url: string;
  /** Of the process that runs now. */
  readonly pid: number;
  /** One command over a connection of its own, as `command("CONFIG", "SET", "maxmemory", "1mb")`. */
  command(name: string, ...args: (string | number)[]): Promise<unknown>;
}

/** A server of the test's own. */
export interface RedisServer extends SharedRedis {
  readonly folder: string;
  /** Empties all databases. */
  flush(): Promise<void>;
  /** SIGSTOP: connections stay, nothing is answered. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
  /** SIGKILL; resolves when the process is gone. */
  kill(): Promise<void>;
  /** Starts it on the same port, empty; only after `kill`. */
  start(): Promise<void>;
  /** `kill` and `start`. */
  restart(): Promise<void>;
  /** Ends it and removes its folder. */
  stop(): Promise<void>;
}

export interface SharedRedisCluster {
  readonly nodes: readonly SharedRedis[];
  /** For `new Cluster(seeds)`. */
  readonly seeds: { readonly host: string; readonly port: number }[];
}

export interface RedisCluster extends SharedRedisCluster {
  readonly nodes: readonly RedisServer[];
  flush(): Promise<void>;
  stop(): Promise<void>;
}

/** The run's server; null where none can be started (the reason is printed; in CI it is an error). */
export async function sharedRedis(): Promise<SharedRedis | null> {
  const started = await sharedService("redis", async (owner) => {
    const { port, pid, folder } = await startRedis({ owner });
    return { port, pids: [pid], folders: [folder] };
  });
  return started === null ? null : serverAt(started.port, started.pids[0] ?? 0);
}

/** The run's cluster of three; null as `sharedRedis`. */
export async function sharedRedisCluster(): Promise<SharedRedisCluster | null> {
  const started = await sharedService("redis-cluster", async (owner) => {
    const { nodes } = await startRedisCluster({ owner });
    const ports = nodes.map(({ port }) => port);
    return { ports, pids: nodes.map(({ pid }) => pid), folders: nodes.map(({ folder }) => folder) };
  });
  if (started === null) return null;
  const nodes = started.ports.map((port, index) => serverAt(port, started.pids[index] ?? 0));
  return { nodes, seeds: nodes.map(({ host, port }) => ({ host, port })) };
}

function serverAt(port: number, pid: number): SharedRedis {
  const command = (name: string, ...args: (string | number)[]) => ask(port, undefined, name, ...args);
  return { host: HOST, port, pid, url: `redis://${HOST}:${port}`, command };
}

/** Starts a server of the caller's own, or throws with the reason and what to do. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const found = findOrInstall(REDIS);
  if (!found.ok) throw new Error(found.reason);
  const { "redis-server": binary = "" } = found.paths;
  for (let tries = 1; ; tries += 1) {
    // The port may be taken between being found and being used.
    const [port = 0] = await freePorts(1);
    try {
      return await startOn(binary, port, options);
    } catch (error) {
      if (tries === 3) throw error;
    }
  }
}

async function startOn(binary: string, port: number, options: RedisOptions): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), "pgw-redis-"));
  const logfile = join(folder, "redis.log");
  const lines: Record<string, string | number> = {
    bind: HOST,
    port,
    dir: folder,
    logfile,
    databases: DATABASES,
    save: '""',
    appendonly: "no",
    "enable-debug-command": "yes",
    ...options.config,
  };
  const conf = join(folder, "redis.conf");
  writeFileSync(
    conf,
    Object.entries(lines)
      .map(([key, value]) => `${key} ${value}\n`)
      .join(""),
  );
  const { password } = options;

  async function launch(): Promise<number> {
    const child = startServer(binary, [conf], options.owner ?? process.pid, options.env);
    const failed = new Promise<never>((_, reject) => {
      child.once("error", reject);
      child.once("exit", (code) => reject(new Error(`redis-server ended with ${code}: ${lastLines(logfile)}`)));
    });
    await Promise.race([eventually(() => ask(port, password, "PING")), failed]);
    return child.pid ?? 0;
  }

  /** While it was away, a connection of somebody else may have been given its port; such go soon. */
  async function launchAgain(): Promise<number> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await launch();
      } catch (error) {
        if (tries === MOST_TRIES || !/already in use/.test(String(error))) throw error;
        await sleep(TRY_AGAIN_MS);
      }
    }
  }

  let pid: number;
  try {
    pid = await launch();
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
  return {
    host: HOST,
    port,
    url: `redis://${HOST}:${port}`,
    folder,
    get pid() {
      return pid;
    },
    command: (name, ...args) => ask(port, password, name, ...args),
    flush: async () => void (await ask(port, password, "FLUSHALL")),
    pause: () => signalTo(pid, "SIGSTOP"),
    resume: () => signalTo(pid, "SIGCONT"),
    kill: () => endProcess(pid),
    async start() {
      if (isRunning(pid)) throw new Error(`the server runs already (pid ${pid})`);
      pid = await launchAgain();
    },
    async restart() {
      await endProcess(pid);
      pid = await launchAgain();
    },
    async stop() {
      await endProcess(pid);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function lastLines(file: string): string {
  try {
    return readFileSync(file, "utf8").trim().split("\n").slice(-3).join(" · ");
  } catch {
    return "it wrote no log";
  }
}

async function ask(
  port: number,
  password: string | undefined,
  name: string,
  ...args: (string | number)[]
): Promise<unknown> {
  const client = new Redis({
    host: HOST,
    port,
    ...(password === undefined ? {} : { password }),
    lazyConnect: true,
    retryStrategy: null,
    enableReadyCheck: false,
    connectTimeout: 2_000,
    commandTimeout: 10_000,
  });
  client.on("error", () => {});
  try {
    await client.connect();
    return await client.call(name, ...args);
  } finally {
    const ended = client.status === "end" ? undefined : once(client, "end");
    client.disconnect();
    await ended;
  }
}

const SLOTS = 16_384;

/** Three masters without replicas, all slots shared out. */
export async function startRedisCluster(options: RedisOptions = {}): Promise<RedisCluster> {
  const nodes: RedisServer[] = [];
  try {
    for (let index = 0; index < 3; index += 1) nodes.push(await startNode(options));
    await joinNodes(nodes);
  } catch (error) {
    await Promise.all(nodes.map((node) => node.stop()));
    throw error;
  }
  return {
    nodes,
    seeds: nodes.map(({ host, port }) => ({ host, port })),
    flush: async () => void (await Promise.all(nodes.map((node) => node.flush()))),
    stop: async () => void (await Promise.all(nodes.map((node) => node.stop()))),
  };
}

async function startNode(options: RedisOptions): Promise<RedisServer> {
  const [bus = 0] = await freePorts(1);
  return startRedis({
    ...options,
    config: {
      "cluster-enabled": "yes",
      "cluster-port": bus,
      "cluster-node-timeout": 2_000,
      databases: 1,
      ...options.config,
    },
  });
}

/** Makes strangers one cluster and waits until each of them says that it is whole. */
async function joinNodes(nodes: readonly RedisServer[]): Promise<void> {
  const [first] = nodes;
  if (first === undefined) return;
  const share = Math.ceil(SLOTS / nodes.length);
  for (const [index, node] of nodes.entries()) {
    await node.command("CLUSTER", "SET-CONFIG-EPOCH", index + 1);
    await node.command("CLUSTER", "ADDSLOTSRANGE", index * share, Math.min(SLOTS, (index + 1) * share) - 1);
  }
  for (const node of nodes.slice(1)) {
    const bus = String(await node.command("CONFIG", "GET", "cluster-port")).split(",")[1];
    await first.command("CLUSTER", "MEET", node.host, node.port, Number(bus));
  }
  for (const node of nodes) {
    await eventually(async () => {
      const info = String(await node.command("CLUSTER", "INFO"));
      if (!/cluster_state:ok/.test(info) || !info.includes(`cluster_known_nodes:${nodes.length}`))
        throw new Error(info);
    });
  }
}
