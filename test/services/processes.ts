import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** Ports that were free a moment ago, each another one. Who uses them must be ready to lose the race. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/** Ends `pid` when `owner` is gone, so that no server outlives a run that was killed itself. */
const WATCH = 'while kill -0 "$1" 2>/dev/null && kill -0 "$2" 2>/dev/null; do sleep 1; done; kill -9 "$2" 2>/dev/null';

/** Starts a server that outlives the test file which starts it, but not the process `owner`. */
export function startServer(program: string, args: readonly string[], owner: number, env = process.env): ChildProcess {
  const child = spawn(program, args, { detached: true, stdio: "ignore", env });
  child.unref();
  if (child.pid !== undefined) {
    const watch = spawn("sh", ["-c", WATCH, "sh", String(owner), String(child.pid)], {
      detached: true,
      stdio: "ignore",
    });
    watch.unref();
  }
  return child;
}

/** A process that has ended but whose end nobody has asked for (a container without an init) is not running. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    // Not on Linux, or gone in between: the signal decides.
    return existsSync("/proc/self") ? existsSync(`/proc/${pid}`) : true;
  }
}

/** Sends the signal and waits until the process is gone; one that is gone already is fine. */
export async function endProcess(pid: number, signal: "SIGTERM" | "SIGKILL" = "SIGKILL"): Promise<void> {
  for (let tries = 0; isRunning(pid); tries += 1) {
    // A server that doesn't end by itself within five seconds is ended.
    if (tries === 0 || tries === 500) signalTo(pid, tries === 0 ? signal : "SIGKILL");
    if (tries > 1_000) throw new Error(`process ${pid} does not end`);
    await sleep(10);
  }
}

/** Every process whose parent that one is; only where /proc tells. */
export function childrenOf(pid: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return readFileSync(`/proc/${name}/stat`, "latin1").split(") ").at(-1)?.split(" ")[1] === String(pid);
      } catch {
        return false;
      }
    })
    .map(Number);
}

export function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It is gone.
  }
}

/** Asks again and again until the answer is no error; the last error is told. */
export async function eventually<T>(ask: () => Promise<T>, mostMs = 10_000): Promise<T> {
  for (let waitedMs = 0; ; waitedMs += 20) {
    try {
      return await ask();
    } catch (error) {
      if (waitedMs >= mostMs) throw error;
      await sleep(20);
    }
  }
}
