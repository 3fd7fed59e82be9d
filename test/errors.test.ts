import { readFileSync } from "node:fs";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import * as errors from "../src/errors.js";

const {
  AllSourcesExhausted,
  CircuitOpenError,
  ConfigError,
  GatewayUnavailableError,
  GovernanceBackendError,
  PolyGatewayError,
  RequestRejectedError,
  ResultInvalidError,
  SourceDeadError,
  SourceNotConfiguredError,
  TransientError,
} = errors;

const source = readFileSync(new URL("../src/errors.ts", import.meta.url), "utf8");
const docs = readFileSync(new URL("../docs/errors.md", import.meta.url), "utf8");

/** The string members of an exported union in errors.ts. */
function unionOf(name: string): string[] {
  const declaration = new RegExp(`export type ${name} =([^;]+);`).exec(source);
  if (!declaration) throw new Error(`src/errors.ts declares no union ${name}`);
  return [...declaration[1]!.matchAll(/"([a-z_]+)"/g)].map((match) => match[1]!);
}

const REASONS = unionOf("UnavailableReason");
const CODES = [...unionOf("ErrorCode"), ...REASONS];

type ErrorClass = { new (...args: never[]): Error; isInstance(value: unknown): boolean; prototype: Error };
const CLASSES = Object.entries(errors).filter(([, value]) => typeof value === "function") as [string, ErrorClass][];

function rowsOf(heading: string): string[][] {
  const section = docs.slice(docs.indexOf(`## ${heading}`));
  const lines = section.split("\n").filter((line, index, all) => line.startsWith("|") && isFirstTable(all, index));
  return lines.slice(2).map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

function isFirstTable(lines: readonly string[], index: number): boolean {
  const next = lines.findIndex((line, at) => at > 0 && line.startsWith("## "));
  return next === -1 || index < next;
}

function quoted(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1]!);
}

const TABLE = rowsOf("Table").map(([name, code, ...rest]) => ({ name: quoted(name!)[0]!, codes: quoted(code!), rest }));

/** One instance of every class, with what its constructor demands. */
const unavailable = { scope: "LLM", reason: "stalled", retryAfterMs: 1_000 } as const;
const SAMPLES: Record<string, Error> = {
  PolyGatewayError: new PolyGatewayError("m", { code: "network" }),
  TransientError: new TransientError("m"),
  SourceDeadError: new SourceDeadError("m"),
  RequestRejectedError: new RequestRejectedError("m"),
  ResultInvalidError: new ResultInvalidError("m"),
  SourceNotConfiguredError: new SourceNotConfiguredError("m"),
  ConfigError: new ConfigError([
    { key: "LLM__A__1__RPM", value: "-1", problem: "is negative", remedy: "Use 0 for off." },
  ]),
  GatewayUnavailableError: new GatewayUnavailableError("m", unavailable),
  CircuitOpenError: new CircuitOpenError("m", unavailable),
  AllSourcesExhausted: new AllSourcesExhausted("m", unavailable),
  GovernanceBackendError: new GovernanceBackendError("m", { scope: "LLM" }),
};

/** Class → its direct parent, as spec 02 §1 draws the tree. */
const PARENT: Record<string, string> = {
  PolyGatewayError: "Error",
  TransientError: "PolyGatewayError",
  SourceDeadError: "PolyGatewayError",
  RequestRejectedError: "PolyGatewayError",
  ResultInvalidError: "PolyGatewayError",
  SourceNotConfiguredError: "PolyGatewayError",
  ConfigError: "PolyGatewayError",
  GatewayUnavailableError: "PolyGatewayError",
  CircuitOpenError: "GatewayUnavailableError",
  AllSourcesExhausted: "GatewayUnavailableError",
  GovernanceBackendError: "GatewayUnavailableError",
};

function ancestorsOf(name: string): string[] {
  return name === "Error" ? [] : [name, ...ancestorsOf(PARENT[name]!)];
}

describe("docs/errors.md and the code say the same", () => {
  test("every exported class stands in the table, and no other", () => {
    expect([...new Set(TABLE.map((row) => row.name))].sort()).toEqual(CLASSES.map(([name]) => name).sort());
  });

  test("every code stands in the table, and no other", () => {
    const documented = new Set(TABLE.flatMap((row) => row.codes));
    expect([...documented].sort()).toEqual([...CODES].sort());
  });

  test("every row says whether it reaches the caller, what to do and where the reason stands", () => {
    for (const row of TABLE) {
      expect(row.rest).toHaveLength(3);
      for (const cell of row.rest) expect(cell, `row ${row.name} ${row.codes}`).not.toBe("");
    }
  });

  test("no class and code is listed twice", () => {
    const keys = TABLE.map((row) => `${row.name} ${row.codes}`);
    expect(new Set(keys).size).toBe(keys.length);
  });

  test("the scope-level reasons stand beside the scope-level classes, and only there", () => {
    for (const row of TABLE) {
      const scopeLevel = ancestorsOf(row.name).includes("GatewayUnavailableError");
      for (const code of row.codes) expect(REASONS.includes(code), `${row.name} ${code}`).toBe(scopeLevel);
    }
  });

  test("every reason of a passed-over source is explained", () => {
    const explained = rowsOf("Words in").flatMap((row) => quoted(row[0]!));
    expect(explained.sort()).toEqual(unionOf("SourceReason").sort());
  });
});

