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
