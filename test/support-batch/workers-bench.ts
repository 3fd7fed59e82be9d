import { execFileSync } from "node:child_process";
import { afterAll, beforeAll, beforeEach } from "vitest";
import type { Running } from "../cli-harness.js";
import { type RedisServer, sharedRedis, startRedis } from "../services/redis.js";
import { type ProviderBench, useProviderBench } from "./provider-bench.js";

/** Batches with several workers: real processes, a simulated provider, and limits in a Redis of the test's own. */
export interface WorkersBench extends ProviderBench {
  /** `batch in.jsonl -o out.jsonl --workers 2 --json` with these further arguments. */
  startWorkers(args?: readonly string[], env?: Record<string, string>): Running;
}

/** false: no Redis can be started here; the reason is printed, and in CI it is an error. */
export const workersCanRun = async (): Promise<boolean> => (await sharedRedis()) !== null;

export function useWorkersBench(): WorkersBench {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  beforeEach(() => redis.flush());
  afterAll(() => redis?.stop());
  const bench = useProviderBench();

  return Object.assign(Object.create(bench) as ProviderBench, {
    startWorkers(args: readonly string[] = [], env: Record<string, string> = bench.env): Running {
      const shared = {
        REDIS_URL: redis.url,
        PGW_LIMITER_BACKEND: "redis",
        PGW_BREAKER_BACKEND: "redis",
        // The machine may be busy with other tests.
        PGW_REDIS_TIMEOUT_S: "2",
        // So long the permits of a killed worker are held.
        PGW_LEASE_TTL_S: "3",
      };
      const command = ["batch", "in.jsonl", "-o", "out.jsonl", "--workers", "2", "--json", ...args];
      return bench.workspace.start(command, { ...shared, ...env });
    },
  });
}

/** Worker processes of a batch, oldest first. */
export function workersOf({ child }: Running): number[] {
  try {
    const listed = execFileSync("ps", ["-o", "pid=,args=", "--ppid", String(child.pid)], { encoding: "utf8" });
    return listed
      .split("\n")
      .filter((line) => line.includes("batch-worker"))
      .map((line) => Number.parseInt(line, 10));
  } catch {
    // ps says that there is none by its exit code.
    return [];
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