describe("the tree of classes", () => {
  test("each class has the place that spec 02 §1 gives it", () => {
    expect(Object.keys(SAMPLES).sort()).toEqual(CLASSES.map(([name]) => name).sort());
    for (const [name, sample] of Object.entries(SAMPLES)) {
      for (const [other, errorClass] of CLASSES) {
        const expected = ancestorsOf(name).includes(other);
        expect(sample instanceof errorClass, `${name} instanceof ${other}`).toBe(expected);
        expect(errorClass.isInstance(sample), `${other}.isInstance(${name})`).toBe(expected);
      }
      expect(sample).toBeInstanceOf(Error);
      expect(sample.name).toBe(name);
      expect(String(sample)).toBe(`${name}: ${sample.message}`);
      expect(sample.stack).toContain("errors.test");
    }
  });

  test("foreign values are instances of nothing", () => {
    const foreign = [null, undefined, "x", 7, {}, new Error("x"), { name: "TransientError", code: "network" }];
    for (const [, errorClass] of CLASSES) {
      for (const value of foreign) {
        expect(errorClass.isInstance(value)).toBe(false);
        expect(value instanceof errorClass).toBe(false);
      }
    }
  });

  test("an outage and an exhausted scope are caught by one clause; a wrong configuration is not", () => {
    for (const name of ["CircuitOpenError", "AllSourcesExhausted", "GovernanceBackendError"]) {
      expect(SAMPLES[name]).toBeInstanceOf(GatewayUnavailableError);
    }
    for (const name of ["SourceNotConfiguredError", "ConfigError", "TransientError", "SourceDeadError"]) {
      expect(SAMPLES[name]).not.toBeInstanceOf(GatewayUnavailableError);
    }
  });

  test("a user's subclass keeps the normal rule and stays an instance of its parents", () => {
    class OwnError extends TransientError {}
    expect(new OwnError("m")).toBeInstanceOf(OwnError);
    expect(new OwnError("m")).toBeInstanceOf(TransientError);
    expect(new OwnError("m")).toBeInstanceOf(PolyGatewayError);
    expect(new TransientError("m")).not.toBeInstanceOf(OwnError);
  });
});

describe("two copies of the package in one process", () => {
  test("instanceof and isInstance hold across the copies, both ways", async () => {
    const copyPath = "../src/errors.js?copy=2";
    const copy = (await import(copyPath)) as typeof errors;
    expect(copy.TransientError).not.toBe(TransientError);
    const theirs = new copy.AllSourcesExhausted("m", unavailable);
    expect(theirs).toBeInstanceOf(AllSourcesExhausted);
    expect(theirs).toBeInstanceOf(GatewayUnavailableError);
    expect(theirs).toBeInstanceOf(PolyGatewayError);
    expect(theirs).not.toBeInstanceOf(CircuitOpenError);
    expect(AllSourcesExhausted.isInstance(theirs)).toBe(true);
    expect(new TransientError("m")).toBeInstanceOf(copy.TransientError);
    expect(copy.SourceDeadError.isInstance(new TransientError("m"))).toBe(false);
  });
});

