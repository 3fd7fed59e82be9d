import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "tsdown";
import { afterAll, beforeAll } from "vitest";
import type { Running } from "../cli-harness.js";
import { type ProviderBench, useProviderBench } from "./provider-bench.js";

/**
 * Batches with several workers, as real processes against a simulated provider.
 *
 * Their limits are not shared: the command is built once more with a rule that allows it, which no user has. With limits
 * in Redis, `program` is the built command itself and `env` names the server; nothing else changes.
 */
export interface WorkersBench extends ProviderBench {
  startWorkers(args?: readonly string[], env?: Record<string, string>): Running;
}

/** Where limits are shared, the permits of a killed worker come back after this. */
const LEASES = { PGW_LEASE_TTL_S: "3" };
const ROOT = fileURLToPath(new URL("../..", import.meta.url));

export function useWorkersBench(): WorkersBench {
  let folder = "";
  const program = useProgram();
  const bench = useProviderBench();

  function useProgram(): () => string {
    beforeAll(async () => {
      const cache = join(ROOT, "node_modules", ".cache");
      mkdirSync(cache, { recursive: true });
      folder = mkdtempSync(join(cache, "pgw-workers-"));
      await build({
        config: false,
        cwd: ROOT,
        outDir: folder,
        entry: {
          cli: "test/support-batch/workers-cli.ts",
          "batch-worker": "src/cli/batch-worker.ts",
          "sqlite-worker": "src/telemetry/sqlite-worker.js",
        },
        format: "esm",
        platform: "node",
        target: "node20",
        dts: false,
        fixedExtension: false,
        logLevel: "silent",
      });
    });
    afterAll(() => rmSync(folder, { recursive: true, force: true }));
    return () => join(folder, "cli.js");
  }

  return Object.assign(Object.create(bench) as ProviderBench, {
    startWorkers(args: readonly string[] = [], env: Record<string, string> = bench.env): Running {
      const command = ["batch", "in.jsonl", "-o", "out.jsonl", "--workers", "2", "--json", ...args];
      return bench.workspace.start(command, { ...env, ...LEASES }, undefined, program());
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
