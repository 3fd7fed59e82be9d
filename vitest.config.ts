import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    // Servers of the tests: started by the first test that asks, ended with the run.
    globalSetup: ["test/services/run.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: "forks",
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts"],
      exclude: ["src/**/*.test.ts", "src/testing/contracts/**"],
      reporter: ["text-summary", "json-summary"],
    },
  },
});
