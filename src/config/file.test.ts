import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { inspect } from "node:util";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { ConfigError, type ConfigProblem } from "../errors.js";
import type { EnvSettings } from "./env.js";
import { inspectFile, loadFile, openConfigFile } from "./file.js";
import type { GatewayOptions } from "./options.js";
import { inspectScope, resolveScope } from "./resolve.js";

const folder = mkdtempSync(join(tmpdir(), "pgw-file-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let written = 0;
function file(content: string | Uint8Array, ending = "yaml"): string {
  written += 1;
  const path = join(folder, `c${written}.${ending}`);
  writeFileSync(path, content);
  return path;
}

const KEY = "sk-canary-5f1e0c9a77d3";

/** A scope LLM with one source; `more` = further lines of the source, `after` = of the scope, `top` = of the file. */
function yaml({ more = "", after = "", top = "", key = KEY } = {}): string {
  const indent = (text: string, by: number): string => text && `\n${text.replace(/^/gm, " ".repeat(by))}`;
  return `scopes:
  LLM:
    sources:
      - name: qwen_1
        baseUrl: http://127.0.0.1:8080/v1
        apiKey: ${key}
        model: m${indent(more, 8)}${indent(after, 4)}
${top}`;
}

type Env = Record<string, string>;

function inspected(text: string, env: Env = {}, settings: EnvSettings = {}) {
  return inspectFile(openConfigFile(file(text)), "LLM", env, settings);
}

function problemsOf(text: string, env: Env = {}): readonly ConfigProblem[] {
  return inspected(text, env).problems;
}

/** The one problem, its key without folder and file name. */
function problemOf(text: string, env: Env = {}): ConfigProblem {
  const problems = problemsOf(text, env);
  expect(problems).toHaveLength(1);
  const [problem] = problems as [ConfigProblem];
  return { ...problem, key: problem.key.replace(/^.*\.(yaml|json)/, "") };
}

function sourceOf(text: string, env: Env = {}): Record<string, unknown> {
  const { problems, options } = inspected(text, env);
  expect(problems).toEqual([]);
  return options.sources[0] as unknown as Record<string, unknown>;
}

describe("a file", () => {
  test("gives the options of one of its scopes and the settings of the process", () => {
    const path = file(`
scopes:
  LLM:
    sources:
      - name: qwen_1
        baseUrl: http://h/v1
        apiKey: none
        model: m
        timeoutMs: 10000
        strict: off
        transient400: /busy.*later$/i
        extraBody: { top_k: 20, nested: { list: [1, null, "x"] } }
        headers: { x-team: search }
    retry: { maxAttempts: 2 }
    failover: off
  VLM:
    sources: [{ name: v, baseUrl: http://v/v1, apiKey: none, model: v }]
process:
  telemetryBackends: [sqlite, jsonl]
  sqlitePath: data/calls.db
  capture: digest
  leaseTtlMs: 5000
  logLevel: error
`);
    const { options, process } = loadFile(path, "LLM", {});
    expect(options).toEqual({
      scope: "LLM",
      proxyEnv: {},
      sources: [
        {
          name: "qwen_1",
          baseUrl: "http://h/v1",
          apiKey: "none",
          model: "m",
          timeoutMs: 10_000,
          strict: false,
          transient400: /busy.*later$/i,
          extraBody: { top_k: 20, nested: { list: [1, null, "x"] } },
          headers: { "x-team": "search" },
        },
      ],
      retry: { maxAttempts: 2 },
      failover: "off",
      leaseTtlMs: 5_000,
      telemetryOptions: { capture: "digest" },
    });
    expect(process).toMatchObject({ telemetryBackends: ["sqlite", "jsonl"], logLevel: "error", capture: "digest" });
    expect(process.sqlitePath).toBe(join(folder, "data/calls.db"));
    expect(process.jsonlPath).toBe("./polygateway.jsonl");
    expect(loadFile(path, "VLM", {}).options.sources).toHaveLength(1);
    expect(openConfigFile(path).scopes).toEqual(["LLM", "VLM"]);
  });

  test("of one scope may hold the options of the constructor at the top", () => {
    const options = { scope: "LLM", sources: [{ name: "a", baseUrl: "http://h/v1", apiKey: "none", model: "m" }] };
    const path = file(JSON.stringify({ ...options, process: { logLevel: "info" } }), "json");
    expect(loadFile(path, "LLM", {})).toMatchObject({ options, process: { logLevel: "info" } });
    expect(() => loadFile(path, "OTHER", {})).toThrow(/has no scope OTHER.*It has LLM/);
    expect(loadFile(file(JSON.stringify({ sources: options.sources }), "json"), "LLM", {}).options.scope).toBe("LLM");
  });

  test.each([
    ["off", "off"],
    ['"off"', "off"],
    ["on", "on"],
  ])("has words, not YAML 1.1 booleans: failover %s", (text, value) => {
    expect(inspected(yaml({ after: `failover: ${text}` })).options.failover).toBe(value);
  });

  test.each([
    ["on", true],
    ["off", false],
    ["true", true],
    ["no", false],
  ])("takes a flag as %s", (text, value) => {
    expect(sourceOf(yaml({ more: `requireDone: ${text}` })).requireDone).toBe(value);
  });

  test("takes lists of places in every spelling", () => {
    for (const [text, value] of [
      ["[sqlite]", ["sqlite"]],
      ["sqlite, jsonl", ["sqlite", "jsonl"]],
      ["none", []],
      ["[]", []],
    ] as const) {
      expect(
        inspected(yaml({ top: `process: { telemetryBackends: "${text}" }`.replace(/"(\[.*\])"/, "$1") })).process,
      ).toMatchObject({ telemetryBackends: value });
    }
  });

  test("may repeat itself by anchors and merge keys; what is said wins over what is merged", () => {
    const path = file(`
scopes:
  LLM:
    sources:
      - &first { name: a, baseUrl: http://h/v1, apiKey: none, model: m, rpm: 5, headers: &h { x-a: b } }
      - { <<: *first, name: b, rpm: 6 }
      - { <<: [{ rpm: 7 }, *first], name: c, headers: *h }
`);
    const { sources } = resolveScope(loadFile(path, "LLM", {}).options).config;
    expect(sources.map(({ name, rpm, model }) => [name, rpm, model])).toEqual([
      ["a", 5, "m"],
      ["b", 6, "m"],
      ["c", 7, "m"],
    ]);
    expect(sources[2]?.headers).toEqual({ "x-a": "b" });
  });

  test("with a BOM and CRLF line ends is fine", () => {
    expect(problemsOf(`\uFEFF${yaml().replaceAll("\n", "\r\n")}`)).toEqual([]);
  });

  test("JSON may be indented with tabs", () => {
    const tree = { scopes: { LLM: { sources: [{ name: "a", baseUrl: "http://h/v1", apiKey: "none", model: "m" }] } } };
    expect(openConfigFile(file(JSON.stringify(tree, null, "\t"), "json")).scopes).toEqual(["LLM"]);
  });

  test("flags of a profile are words too, and what is wrong in it has its own line", () => {
    const profile = [
      "profile:",
      "  extends: openai",
      "  streamOptions: off",
      "  doneIsProof: ${DONE}",
      "  embeddingBase64: yes",
      "  reasoningFields: [off]",
      "  thinking:",
      "    - on: { field: off }",
      "      budget: { min: 1, belowMaxTokens: no, fields: { a: on } }",
    ].join("\n");
    const { problems, options } = inspected(yaml({ more: profile }), { DONE: "off" });
    expect(problems).toEqual([]);
    expect(options.sources[0]?.profile).toEqual({
      extends: "openai",
      streamOptions: false,
      doneIsProof: false,
      embeddingBase64: true,
      reasoningFields: ["off"],
      thinking: [{ on: { field: "off" }, budget: { min: 1, belowMaxTokens: false, fields: { a: "on" } } }],
    });
    const bad = ["profile:", "  extends: opnai", "  streamOptions: maybe", "  usage:", "    resoning: inside"].join(
      "\n",
    );
    const keys = problemsOf(yaml({ more: bad })).map(({ key, value }) => [key.replace(/^.*\.yaml/, ""), value]);
    expect(keys).toEqual([
      [":10 scopes.LLM.sources[0].profile.streamOptions", undefined],
      [":12 scopes.LLM.sources[0].profile.usage.resoning", undefined],
      [":9 scopes.LLM.sources[0].profile.extends", undefined],
    ]);
  });

  test("hands objects of a source through as they are", () => {
    const profile = "profile:\n  extends: openai\n  name: mine\n  deep:\n    - a: ${A}";
    const { options } = inspected(yaml({ more: profile }), { A: "7" });
    expect(options.sources[0]?.profile).toEqual({ extends: "openai", name: "mine", deep: [{ a: 7 }] });
  });

  test("gives way to overrides, group by group", () => {
    const path = file(yaml({ after: "retry: { maxAttempts: 9, backoffMaxMs: 30000 }\ndeadlineMs: -1" }));
    const overrides = { retry: { maxAttempts: 2 }, deadlineMs: 500 };
    const { options } = loadFile(path, "LLM", {}, { overrides });
    expect(options).toMatchObject({ retry: { maxAttempts: 2, backoffMaxMs: 30_000 }, deadlineMs: 500 });
    const broken = inspected(yaml(), {}, { overrides: { retry: { maxAttempts: 0 } } }).problems;
    expect(broken.map(({ key }) => key)).toEqual(["retry.maxAttempts"]);
  });

  test("judges an override even where the file is broken below it", () => {
    const overrides = { deadlineMs: -5 };
    const { problems } = inspected(yaml({ after: "deadlineMs: ${NOPE}" }), {}, { overrides });
    expect(problems.map(({ key }) => key.replace(/^.* /, ""))).toEqual(["scopes.LLM.deadlineMs", "deadlineMs"]);
  });

  test("has settings of the process as the floor below those of a scope", () => {
    const process = "process: { capture: none, journal: off, leaseTtlMs: 4000 }";
    const { options } = inspected(
      yaml({ after: "telemetryOptions: { capture: digest }\nleaseTtlMs: 5000", top: process }),
    );
    expect(options).toMatchObject({ telemetryOptions: { capture: "digest", journal: "off" }, leaseTtlMs: 5_000 });
    const text = yaml({ more: "timeoutMs: 90000", top: "process: { leaseTtlMs: 4000, leaseRenewal: off }" });
    const { problem } = problemOf(text);
    expect(problem).toMatch(/is above .*:9 process\.leaseTtlMs = 4000$/);
  });

  test("is the whole configuration: what stands in the environment beside it is said, not read", () => {
    const env = { LLM__QWEN__1__RPM: "5", PGW_LOG_LEVEL: "debug", PGW_TELEMETRY_CAPTURE: "none", OTHER: "x" };
    const text = yaml({ top: "process: { capture: '${PGW_TELEMETRY_CAPTURE}' }" });
    const { notes, options, process } = inspected(text, env);
    expect(options.sources[0]).not.toHaveProperty("rpm");
    expect(process).toMatchObject({ logLevel: "warn", capture: "none" });
    expect(notes).toHaveLength(1);
    expect(notes[0]).toMatchObject({ key: "LLM__QWEN__1__RPM, PGW_LOG_LEVEL", level: "warning" });
    expect(inspected(yaml(), { VLM__A__1__RPM: "5" }).notes).toEqual([]);
  });
});

describe("interpolation", () => {
  test("fills texts, numbers, flags and lists by the kind of the option", () => {
    const source = sourceOf(
      yaml({
        key: "${QWEN_KEY}",
        more: 'rpm: ${RPM}\ntimeoutMs: "${TIMEOUT:-20000}"\nstrict: ${STRICT}\nburstS: 2\nextraBody: ${BODY}\nheaders: { x-n: ${N:-5} }'.replace(
          "${N:-5}",
          '"${N:-5}"',
        ),
      }),
      { QWEN_KEY: KEY, RPM: "60", TIMEOUT: "", STRICT: "off", BODY: '{"a":[1]}' },
    );
    expect(source).toMatchObject({
      apiKey: KEY,
      rpm: 60,
      timeoutMs: 20_000,
      strict: false,
      extraBody: { a: [1] },
      headers: { "x-n": "5" },
    });
  });

  test("in free content an unquoted value alone is read as if it stood there, anything else is text", () => {
    const more = 'extraBody:\n  a: ${N}\n  b: "${N}"\n  c: n${N}\n  d: ${YES}\n  e: $$${N}\n  f: pa$s';
    expect(sourceOf(yaml({ more }), { N: "7", YES: "true" }).extraBody).toEqual({
      a: 7,
      b: "7",
      c: "n7",
      d: true,
      e: "$7",
      f: "pa$s",
    });
  });

  test("joins parts, escapes with $$, and never reads a value as YAML or as another variable", () => {
    const env = { HOST: "h", EVIL: "x\nrpm: 5 # ${KEY} {a: b}", KEY };
    expect(sourceOf(yaml({ more: "provider: ${P:-qwen}" }), env)).toMatchObject({ provider: "qwen" });
    expect(sourceOf(yaml({ more: "extraBody: { a: '${EVIL}' , b: '$${EVIL}' }" }), env).extraBody).toEqual({
      a: env.EVIL,
      b: "${EVIL}",
    });
    const injected = problemOf(yaml().replace("model: m", "model: ${EVIL}"), env);
    expect(injected).toMatchObject({ problem: "has control characters" });
    expect(JSON.stringify(injected)).not.toContain(KEY);
  });

  test("a missing variable is a problem with file, line, option and name", () => {
    const { key, value, problem, remedy } = problemOf(yaml({ key: "${QWEN_KEY}" }));
    expect(key).toBe(":6 scopes.LLM.sources[0].apiKey");
    expect(value).toBe("${QWEN_KEY}");
    expect(problem).toContain("QWEN_KEY");
    expect(remedy).toContain("Set QWEN_KEY");
    expect(problemOf(yaml({ more: "extraBody:\n  deep:\n    - ${NOPE}" })).problem).toContain("NOPE");
  });

  test("only the scope that is asked for needs its variables", () => {
    const vlm = "  VLM:\n    sources: [{ name: v, baseUrl: '${NOPE}', apiKey: none, model: v }]";
    expect(problemsOf(yaml({ top: vlm }))).toEqual([]);
  });

  test.each(["${", "${}", "${1A}", "${A", "${A-b}", "${A:?x}", "${A:-${B}}", "${A b}"])("refuses %s", (text) => {
    expect(problemOf(yaml({ more: `provider: '${text}'` }), { A: "a", B: "b" })).toMatchObject({
      key: ":8 scopes.LLM.sources[0].provider",
      problem: "has a ${…} that can't be read",
    });
  });

  test("what a variable gave is judged like anything else, and shown with its name", () => {
    expect(problemOf(yaml({ more: "rpm: ${RPM}" }), { RPM: "ten" })).toMatchObject({
      value: '"ten" from ${RPM}',
      problem: "is not a number",
    });
    expect(problemOf(yaml({ more: "rpm: ${RPM}" }), { RPM: "-1" })).toMatchObject({ problem: "is out of range" });
    expect(problemOf(yaml({ key: "${K}" }), { K: "" })).toMatchObject({ problem: "is empty" });
  });

  test("names of every object are no variables", () => {
    expect(problemOf(yaml({ more: "provider: ${constructor}" })).problem).toContain("constructor, which is not set");
  });
});

describe("secrets", () => {
  test("may come from a file beside it, as with *_FILE", () => {
    writeFileSync(join(folder, "key"), `${KEY}\n`);
    const text = yaml().replace(/apiKey: .*/, "apiKeyFile: ./key");
    expect(sourceOf(text)).toMatchObject({ apiKey: KEY });
    expect(sourceOf(text)).not.toHaveProperty("apiKeyFile");
    expect(problemOf(text.replace("./key", "./nope"))).toMatchObject({
      key: ":6 scopes.LLM.sources[0].apiKeyFile",
      problem: "names a file that doesn't exist",
    });
    expect(problemOf(yaml({ more: "apiKeyFile: ./key" }))).toMatchObject({ problem: "is given beside apiKey" });
  });

  test("are known by the name of their variable, and wherever else they stand", () => {
    const words = "no pattern fits this";
    for (const text of [
      yaml({ more: "rpm: ${MY_PASSWORD}" }),
      yaml({ more: "foo: ${MY_PASSWORD}" }),
      yaml({ key: words, more: `rpm: ${words}` }),
      yaml({ more: `rpm: ${words}\ncacheToken: ${words}` }),
    ]) {
      const problems = problemsOf(text, { MY_PASSWORD: words });
      expect(problems.length).toBeGreaterThan(0);
      expect(JSON.stringify(problems)).not.toContain("no pattern");
    }
  });

  test.each([
    ["under a wrong name", yaml({ more: `apiky: ${KEY}` })],
    ["where a number belongs", yaml({ more: `rpm: ${KEY}` })],
    ["as a number", yaml({ key: "739184650297" })],
    ["in a list", yaml().replace(KEY, `[${KEY}]`)],
    ["as a variable under a wrong name", yaml({ more: "modle: ${MY_TOKEN}" })],
    ["as a variable where a number belongs", yaml({ more: "rpm: ${MY_TOKEN}" })],
    ["half written", yaml({ key: `"${KEY}` })],
    ["with a second colon", yaml({ key: `a: ${KEY}: b` })],
    ["with an unknown tag", yaml({ key: `!x ${KEY}` })],
    ["as a key", `${KEY}: 1\n`],
    ["repeated", yaml({ more: `apiKey: ${KEY}` })],
    ["in broken JSON", `{"apiKey": "${KEY}" "b"}`],
  ])("never show: %s", (_, text) => {
    const env = { MY_TOKEN: KEY };
    for (const ending of ["yaml", "json"]) {
      const path = file(text, ending);
      let error: unknown;
      try {
        loadFile(path, "LLM", env);
      } catch (thrown) {
        error = thrown;
      }
      expect(error).toBeInstanceOf(ConfigError);
      const said = `${inspect(error, { depth: 10 })} ${JSON.stringify((error as ConfigError).problems)}`;
      expect(said).not.toContain("canary-5f1e");
      expect(said).not.toContain("739184650297");
    }
  });
});

describe("problems", () => {
  test("come all at once, each with line, path, value and remedy", () => {
    const text = `
scopes:
  LLM:
    sources:
      - name: qwen_1
        baseUrl: ftp://h
        apiKey: none
        rpm: -1
        maxConcurency: 5
      - name: glm_1
        baseUrl: http://g/v1
        apiKey: none
        model: 4.1
        timeoutMs: 60s
    retry:
      maxAttempts: 1_000
      backofMaxMs: 5
    failover: maybe
process:
  logLevel: loud
  sqlitPath: x.db
`;
    const path = file(text);
    const { problems } = inspectFile(openConfigFile(path), "LLM", {});
    const told = problems.map(({ key, value, problem, remedy }) => {
      expect(remedy).not.toBe("");
      return `${key.slice(path.length)} | ${value} | ${problem}`;
    });
    expect(new Set(told)).toEqual(
      new Set([
        ':6 scopes.LLM.sources[0].baseUrl | "ftp://h" | is not an http(s) address',
        ":5 scopes.LLM.sources[0].model | undefined | is missing",
        ":8 scopes.LLM.sources[0].rpm | -1 | is out of range",
        ":9 scopes.LLM.sources[0].maxConcurency | 5 | is not a known option",
        ":13 scopes.LLM.sources[1].model | 4.1 | is not a text",
        ':14 scopes.LLM.sources[1].timeoutMs | "60s" | is not a number',
        ':16 scopes.LLM.retry.maxAttempts | "1_000" | is not a number',
        ":17 scopes.LLM.retry.backofMaxMs | 5 | is not a known option",
        ':18 scopes.LLM.failover | "maybe" | is not one of the choices',
        ':20 process.logLevel | "loud" | is not one of the choices',
        ':21 process.sqlitPath | "x.db" | is not a known setting',
      ]),
    );
    const remedyOf = (end: string) => problems.find(({ key }) => key.endsWith(end))?.remedy;
    expect(remedyOf("maxConcurency")).toContain("maxConcurrency?");
    expect(remedyOf("backofMaxMs")).toContain("retry.backoffMaxMs?");
    expect(remedyOf("sqlitPath")).toContain("process.sqlitePath?");
    expect(() => loadFile(path, "LLM", {})).toThrow(ConfigError);
  });

  test.each([
    ["an empty file", "", "", "is empty"],
    ["a file of comments", "# nothing\n", "", "is empty"],
    ["a list at the top", "- a\n", ":1", "is not a mapping"],
    ["a text at the top", "hello", ":1", "is not a mapping"],
    ["no scopes", "process: {}\n", ":1 scopes", "is missing"],
    ["empty scopes", "scopes:\n", ":1 scopes", "has no scope"],
    ["a misspelt top", "scops:\n  LLM: {}\n", ":1 scops", "is not a known key"],
    ["a scope at the top", "LLM:\n  sources: []\n", ":1 LLM", "is not a known key"],
    ["a scope that is a list", "scopes:\n  LLM: []\n", ":2 scopes.LLM", "is not a mapping"],
    ["a scope with nothing", "scopes:\n  LLM:\n", ":2 scopes.LLM", "is not a mapping"],
    ["no sources", "scopes:\n  LLM: {}\n", ":2 scopes.LLM.sources", "has no source"],
    ["process as a list", yaml({ top: "process: [a]" }), ":8 process", "is not a mapping"],
    ["a tab", "scopes:\n\tLLM: 1\n", ":2", "is indented with a tab"],
    ["two documents", "a: 1\n---\nb: 2\n", ":2", "begins a second document"],
    ["YAML 1.1", `%YAML 1.1\n---\n${yaml()}`, ":1", "says it is YAML 1.1"],
    ["a tag", yaml({ more: "provider: !js x" }), ":8", "has a ! tag that is not supported"],
    ["a binary", yaml({ more: "provider: !!binary aGk=" }), ":8", "has a ! tag that is not supported"],
    ["a variable in brackets", "scopes: { LLM: { apiKey: ${A} } }", ":1", "is not valid YAML"],
    ["an unclosed quote", 'scopes: "abc\n', ":2", "is not closed"],
    ["a wrong indentation", "a:\n  b: 1\n c: 2\n", ":3", "is not indented like its neighbours"],
    ["an alias of nothing", "scopes: *nope\n", ":1 scopes", "uses *nope, which no &nope above defines"],
    ["an alias in itself", "scopes: &a [*a]\n", ":1 scopes[0]", "uses *a inside itself"],
    ["a complex key", "? [a]\n: b\n", ":1", "has a key that is not a plain word"],
    ["an empty key", ": b\n", ":1", "has a key that is not a plain word"],
    ["__proto__", yaml({ more: "__proto__: { a: 1 }" }), ":8", "is a name that is refused"],
    ["constructor", yaml({ after: "constructor: 1" }), ":8 scopes.LLM.constructor", "is not a known option"],
    ["a merge of a text", yaml({ more: "<<: hello" }), ":8", "merges something that is no mapping"],
    ["an empty value", yaml({ more: "rpm:" }), ":8 scopes.LLM.sources[0].rpm", "has no value"],
    ["an empty group", yaml({ after: "retry:" }), ":8 scopes.LLM.retry", "is not an object"],
    ["an endless number", yaml({ more: "rpm: .inf" }), ":8 scopes.LLM.sources[0].rpm", "is not a finite number"],
    ["a huge number", yaml({ more: "rpm: 9007199254740993" }), ":8 scopes.LLM.sources[0].rpm", "is out of range"],
    ["a governor", yaml({ after: "governor: {}" }), ":8 scopes.LLM.governor", "can't be given in a file"],
    ["recorders", yaml({ after: "telemetry: sqlite" }), ":8 scopes.LLM.telemetry", "can't be given in a file"],
    ["another name", yaml({ after: "scope: VLM" }), ":8 scopes.LLM.scope", "differs from LLM, the name above it"],
    [
      "a later backend",
      yaml({ top: "process: { telemetryBackends: [otel] }" }),
      ":8 process.telemetryBackends",
      "has otel, which is not available in this version",
    ],
    [
      "disagreeing backends",
      yaml({ top: "process: { breakerBackend: redis }" }),
      ":8 process.breakerBackend",
      "process.limiterBackend = memory (default)",
    ],
    [
      "an environment name",
      yaml({ top: "process: { PGW_LOG_LEVEL: info }" }),
      ":8 process.PGW_LOG_LEVEL",
      "is not a known setting",
    ],
  ])("%s", (_, text, key, problem) => {
    const found = problemsOf(text);
    const told = found.map((each) => `${each.key.replace(/^.*\.yaml/, "")}|${each.problem}`);
    expect(
      told.some((each) => each.startsWith(key) && each.endsWith(problem)),
      told.join("\n"),
    ).toBe(true);
    for (const { remedy } of found) expect(remedy).not.toBe("");
  });

  test("a name that is no scope is told with those there are", () => {
    const path = file(yaml());
    const [problem] = inspectFile(openConfigFile(path), "LLN", {}).problems;
    expect(problem).toMatchObject({ key: expect.stringContaining(basename(path)), problem: "has no scope LLN" });
    expect(problem?.remedy).toBe("Did you mean LLM? It has LLM.");
  });

  test("keys given twice are told with both lines, in YAML and in JSON", () => {
    expect(problemOf(yaml({ more: "rpm: 1\nrpm: 2" }))).toMatchObject({
      key: ":9 scopes.LLM.sources[0].rpm",
      problem: "is given twice, first in line 8",
    });
    const path = file('{"scopes": {"LLM": {},\n "LLM": {}}}', "json");
    expect(openConfigFile(path).problems[0]?.problem).toBe("is given twice, first in line 1");
  });

  test.each([
    ['{"scopes": {}, // x\n}', 1],
    ['{"scopes": {},\n}', 2],
    ["{\n'a': 1}", 2],
  ])("JSON is strict: %s", (text, line) => {
    const [problem] = openConfigFile(file(text, "json")).problems;
    expect(problem).toMatchObject({ problem: "is not valid JSON" });
    expect(problem?.key).toMatch(new RegExp(`\\.json:${line}$`));
  });

  test.each([
    ["a missing file", () => join(folder, "nope.yaml"), "doesn't exist"],
    ["a folder", () => folder, "is a folder"],
    ["a device", () => "/dev/zero", "can't be read"],
    ["another encoding", () => file(new Uint8Array([0x61, 0x3a, 0x20, 0xff, 0xfe])), "is not UTF-8 text"],
    ["UTF-16", () => file(Buffer.from(yaml(), "utf16le")), "has zero bytes, so it is no text"],
    ["a huge file", () => file(`# ${"x".repeat(2_000_000)}`), "is larger than 512 KiB"],
  ])("%s", (_, make, problem) => {
    const path = make();
    expect(openConfigFile(path).problems).toMatchObject([{ key: expect.stringContaining(basename(path)), problem }]);
  });

  test("what is no path or no scope is told to callers without types", () => {
    for (const path of [undefined, null, "", 5] as unknown as string[]) {
      expect(openConfigFile(path).problems).toMatchObject([{ key: "path", problem: "is not the path of a file" }]);
    }
    const none = undefined as unknown as string;
    expect(inspectFile(openConfigFile(file(yaml())), none, {}).problems[0]?.problem).toBe("has no scope undefined");
  });

  test("a long file of nothing but trouble is refused, whatever it repeats", { timeout: 60_000 }, () => {
    for (const text of ["---\n", ",", "a: [\n", "${", "x: *y\n", "&a ", "- a\n", "? ", "'"]) {
      const long = text.repeat(Math.floor(100_000 / text.length));
      expect(problemsOf(long).length).toBeGreaterThan(0);
    }
    expect(problemsOf(yaml({ more: `provider: "${"${".repeat(50_000)}"` }))).toHaveLength(1);
  });

  test("aliases that mean billions of values, and depth without end, are refused quickly", () => {
    const lol = Array.from(
      { length: 12 },
      (_, n) =>
        `a${n}: &a${n} [${
          n === 0
            ? "x"
            : Array(10)
                .fill(`*a${n - 1}`)
                .join(",")
        }]`,
    );
    expect(problemsOf(lol.join("\n"))[0]?.problem).toContain("means more than");
    const merges = Array.from(
      { length: 12 },
      (_, n) =>
        `b${n}: &b${n} { <<: [${
          n === 0
            ? "{k: v}"
            : Array(10)
                .fill(`*b${n - 1}`)
                .join(",")
        }] }`,
    );
    expect(problemsOf(merges.join("\n"))[0]?.problem).toContain("means more than");
    const chain = Array.from({ length: 500 }, (_, n) => `c${n}: &c${n} [${n === 0 ? "x" : `*c${n - 1}`}]`);
    expect(problemsOf(chain.join("\n"))[0]?.problem).toBe("is nested too deeply");
    for (const deep of ["[".repeat(50_000), "{a: ".repeat(50_000), "- ".repeat(50_000), "? ".repeat(50_000)]) {
      expect(problemsOf(deep)[0]?.problem).toBe("is nested too deeply");
      expect(openConfigFile(file(deep, "json")).problems).toHaveLength(1);
    }
    const json = `${"[".repeat(5_000)}${"]".repeat(5_000)}`;
    expect(openConfigFile(file(json, "json")).problems[0]?.problem).toBe("is nested too deeply");
  });

  test("nothing that a file holds pollutes prototypes", () => {
    problemsOf(yaml({ more: "__proto__: { polluted: 1 }\nextraBody: { __proto__: { polluted: 1 } }" }));
    const path = file('{"__proto__": {"polluted": 1}, "scopes": {"__proto__": {"polluted": 1}}}', "json");
    expect(openConfigFile(path).problems.map(({ problem }) => problem)).toContain("is a name that is refused");
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
});

describe("whatever it holds", () => {
  const anything = fc.anything({ maxDepth: 4, withNullPrototype: false });
  const lines = fc.array(
    fc.constantFrom(
      "scopes:",
      "  LLM:",
      "    sources:",
      "      - name: a",
      "        rpm: ${A}",
      "\tx: 1",
      "- ",
      "? ",
      ": ",
      "&a ",
      "*a",
      "<<: *a",
      "[",
      "]",
      "{",
      "}",
      "'",
      '"',
      "|",
      ">",
      "# c",
      "---",
      "...",
      "%YAML 1.2",
      "!!x ",
      "__proto__: 1",
      "process:",
      "\u2028",
      "null",
      "🙂",
    ),
  );

  test("only problems with a remedy come out, never another error", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string({ unit: "binary" }),
          lines.map((list) => list.join("\n")),
          lines.map((list) => list.join("")),
        ),
        (text) => {
          const opened = inspectFile(openConfigFile(file(text)), "LLM", { A: "1" });
          for (const problem of opened.problems) expect(problem.remedy).not.toBe("");
        },
      ),
      { numRuns: 300 },
    );
  });

  test("any tree gives the constructor's problems or none", () => {
    fc.assert(
      fc.property(anything, (tree) => {
        let text: string;
        try {
          text = JSON.stringify({ scopes: { LLM: tree } }) ?? "";
        } catch {
          return;
        }
        const opened = inspectFile(openConfigFile(file(text, "json")), "LLM", {});
        expect(opened.problems.length).toBeGreaterThan(0);
      }),
      { numRuns: 200 },
    );
  });

  const limits = {
    maxConcurrency: fc.integer({ min: 0, max: 99 }),
    rpm: fc.integer({ min: 0, max: 999 }),
    strict: fc.boolean(),
  };
  const text = fc.stringMatching(/^[A-Za-z0-9 :#'"\\&*!%@`,.[\]{}|>?-]{1,20}$/).filter((each) => each.trim() !== "");
  const source = fc.record(
    {
      model: text,
      stream: fc.boolean(),
      weight: fc.double({ min: 0.01, max: 99, noNaN: true }),
      timeoutMs: fc.integer({ min: 70_000, max: 200_000 }),
      headers: fc.dictionary(fc.stringMatching(/^[a-z-]{1,8}$/), text, { maxKeys: 3 }),
      extraBody: fc.dictionary(
        fc.stringMatching(/^[a-z_0-9]{1,8}$/),
        fc
          .jsonValue({ maxDepth: 2 })
          // `$` begins a variable, `__proto__` is no key, and the writer doesn't quote `<<`, which then merges.
          .filter((each) => !/[$]|__proto__|"<<"/.test(JSON.stringify(each))),
        { maxKeys: 3 },
      ),
      ...limits,
    },
    { requiredKeys: ["model"] },
  );
  const options = fc.record(
    {
      sources: fc.array(source, { minLength: 1, maxLength: 3 }),
      retry: fc.record({ maxAttempts: fc.integer({ min: 1, max: 9 }) }, { requiredKeys: [] }),
      breaker: fc.record(
        { failRate: fc.double({ min: 0.1, max: 1, noNaN: true }), cooldownMs: fc.integer({ min: 0, max: 9_000 }) },
        { requiredKeys: [] },
      ),
      global: fc.record(limits, { requiredKeys: [] }),
      failover: fc.constantFrom("on", "off"),
      selector: fc.constantFrom("round_robin", "least_inflight"),
      deadlineMs: fc.integer({ min: 1, max: 99_999 }),
      leaseTtlMs: fc.integer({ min: 3_000, max: 99_999 }),
      telemetryOptions: fc.record({ capture: fc.constantFrom("full", "none") }, { requiredKeys: [] }),
    },
    { requiredKeys: ["sources"] },
  );

  test("options written as YAML or JSON and given to the constructor give the same scope", () => {
    fc.assert(
      fc.property(options, (some) => {
        const sources = some.sources.map((each, index) => ({
          name: `s_${index}`,
          baseUrl: "http://h/v1",
          apiKey: "none",
          ...each,
        }));
        const given = { scope: "LLM", ...some, sources } as unknown as GatewayOptions;
        const { scope: _, ...tree } = given;
        const code = inspectScope(given);
        expect(code.problems).toEqual([]);
        const content = { scopes: { LLM: tree } };
        for (const path of [
          file(stringify(content)),
          file(JSON.stringify(content), "json"),
          file(JSON.stringify(given, null, 2), "json"),
        ]) {
          const { problems, options: read } = inspectFile(openConfigFile(path), "LLM", {});
          expect(problems).toEqual([]);
          const resolved = resolveScope(read);
          expect(JSON.stringify(resolved.config)).toBe(JSON.stringify(code.config));
          expect(resolved.telemetry).toEqual(code.telemetry);
        }
      }),
      { numRuns: 100 },
    );
  });
});

test("a folder of configuration resolves its own paths, absolute ones stay", () => {
  const inner = join(folder, "inner");
  mkdirSync(inner);
  const path = join(inner, "polygateway.yml");
  writeFileSync(
    path,
    yaml({
      top: "process: { telemetryBackends: [sqlite, jsonl], sqlitePath: a.db, jsonlPath: /tmp/a.jsonl, pricingPath: ../p.json }",
    }),
  );
  expect(loadFile(path, "LLM", {}).process).toMatchObject({
    sqlitePath: join(inner, "a.db"),
    jsonlPath: "/tmp/a.jsonl",
    pricingPath: join(folder, "p.json"),
  });
});
