import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { ConfigError } from "../errors.js";
import { parseDotEnv, readDotEnv } from "./dotenv.js";

const folder = mkdtempSync(join(tmpdir(), "pgw-dotenv-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("a BOM and CRLF line ends don't become part of names and values", () => {
  const path = join(folder, "windows.env");
  writeFileSync(path, '\uFEFFLLM__A__1__MODEL=m\r\n# note\r\nLLM__A__1__API_KEY="sk-1 2"\r\n\r\nexport X=1 # why\r\n');
  expect(readDotEnv(path)).toEqual({ LLM__A__1__MODEL: "m", LLM__A__1__API_KEY: "sk-1 2", X: "1" });
});

test("names given twice and lines without = are found with their line numbers", () => {
  const { suspicious } = parseDotEnv("A=1\nB 2\n# A=3\nA=4\n");
  expect(suspicious).toEqual([
    { name: "B", line: 2 },
    { name: "A", line: 4, earlier: 1 },
  ]);
});

test("a value over several lines is not taken for lines of its own", () => {
  const { values, suspicious } = parseDotEnv('KEY="first\nsecond line"\nB=1\n');
  expect(values).toEqual({ KEY: "first\nsecond line", B: "1" });
  expect(suspicious.filter(({ name }) => name === "KEY" || name === "B")).toEqual([]);
});

test("a missing file and a folder are told by their path", () => {
  for (const path of [join(folder, "none.env"), folder]) {
    expect(() => readDotEnv(path)).toThrow(ConfigError);
    expect(() => readDotEnv(path)).toThrow(path);
  }
});
