import { describe, expect, test } from "vitest";
import { dsnHider, dsnProblem, dsnSecrets, isPostgresDsn, normalDsn, shownDsn } from "./postgres-dsn.js";

describe("addresses of PostgreSQL", () => {
  test.each([
    "postgres://u:p@h:5432/d",
    "postgresql://h/d",
    "POSTGRESQL://h/d",
    "postgresql+asyncpg://u@h/d",
    "postgres:///d?host=/run/postgresql",
  ])("%s is one", (dsn) => {
    expect(isPostgresDsn(dsn)).toBe(true);
    expect(dsnProblem(dsn)).toBeNull();
    expect(normalDsn(dsn)).toMatch(/^postgres:\/\//);
  });

  test.each([
    ["", "is empty"],
    [undefined, "is empty"],
    ["calls.db", "does not begin with postgres:// or postgresql://"],
    ["postgresql:h", "does not begin with postgres:// or postgresql://"],
    ["postgres://u:p@h:port/d", "is no address: a port is a number"],
    ["postgres://u:p@h:99999/d", "names a port above 65535"],
    ["postgresql+asyncpg://u:p@h:65536", "names a port above 65535"],
    ["postgres://u:p#w@h:99999/d", "is no address"],
    ["postgres://u:%ZZhunter2@h/d", "has a % in its password that begins no escape"],
    ["postgres://u:hunter2%E9@h/d", "has a % in its password"],
    ["postgresql+asyncpg://u%:p@h/d", "has a % in its user"],
    ["postgres://u:p@h/100%", "has a % in its database"],
  ])("%s is none", (dsn, problem) => {
    expect(dsnProblem(dsn)).toContain(problem);
    expect(dsnProblem(dsn)).not.toContain("hunter2");
  });

  test("what asyncpg says of TLS is said as pg takes it", () => {
    expect(normalDsn("postgresql+asyncpg://h/d?ssl=require")).toBe("postgres://h/d?sslmode=require");
    expect(normalDsn("postgres://h/d?a=b&ssl=verify-full")).toBe("postgres://h/d?a=b&sslmode=verify-full");
    expect(normalDsn("postgres://h/d?ssl=true")).toBe("postgres://h/d?ssl=true");
  });

  test("people see where it is, and no secret", () => {
    expect(shownDsn("postgresql+asyncpg://me:secret@h:1/d?password=other")).toBe("postgres://me@h:1/d");
    expect(shownDsn("postgres://h/d")).toBe("postgres://h/d");
    expect(shownDsn("postgres://me:se/cret@h:x/d")).toBe("postgres://…");
  });

  test("passwords are known as they stand there and as they are", () => {
    expect([...dsnSecrets("postgres://me:p%40ss@h/d?sslpassword=other")]).toEqual(["p%40ss", "p@ss", "other"]);
    expect([...dsnSecrets("postgres://me:100%@h/d")]).toEqual(["100%"]);
    expect([...dsnSecrets("postgres://me:p@h:x/d")]).toEqual([]);
  });

  test("texts of others lose them", () => {
    const dsn = "postgres://me:p%40ssword@h/d";
    expect(dsnHider(dsn)(`no ${dsn}, p@ssword or p%40ssword`)).toBe("no …, … or …");
    // Too short to be taken for one wherever it stands.
    expect(dsnHider("postgres://me:at@h/d")("look at that")).toBe("look at that");
  });
});
