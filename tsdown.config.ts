import { defineConfig } from "tsdown";

export default defineConfig({
  entry: {
    index: "src/index.ts",
    sqlite: "src/telemetry/sqlite.ts",
    testing: "src/testing/index.ts",
    cli: "src/cli/main.ts",
    // A plain file of its own: a worker thread loads it by path.
    "sqlite-worker": "src/telemetry/sqlite-worker.js",
  },
  format: "esm",
  platform: "node",
  target: "node20",
  dts: true,
  fixedExtension: false,
  sourcemap: false,
  clean: true,
});
