import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { RedisCache } from "../../src/backends/redis/cache.js";
import { sampleAnswer } from "../../src/testing/contracts/cache.js";
import { findOrInstall } from "../services/binaries.js";
import { endProcess, eventually, freePorts, startServer } from "../services/processes.js";
import { sharedRedis, startRedis } from "../services/redis.js";

const shared = await sharedRedis();

test.skipIf(shared === null)("Sentinel is asked where Redis is: options are passed through", async () => {
  const found = findOrInstall({ names: ["redis-server"], debianPackage: "redis-server" });
  if (!found.ok) throw new Error(found.reason);
  const primary = await startRedis();
  const folder = mkdtempSync(join(tmpdir(), "pgw-sentinel-"));
  const [port = 0] = await freePorts(1);
  const file = join(folder, "sentinel.conf");
  const lines = [`port ${port}`, "bind 127.0.0.1", `dir ${folder}`, `sentinel monitor pgw 127.0.0.1 ${primary.port} 1`];
  writeFileSync(file, `${lines.join("\n")}\n`);
  const sentinel = startServer(found.paths["redis-server"] ?? "", [file, "--sentinel"], process.pid);
  const cache = new RedisCache({ options: { sentinels: [{ host: "127.0.0.1", port }], name: "pgw" } });
  try {
    await eventually(() => cache.set("k", sampleAnswer()));
    expect(await cache.get("k")).toEqual(sampleAnswer());
    expect(await primary.command("DBSIZE")).toBe(1);
  } finally {
    await cache.close();
    await endProcess(sentinel.pid ?? 0);
    await primary.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