describe("what an error carries", () => {
  test("message and bodyText are stored as given; bodyText is empty without a body", () => {
    const bodyText = `  ${"x".repeat(5_000)} \n`;
    const error = new RequestRejectedError("  spaced  message ", { bodyText });
    expect(error.message).toBe("  spaced  message ");
    expect(error.bodyText).toBe(bodyText);
    for (const [name, sample] of Object.entries(SAMPLES))
      expect((sample as { bodyText?: string }).bodyText, name).toBe("");
  });

  test("scope-level errors never carry a body, whatever they are given", () => {
    const refused = { ...unavailable, bodyText: "the other side's words" };
    expect(new GatewayUnavailableError("m", refused).bodyText).toBe("");
    expect(new AllSourcesExhausted("m", refused).bodyText).toBe("");
    expect(new CircuitOpenError("m", refused).bodyText).toBe("");
  });

  test("rawText is the model's output of a 2xx and is never mixed with bodyText", () => {
    const invalid = new ResultInvalidError("m", { rawText: "{broken", issues: [{ path: "a" }] });
    expect(invalid.rawText).toBe("{broken");
    expect(invalid.bodyText).toBe("");
    expect(invalid.issues).toEqual([{ path: "a" }]);
    expect(new RequestRejectedError("m", { bodyText: "refused" })).not.toHaveProperty("rawText");
  });

  test("optional facts are absent when not given", () => {
    const error = new TransientError("m");
    const json = JSON.parse(JSON.stringify(error));
    for (const key of [
      "retryAfterMs",
      "rateLimited",
      "statusCode",
      "sourceName",
      "partial",
      "details",
      "cause",
    ] as const) {
      expect(error[key], key).toBeUndefined();
      expect(json, key).not.toHaveProperty(key);
    }
    expect(new TransientError("m", { retryAfterMs: 0 }).retryAfterMs).toBe(0);
  });

  test("Retry-After is carried uncapped", () => {
    expect(new TransientError("m", { retryAfterMs: 86_400_000 }).retryAfterMs).toBe(86_400_000);
    expect(new SourceDeadError("m", { code: "quota", retryAfterMs: 1e9 }).retryAfterMs).toBe(1e9);
  });

  test("every class has a code of the list without being given one", () => {
    for (const [name, sample] of Object.entries(SAMPLES)) {
      expect(CODES, name).toContain((sample as { code?: string }).code);
    }
  });

  test("the code of a scope-level error is its reason", () => {
    for (const reason of REASONS) {
      const error = new AllSourcesExhausted("m", { ...unavailable, reason: reason as typeof unavailable.reason });
      expect(error.code).toBe(reason);
      expect(error.reason).toBe(reason);
    }
    expect(new CircuitOpenError("m", { scope: "LLM", retryAfterMs: 3 }).reason).toBe("circuit_open");
  });

  test("a backend outage: 5 s, no reasons by source, the diagnosis stays the message", () => {
    const cause = new Error("connect ECONNREFUSED");
    const error = new GovernanceBackendError("governor tick failed: connect ECONNREFUSED", { scope: "LLM", cause });
    expect(error.message).toBe("governor tick failed: connect ECONNREFUSED");
    expect(error.scope).toBe("LLM");
    expect(error.retryAfterMs).toBe(5_000);
    expect(error.reason).toBe("governance_backend_down");
    expect(error.perSourceReasons).toEqual({});
    expect(error.cause).toBe(cause);
  });

  test("a ConfigError lists every problem with key, value and remedy", () => {
    const { message, problems } = SAMPLES.ConfigError as InstanceType<typeof ConfigError>;
    expect(problems).toHaveLength(1);
    expect(message).toContain("LLM__A__1__RPM = -1");
    expect(message).toContain("is negative");
    expect(message).toContain("Use 0 for off.");
    const missing = new ConfigError([{ key: "A", problem: "is missing", remedy: "Set it." }, ...problems]);
    expect(missing.message).toContain("2 problems");
    expect(missing.message).not.toContain("undefined");
  });
});

describe("toJSON", () => {
  const cause = new TransientError("a rate limited: 429", {
    code: "rate_limit",
    bodyText: "slow down",
    statusCode: 429,
  });
  const error = new AllSourcesExhausted("no source could answer", {
    ...unavailable,
    operation: "chat",
    perSourceReasons: {
      a: { reason: "cooling", waitMs: 5_000, lastError: { code: "rate_limit", message: "slow down" } },
    },
    cause,
  });

  test("gives every fact as plain data, the causes included", () => {
    const json = JSON.parse(JSON.stringify(error));
    expect(json).toMatchObject({
      name: "AllSourcesExhausted",
      message: "no source could answer",
      code: "stalled",
      reason: "stalled",
      scope: "LLM",
      operation: "chat",
      retryAfterMs: 1_000,
      bodyText: "",
      perSourceReasons: { a: { reason: "cooling", waitMs: 5_000 } },
      cause: { name: "TransientError", code: "rate_limit", bodyText: "slow down", statusCode: 429 },
    });
  });

  test("has no stack, of the error or of any cause", () => {
    const deep = new GovernanceBackendError("m", {
      scope: "LLM",
      cause: new TransientError("m", { cause: new Error("x") }),
    });
    expect(JSON.stringify(deep)).not.toMatch(/stack|errors\.test/);
    expect(deep.toJSON().cause).toMatchObject({ cause: { name: "Error", message: "x" } });
  });

  test("survives causes that are no errors, also with properties that don't serialise", () => {
    const foreign = Object.assign(new Error("reset"), { socket: { self: null as unknown } });
    foreign.socket.self = foreign.socket;
    for (const odd of [foreign, "text", 7n, null, { big: 1n }]) {
      expect(() => JSON.stringify(new TransientError("m", { cause: odd }))).not.toThrow();
    }
  });

  test("operation and partial may be set later and then show", () => {
    const late = new TransientError("m", { code: "truncated" });
    late.operation = "chat_stream";
    late.partial = { content: "half an ans", thinking: "", toolCalls: [], usage: null };
    expect(late.toJSON()).toMatchObject({ operation: "chat_stream", partial: { content: "half an ans" } });
  });

  test("util.inspect shows name, message and code", () => {
    const shown = inspect(cause);
    expect(shown).toContain("TransientError");
    expect(shown).toContain("rate_limit");
  });
});
