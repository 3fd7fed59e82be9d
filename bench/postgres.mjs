// The tests' own PostgreSQL for a benchmark: the helper is TypeScript, so it is compiled into the cache first.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "tsdown";

/** Answers `{ ok: true, server }` or `{ ok: false, reason }`. */
export async function startPostgres(root) {
  const cache = join(root, "node_modules", ".cache");
  mkdirSync(cache, { recursive: true });
  const outDir = mkdtempSync(join(cache, "pgw-bench-"));
  try {
    await build({
      config: false,
      cwd: root,
      outDir,
      entry: { postgres: "test/services/postgres.ts" },
      format: "esm",
      platform: "node",
      target: "node20",
      dts: false,
      fixedExtension: false,
      logLevel: "silent",
    });
    return await (await import(pathToFileURL(join(outDir, "postgres.js")).href)).startPostgres();
  } finally {
    rmSync(outDir, { recursive: true, force: true });
  }
}
