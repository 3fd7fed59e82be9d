import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";

test("without the package ioredis it loads, and says what to install when it is used", async () => {
  // Outside of the repository no node_modules are found.
  const folder = mkdtempSync(join(tmpdir(), "pgw-no-ioredis-"));
  try {
    cpSync(join(import.meta.dirname, "..", "..", "dist"), folder, { recursive: true });
    const address = pathToFileURL(join(folder, "redis.js")).href;
    const { RedisCache } = (await import(
      /* @vite-ignore */ address
    )) as typeof import("../../src/backends/redis/index.js");
    expect(() => new RedisCache({ url: "redis://:hunter2-secret@127.0.0.1" })).toThrow("npm install ioredis");
    expect(() => new RedisCache({ url: "redis://:hunter2-secret@127.0.0.1" })).not.toThrow("hunter2");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
