import { existsSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { runCli } from "../src/cli/program.js";
import { inspectEnv, loadProcessSettings } from "../src/config/env.js";
import { fakeTerminal, makeFolder } from "./cli-harness.js";

/** An address that is none of ours may hold a password: it is refused, and never quoted. */
const PASSWORD = "WrongPgPw9";
const folder = makeFolder();
const home = process.cwd();
process.chdir(folder.path);
afterAll(() => {
  process.chdir(home);
  folder.remove();
});

test.each([
  `mysql://root:${PASSWORD}@db/x`,
  `postgress://root:${PASSWORD}@db/x`,
  `host=db user=root password=${PASSWORD}`,
])("report --db %# names neither the address nor its password", async (address) => {
  const terminal = fakeTerminal({ env: {} });
  const code = await runCli(["report", "--db", address], terminal);
  expect(code).not.toBe(0);
  const all = terminal.out() + terminal.err();
  expect(all).toContain("no address of PostgreSQL");
  expect(all).not.toContain("PgPw9");
  expect(existsSync(address)).toBe(false);
});

test("an address of PostgreSQL in another form is not shown by its end", () => {
  const env = { PGW_TELEMETRY_BACKEND: "postgres", PGW_TELEMETRY_PG_DSN: `host=db password=${PASSWORD}` };
  const { problems } = inspectEnv("LLM", env);
  expect(JSON.stringify(problems)).toContain("PGW_TELEMETRY_PG_DSN");
  expect(JSON.stringify(problems)).not.toContain("gPw9");
  expect(() => loadProcessSettings(env)).toThrow(/PGW_TELEMETRY_PG_DSN/);
});

test.each(["%ZZ", "%", "%E9"])(
  "a password with the broken escape %s is told by its variable, and not shown",
  async (broken) => {
    const dsn = `postgres://me:${PASSWORD}${broken}@127.0.0.1:1/calls`;
    const env = { PGW_TELEMETRY_BACKEND: "postgres", PGW_TELEMETRY_PG_DSN: dsn };
    expect(() => loadProcessSettings(env)).toThrow(
      /PGW_TELEMETRY_PG_DSN = postgres:\/\/me@127.*has a % in its password/,
    );
    const redis = { PGW_LIMITER_BACKEND: "redis", PGW_BREAKER_BACKEND: "redis" };
    const url = `redis://:${PASSWORD}${broken}@127.0.0.1:1`;
    const source = { LLM__A__1__BASE_URL: "http://127.0.0.1:1", LLM__A__1__API_KEY: "none", LLM__A__1__MODEL: "m" };
    const { problems } = inspectEnv("LLM", { ...source, ...redis, REDIS_URL: url });
    expect(problems).toMatchObject([
      { key: "REDIS_URL", problem: expect.stringContaining("has a % in user or password") },
    ]);
    for (const args of [["check"], ["report"], ["report", "--db", dsn], ["chat", "hi"]]) {
      const terminal = fakeTerminal({ env: { ...source, ...env, ...redis, REDIS_URL: url } });
      expect(await runCli(args, terminal)).toBe(1);
      const all = terminal.out() + terminal.err();
      expect(all).toMatch(args.includes("--db") ? /The address has a % in its password/ : /PGW_TELEMETRY_PG_DSN/);
      expect(all).not.toMatch(/URI malformed|Unexpected|WrongPgPw9/);
    }
  },
);
