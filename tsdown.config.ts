import { defineConfig } from "tsdown";

const common = {
  format: "esm",
  platform: "node",
  target: "node20",
  fixedExtension: false,
  sourcemap: false,
} as const;

export default defineConfig([
  {
    ...common,
    entry: {
      index: "src/index.ts",
      redis: "src/backends/redis/index.ts",
      sqlite: "src/telemetry/sqlite.ts",
      postgres: "src/telemetry/postgres.ts",
      testing: "src/testing/index.ts",
    },
    dts: true,
    clean: true,
  },
  {
    ...common,
    // Workers are files of their own: threads and processes load them by path.
    entry: {
      cli: "src/cli/main.ts",
      "batch-worker": "src/cli/batch-worker.ts",
      "pdf-worker": "src/documents/pdf-worker.js",
      "sqlite-worker": "src/telemetry/sqlite-worker.js",
    },
    dts: false,
    clean: false,
  },
  {
    ...common,
    // Apart from the others, so that nothing published shares a file with it.
    entry: { sim: "src/testing/simulation/main.ts" },
    dts: false,
    clean: false,
  },
  {
    ...common,
    entry: {
      fleet: "test/fleet/main.ts",
      "fleet-worker": "test/fleet/worker.ts",
      "fleet-caller": "test/fleet/scenario/caller.ts",
      "fleet-provider": "test/fleet/scenario/provider.ts",
    },
    // Its workers run what users have: the built package, by its name.
    external: [/^polygateway/],
    dts: false,
    clean: false,
  },
]);
