import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { namesOf, STARTER_PROVIDERS } from "../src/cli/init-providers.js";
import { PURPOSE_NAMES, PURPOSES } from "../src/cli/init-purposes.js";
import { runCli } from "../src/cli/program.js";
import { parseDotEnv } from "../src/config/dotenv.js";
import { inspectEnv } from "../src/config/env.js";
import { inspectFile, openConfigFile } from "../src/config/file.js";
import { startPaddleServer } from "../src/testing/ocr/paddle-server.js";
import { type SimulatedProvider, startSimulatedProvider } from "../src/testing/provider/server.js";
import { profileFor, profiles } from "../src/transports/openai/profiles.js";
import { fakeTerminal, makeFolder, sourceEnv, startCli } from "./cli-harness.js";

/** Configuration files and `init` through the built command, in folders of their own. */

const KEY = "sk-canary-5f1e0c9a77d3";
let folder: ReturnType<typeof makeFolder>;
let provider: SimulatedProvider;

beforeEach(async () => {
  folder = makeFolder();
  provider = await startSimulatedProvider();
});

afterEach(async () => {
  await provider.stop();
  folder.remove();
});

function put(name: string, text: string): string {
  const path = join(folder.path, name);
  writeFileSync(path, text);
  return path;
}

function pgw(args: readonly string[], env: Record<string, string> = {}) {
  return startCli(args, { folder: folder.path, env }).finished;
}

function yaml(more = "", scope = "LLM"): string {
  return `scopes:
  ${scope}:
    sources:
      - name: sim_1
        baseUrl: ${provider.baseUrl}
        apiKey: \${SIM_KEY}
        model: sim-model
${more}`;
}

describe("a configuration file on the command line", () => {
  test("is found in the folder, filled from .env, and used by chat and batch", async () => {
    put("polygateway.yaml", yaml("process:\n  telemetryBackends: [jsonl]\n  jsonlPath: rows/calls.jsonl\n"));
    mkdirSync(join(folder.path, "rows"));
    put(".env", `SIM_KEY=${KEY}\n`);
    const chat = await pgw(["chat", "hello"]);
    expect(chat).toMatchObject({ code: 0, stdout: expect.stringContaining("to: hello") });
    put("in.jsonl", '{"prompt": "one"}\n');
    expect(await pgw(["batch", "in.jsonl", "-o", "out.jsonl"])).toMatchObject({ code: 0 });
    const rows = readFileSync(join(folder.path, "rows", "calls.jsonl"), "utf8");
    expect(rows).toContain("sim_1");
    expect(rows).not.toContain("canary");
    expect(existsSync(join(folder.path, "polygateway.db"))).toBe(false);
    expect(provider.ledger().length).toBe(2);
  });

  test("is named by --config, and its paths start at its own folder", async () => {
    mkdirSync(join(folder.path, "conf"));
    put("conf/prod.yaml", yaml("process: { telemetryBackends: [jsonl], jsonlPath: calls.jsonl }\n", "PROD"));
    put("polygateway.json", "not even JSON");
    const chat = await pgw(["chat", "hello", "--config", "conf/prod.yaml"], { SIM_KEY: KEY });
    expect(chat).toMatchObject({ code: 0, stdout: expect.stringContaining("to: hello") });
    expect(existsSync(join(folder.path, "conf", "calls.jsonl"))).toBe(true);
  });

  test("wins over the environment as a whole, and every command says what is not read", async () => {
    put("polygateway.yaml", yaml());
    const env = { ...sourceEnv("http://127.0.0.1:9/v1"), SIM_KEY: KEY, PGW_LOG_LEVEL: "debug" };
    const chat = await pgw(["chat", "hello"], env);
    expect(chat).toMatchObject({ code: 0, stdout: expect.stringContaining("to: hello") });
    expect(chat.stderr).toContain("not read from the environment: polygateway.yaml is the whole configuration");
    const check = await pgw(["check"], env);
    expect(check.code).toBe(0);
    expect(check.stdout).toContain("polygateway.yaml, its ${…} filled from the environment");
    expect(check.stdout).toMatch(
      /warning {2}LLM__SIM__1__API_KEY, LLM__SIM__1__BASE_URL, LLM__SIM__1__MODEL and 1 more/,
    );
    expect(check.stdout + check.stderr).not.toContain("canary");
  });

  test("check tells every problem with its line, in text and as JSON", async () => {
    put("polygateway.yaml", `${yaml()}        rpm: -1\n        maxConcurency: 3\n`);
    const text = await pgw(["check"]);
    expect(text.code).toBe(1);
    expect(text.stdout).toContain("✗ polygateway.yaml:6 scopes.LLM.sources[0].apiKey = ${SIM_KEY}");
    expect(text.stdout).toContain("✗ polygateway.yaml:8 scopes.LLM.sources[0].rpm = -1");
    expect(text.stdout).toContain("Did you mean scopes.LLM.sources[0].maxConcurrency?".replace("scopes.LLM.", ""));
    expect(text.stderr).toContain("3 problems to correct.");
    const json = JSON.parse((await pgw(["check", "--json"])).stdout);
    expect(json).toMatchObject({ ok: false, configFile: "polygateway.yaml" });
    expect(json.problems).toHaveLength(3);
    const chat = await pgw(["chat", "hello"]);
    expect(chat.code).toBe(1);
    expect(chat.stderr).toContain("polygateway.yaml:8");
    expect(provider.ledger()).toEqual([]);
  });

  test.each([
    ["a missing file", ["--config", "nope.yaml"], "nope.yaml", "doesn't exist"],
    ["a folder", ["--config", "."], ".", "is a folder"],
    ["broken YAML", ["--config", "broken.yaml"], "broken.yaml:2", "is indented with a tab"],
    ["a scope that is not there", ["--config", "good.yaml", "--scope", "LLN"], "good.yaml", "Did you mean LLM?"],
  ])("%s ends check and chat with exit code 1 and a plain word", async (_, args, key, problem) => {
    put("broken.yaml", `a:\n\tapiKey: ${KEY}\n`);
    put("good.yaml", yaml());
    for (const command of [["check"], ["chat", "hello"]]) {
      const { code, stdout, stderr } = await pgw([...command, ...args], { SIM_KEY: KEY });
      expect(code).toBe(1);
      expect(stdout + stderr).toContain(key);
      expect(stdout + stderr).toContain(problem);
      expect(stdout + stderr).not.toContain("canary");
      expect(stdout + stderr).not.toContain("Unexpected error");
    }
  });

  test("several files or scopes are no guess", async () => {
    put("polygateway.yaml", `${yaml()}  VLM:\n    sources: []\n`.replace("  LLM:", "  ONE:"));
    expect((await pgw(["chat", "x"], { SIM_KEY: KEY })).stderr).toContain("Several scopes are configured (ONE, VLM)");
    expect(await pgw(["chat", "x", "--scope", "ONE"], { SIM_KEY: KEY })).toMatchObject({ code: 0 });
    const check = await pgw(["check"], { SIM_KEY: KEY });
    expect(check).toMatchObject({ code: 1, stdout: expect.stringContaining("scopes.VLM.sources") });
    put("polygateway.json", "{}");
    expect((await pgw(["check"])).stderr).toContain("Here are polygateway.yaml and polygateway.json");
  });
});

describe("commands that read telemetry find it where chat put it", () => {
  const PROCESS = "process: { telemetryBackends: [jsonl, sqlite], sqlitePath: rows.db, jsonlPath: rows.jsonl }\n";

  /** Every such command; each is good. */
  async function readAll(more: readonly string[], files: { all: string; sqlite: string }, env = {}): Promise<void> {
    const runs = await Promise.all([
      pgw(["report", "--json", ...more], env),
      pgw(["trace", "s1", "--json", ...more], env),
      pgw(["reconcile", "--json", ...more], env),
      pgw(["telemetry", "prune", "--older-than", "1d", "--dry-run", "--json", ...more], env),
    ]);
    const [report, trace, reconcile, prune] = runs;
    // The session is unknown, but the file was found and read.
    expect(trace).toMatchObject({ code: 1, stderr: expect.stringContaining(`${files.all} knows no session`) });
    expect(report?.stderr).toBe("");
    expect(JSON.parse(report?.stdout ?? "")).toMatchObject({ file: files.all, total: { calls: 1 } });
    expect(JSON.parse(reconcile?.stdout ?? "")).toMatchObject({ file: files.all, balanced: true, calls: 1 });
    expect(JSON.parse(prune?.stdout ?? "")).toMatchObject({ file: files.sqlite, rows: 0, kept: 1 });
  }

  test("by the environment, and by .env or --env", async () => {
    const place = { PGW_TELEMETRY_SQLITE_PATH: "mine.db" };
    const env = { ...sourceEnv(provider.baseUrl), ...place };
    expect(await pgw(["chat", "hello"], env)).toMatchObject({ code: 0 });
    await readAll([], { all: "mine.db", sqlite: "mine.db" }, place);
    put(".env", "PGW_TELEMETRY_SQLITE_PATH=mine.db\n");
    await readAll([], { all: "mine.db", sqlite: "mine.db" });
    put(".env", "");
    put("other.env", "PGW_TELEMETRY_SQLITE_PATH=mine.db\n");
    await readAll(["--env", "other.env"], { all: "mine.db", sqlite: "mine.db" });
    expect((await pgw(["report"])).stderr).toContain("./polygateway.db: does not exist");
    await readAll(["--db", "mine.db"], { all: "mine.db", sqlite: "mine.db" }, { PGW_TELEMETRY_SQLITE_PATH: "no.db" });
  });

  test("by a configuration file, which wins over the environment; problems elsewhere in it don't matter", async () => {
    mkdirSync(join(folder.path, "conf"));
    put("conf/prod.yaml", yaml(PROCESS));
    const named = ["--config", "conf/prod.yaml"];
    expect(await pgw(["chat", "hello", ...named], { SIM_KEY: KEY })).toMatchObject({ code: 0 });
    const files = { all: "conf/rows.jsonl", sqlite: "conf/rows.db" };
    await readAll(named, files, { PGW_TELEMETRY_SQLITE_PATH: "elsewhere.db" });
    put("conf/prod.yaml", `${yaml(`        rpm: -1\n${PROCESS.replace("{", "{ journal: never, ")}`)}bogus: 1\n`);
    await readAll(named, files);
    put("polygateway.yaml", `scopes: 7\n${PROCESS.replaceAll("rows", "conf/rows")}`);
    await readAll([], files);
    expect((await pgw(["report", "--db", "conf/rows.db"])).stdout).toContain("Telemetry in conf/rows.db");
  });

  test.each([
    ["process: { sqlitePath: 7 }\n", "process.sqlitePath"],
    ["process: { sqlitePaht: x.db }\n", "Did you mean process.sqlitePath?"],
    ["process:\n  sqlitePath: $" + "{NOWHERE}\n", "NOWHERE"],
    ["process: x.db\n", "is not a mapping"],
    ["proces: { sqlitePath: x.db }\n", "Did you mean process?"],
    ["- a list\n", "is not a mapping"],
    ["a: [\n", "polygateway.yaml:"],
  ])("%j leaves the place open, which ends with exit code 1", async (text, words) => {
    put("polygateway.yaml", text);
    const runs = await Promise.all([pgw(["report"]), pgw(["reconcile"])]);
    for (const { code, stderr } of runs) {
      expect(code).toBe(1);
      expect(stderr).toContain(words);
      expect(stderr).toContain("polygateway.yaml");
    }
  });

  test.each([
    [{ PGW_TELEMETRY_BACKEND: "sqlit" }, "PGW_TELEMETRY_BACKEND"],
    [{ PGW_TELEMETRY_SQLITE_PAHT: "x.db" }, "Did you mean PGW_TELEMETRY_SQLITE_PATH?"],
  ])("%j does so too; what is wrong elsewhere doesn't", async (env, words) => {
    const { code, stderr } = await pgw(["report"], env);
    expect(code).toBe(1);
    expect(stderr).toContain(words);
    const other = { PGW_JOURNAL: "never", LLM__A__1__RPM: "x", PGW_CACHE_BACKEN: "none" };
    expect((await pgw(["report"], other)).stderr).toContain("./polygateway.db: does not exist");
  });

  test("help says so", async () => {
    for (const command of [["report"], ["trace"], ["reconcile"], ["telemetry", "prune"]]) {
      const { stdout } = await pgw([...command, "--help"]);
      expect(stdout.replace(/\s+/g, " ")).toContain("the one that is configured, else ./polygateway.db");
      expect(stdout).toContain("--config <file>");
      expect(stdout).toContain("--env <file>");
    }
  });
});

const KNOWN = { profiles, profileFor };
const PROVIDER_NAMES = namesOf(STARTER_PROVIDERS);

describe("init", () => {
  test.each(["env", "yaml"])("every built-in profile is a provider, and is in force by the %s", async (format) => {
    expect(PROVIDER_NAMES).toEqual(expect.arrayContaining(Object.keys(profiles)));
    const names = Object.keys(profiles);
    const written = ["init", "--provider", names.join(","), "--format", format];
    expect(await pgw(written)).toMatchObject({ code: 0 });
    const keys = STARTER_PROVIDERS.flatMap(({ name, keyName }) =>
      keyName === undefined ? [] : [[keyName, KEY] as const, [`LLM__${name.toUpperCase()}__1__API_KEY`, KEY] as const],
    );
    const { code, stdout } = await pgw(["check", "--json"], Object.fromEntries(keys));
    expect(code).toBe(0);
    const { sources } = JSON.parse(stdout).scopes[0];
    const inForce = sources.map(({ name, profile }: { name: string; profile: string }) => [name, profile]);
    expect(Object.fromEntries(inForce)).toEqual(Object.fromEntries(names.map((name) => [`${name}_1`, name])));
  });

  test("the profile is written only where the address doesn't choose it", async () => {
    await pgw(["init", "--provider", "glm", "-o", "host.env"]);
    expect(readFileSync(join(folder.path, "host.env"), "utf8")).not.toContain("PROFILE");
    await pgw(["init", "--provider", "glm", "--base-url", "http://10.0.0.7:8000/v1", "-o", "own.yaml"]);
    expect(readFileSync(join(folder.path, "own.yaml"), "utf8")).toContain("        profile: glm #");
    await pgw(["init", "--provider", "custom", "--base-url", "http://h/v1", "--model", "m", "-o", "custom.env"]);
    expect(readFileSync(join(folder.path, "custom.env"), "utf8")).not.toContain("PROFILE");
  });

  test("an address that stands for your own is called that, until you give yours", async () => {
    const { stdout } = await pgw(["init", "--provider", "azure"]);
    expect(stdout).toContain("1. In .env, for azure, write the address of your own Azure resource");
    expect(readFileSync(join(folder.path, ".env"), "utf8")).toMatch(
      /# The address and the model are stand-ins: .*\n.*BASE_URL=https:\/\/my-resource/,
    );
    const own = ["--base-url", "https://ours.openai.azure.com/openai/v1", "--model", "small", "-o", "own.yaml"];
    const given = await pgw(["init", "--provider", "azure", ...own]);
    expect(given.stdout).not.toContain("your own");
    expect(readFileSync(join(folder.path, "own.yaml"), "utf8")).not.toContain("stand-in");
  });

  test("the simulated provider gets the same options as any other, and is said to have to be started", async () => {
    const optionsOf = (text: string) =>
      [...text.matchAll(/^(?:# )?LLM__\w+?__1__(\w+)=|^# ((?:LLM|PGW)_\w+)=/gm)].map(([, own, other]) => own ?? other);
    await pgw(["init", "-o", "openai.env"]);
    const { stdout } = await pgw(["init", "--provider", "mock", "-o", "mock.env"]);
    const options = optionsOf(readFileSync(join(folder.path, "mock.env"), "utf8"));
    expect(options).toEqual(optionsOf(readFileSync(join(folder.path, "openai.env"), "utf8")));
    expect(options).toEqual(expect.arrayContaining(["MAX_CONCURRENCY", "RPM", "TPM", "TIMEOUT_S", "TTFT_TIMEOUT_S"]));
    expect(stdout).toContain("1. polygateway mock");
    expect((await pgw(["init", "--provider", "openai", "-o", "other.env"])).stdout).not.toContain("polygateway mock");
  });

  test("what it says about limits is true", async () => {
    await pgw(["init"]);
    const text = readFileSync(join(folder.path, ".env"), "utf8");
    expect(text).toContain("0, or no such line, = no limit");
    put(".env", text.replace("# LLM__OPENAI__1__RPM=60", "LLM__OPENAI__1__RPM=0"));
    expect(await pgw(["check"], { LLM__OPENAI__1__API_KEY: KEY })).toMatchObject({ code: 0 });
  });

  test("writes a commented .env that is good once the key is set; nobody else may read it", async () => {
    const { code, stdout } = await pgw(["init"]);
    expect(code).toBe(0);
    expect(stdout).toContain("Wrote .env for openai.");
    expect(stdout).toContain("1. Set LLM__OPENAI__1__API_KEY in .env");
    expect(readdirSync(folder.path)).toEqual([".env"]);
    const path = join(folder.path, ".env");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readFileSync(path, "utf8")).toContain("# LLM__OPENAI__1__RPM=60");
    expect(await pgw(["check"])).toMatchObject({ code: 1, stdout: expect.stringContaining("LLM__OPENAI__1__API_KEY") });
    expect(await pgw(["check"], { LLM__OPENAI__1__API_KEY: KEY })).toMatchObject({ code: 0 });
  });

  test("writes a polygateway.yaml whose keys are variables, and which answers", async () => {
    const args = [
      "init",
      "--provider",
      "custom",
      "--base-url",
      provider.baseUrl,
      "--model",
      "sim-model",
      "--format",
      "yaml",
    ];
    const { code, stdout } = await pgw(args);
    expect(code).toBe(0);
    expect(stdout).toContain("Set CUSTOM_API_KEY in the environment or in .env.");
    expect(readFileSync(join(folder.path, "polygateway.yaml"), "utf8")).toContain("apiKey: ${CUSTOM_API_KEY}");
    expect(await pgw(["check"])).toMatchObject({
      code: 1,
      stdout: expect.stringContaining("CUSTOM_API_KEY, which is not set"),
    });
    put(".env", `CUSTOM_API_KEY=${KEY}\n`);
    expect(await pgw(["chat", "hello"])).toMatchObject({ code: 0, stdout: expect.stringContaining("to: hello") });
  });

  test.each(["env", "yaml"])(
    "every provider, and every commented line of the %s, is good configuration",
    async (format) => {
      const names = STARTER_PROVIDERS.map(({ name }) => name).join(",");
      const out = format === "env" ? "all.env" : "all.yml";
      const { code, stdout } = await pgw([
        "init",
        "--provider",
        names,
        "--scope",
        "TEAM.A",
        "--format",
        format,
        "-o",
        out,
      ]);
      expect(code).toBe(0);
      expect(stdout).toContain(`polygateway chat --${format === "env" ? "env" : "config"} ${out} "Hello"`);
      const text = readFileSync(join(folder.path, out), "utf8");
      const whole = text.replace(/^(\s*)# (\s*[\w.]+[:=].*)$/gm, "$1$2").replace(/^\s*Limits: .*$/gm, "");
      expect(whole).not.toBe(text);
      for (const content of [text, whole]) {
        const keys = Object.fromEntries(STARTER_PROVIDERS.flatMap(({ keyName }) => (keyName ? [[keyName, KEY]] : [])));
        const inspection =
          format === "env"
            ? inspectEnv("TEAM.A", parseDotEnv(content.replaceAll("API_KEY=\n", `API_KEY=${KEY}\n`)).values, KNOWN)
            : inspectFile(openConfigFile(put("whole.yaml", content)), "TEAM.A", keys, KNOWN);
        expect(inspection.problems).toEqual([]);
        expect(inspection.options.sources).toHaveLength(STARTER_PROVIDERS.length);
        expect(inspection.options.retry?.maxAttempts).toBe(content === whole ? 4 : undefined);
        expect(inspection.options.deadlineMs).toBe(content === whole ? 300_000 : undefined);
        expect(inspection.process.telemetryBackends).toEqual(content === whole ? ["sqlite"] : undefined);
      }
    },
  );

  const PAIRS = PURPOSE_NAMES.flatMap((purpose) => ["env", "yaml"].map((format) => [purpose, format] as const));

  test.each(PAIRS)("for %s as %s: check is green for every provider, and with every comment", async (name, format) => {
    const purpose = PURPOSES[name];
    const out = `all.${format}`;
    const names = purpose.providers.map((provider) => provider.name).join(",");
    const args = ["init", "--for", name, "--provider", names, "--format", format, "-o", out];
    const { code, stdout } = await pgw(args);
    expect(code).toBe(0);
    expect(stdout).toContain(`polygateway ${purpose.firstCall[0]} --`);
    const text = readFileSync(join(folder.path, out), "utf8").replaceAll("API_KEY=\n", `API_KEY=${KEY}\n`);
    const whole = text.replace(/^(\s*)# (\s*[\w.]+[:=].*)$/gm, "$1$2").replace(/^\s*Limits: .*$/gm, "");
    expect(whole).not.toBe(text);
    const keys = purpose.providers.flatMap(({ keyName }) => (keyName === undefined ? [] : [[keyName, KEY]]));
    const flag = format === "env" ? "--env" : "--config";
    for (const content of [text, whole]) {
      const checked = await pgw(["check", "--json", flag, put(`checked.${format}`, content)], Object.fromEntries(keys));
      const { scopes, problems } = JSON.parse(checked.stdout);
      expect([checked.code, problems]).toEqual([0, []]);
      expect(scopes.map(({ scope }: { scope: string }) => scope)).toEqual([purpose.scope]);
      expect(scopes[0].sources).toHaveLength(purpose.providers.length);
      expect(scopes[0].embedding === null).toBe(name !== "embeddings");
    }
  });

  test("an embedding scope takes no more texts a request than its provider does, and embeds", async () => {
    await pgw(["init", "--for", "embeddings", "--provider", "qwen", "-o", "qwen.env"]);
    expect(readFileSync(join(folder.path, "qwen.env"), "utf8")).toContain("\nEMBED__BATCH_SIZE=10\n");
    const own = ["--provider", "mock", "--base-url", provider.baseUrl];
    await pgw(["init", "--for", "embeddings", ...own]);
    put("texts.txt", "one\ntwo\n");
    expect(await pgw(["check"])).toMatchObject({ code: 0, stdout: expect.stringContaining("Scope EMBED") });
    expect(await pgw(["embed", "texts.txt", "-o", "vectors.jsonl"])).toMatchObject({ code: 0 });
    expect(readFileSync(join(folder.path, "vectors.jsonl"), "utf8").trim().split("\n")).toHaveLength(2);
  });

  test("an OCR scope reads", async () => {
    const server = await startPaddleServer();
    try {
      await pgw(["init", "--for", "ocr", "--provider", "paddle", "--base-url", server.baseUrl]);
      writeFileSync(join(folder.path, "page.png"), Buffer.from("iVBORw0KGgoAAAANSUhEUgAABLAAAAMg", "base64"));
      expect(await pgw(["check", "--live"])).toMatchObject({ code: 0, stdout: expect.stringContaining("Scope OCR") });
      expect(await pgw(["ocr", "page.png", "-o", "read"])).toMatchObject({ code: 0 });
      expect(readFileSync(join(folder.path, "read", "page.png.txt"), "utf8")).toContain("Annual report");
    } finally {
      await server.stop();
    }
  });

  test("asks what the scope is for", async () => {
    const { code, out } = await talk(["ocr", "custom", "http://10.0.0.7:8000/v1", "dots.ocr", "env"]);
    expect(code).toBe(0);
    expect(readFileSync(out, "utf8")).toContain("OCR__CUSTOM__1__TRANSPORT=vlm");
  });

  test("never overwrites: not a file, not a link that leads nowhere", async () => {
    put(".env", "MINE=1\n");
    const again = await pgw(["init", "--yes"]);
    expect(again).toMatchObject({ code: 1, stdout: "" });
    expect(again.stderr).toContain(".env exists and is never overwritten");
    expect(readFileSync(join(folder.path, ".env"), "utf8")).toBe("MINE=1\n");
    symlinkSync("/nowhere/at/all", join(folder.path, "polygateway.yaml"));
    expect(await pgw(["init", "--format", "yaml"])).toMatchObject({ code: 1 });
    expect(readdirSync(folder.path).sort()).toEqual([".env", "polygateway.yaml"]);
  });

  test("two at once: one writes, one is refused, and the file is whole", async () => {
    const runs = await Promise.all([1, 2, 3].map(() => pgw(["init"])));
    expect(runs.map(({ code }) => code).sort()).toEqual([0, 1, 1]);
    expect(readdirSync(folder.path)).toEqual([".env"]);
    expect(readFileSync(join(folder.path, ".env"), "utf8")).toMatch(/PGW_LOG_LEVEL=warn\n$/);
  });

  test.each([
    [["--provider", "opnai"], "Known are openai"],
    [["--provider", "custom"], "--base-url for custom"],
    [["--provider", "custom", "--base-url", "http://h/v1"], "--model for custom"],
    [["--provider", "openai", "--base-url", "ftp://h"], "is not an http(s) address"],
    [["--provider", "openai", "--model", "a b: c"], "need quoting"],
    [["--provider", "openai,qwen", "--model", "m"], "of one provider"],
    [["--for", "speech"], "chat, embeddings, ocr"],
    [["--for", "embeddings", "--provider", "anthropic"], "Known are openai"],
    [["--for", "ocr", "--provider", "vllm"], "Known are monkey-ocr"],
    [["--scope", "A__B"], "--scope takes"],
    [["--format", "toml"], "env, yaml"],
    [["--out", "x.json"], "JSON has no comments"],
    [["--out", "no/such/folder/.env"], "no/such/folder/.env: no such file or folder"],
  ])("%j is refused in plain words, and nothing is written", async (args, words) => {
    const { code, stderr } = await pgw(["init", ...args]);
    expect(code).toBe(1);
    expect(stderr).toContain(words);
    expect(stderr).not.toContain(".tmp");
    expect(readdirSync(folder.path)).toEqual([]);
  });

  test.each([
    ["--provider", "custom", "--base-url", "http://u:sk-canarySECRET123@h/v1", "--model", "m"],
    ["--provider", "custom", "--base-url", "htp:/h?api_key=sk-canarySECRET123", "--model", "m"],
    ["--provider", "openai", "--base-url", "sk-canarySECRET123"],
    ["--provider", "openai", "--model", "sk-canarySECRET123 x"],
    ["--provider", "sk-canarySECRET123"],
  ])("a secret among the flags is not told: %j", async (...args) => {
    const terminal = fakeTerminal();
    expect(await runCli(["init", "--out", join(folder.path, "refused.env"), ...args], terminal)).toBe(1);
    expect(terminal.err()).not.toContain("canarySECRET");
    expect(readdirSync(folder.path)).toEqual([]);
  });

  // Root may write anywhere.
  test.skipIf(process.getuid?.() === 0)("a read-only folder is told", async () => {
    chmodSync(folder.path, 0o500);
    const { code, stderr } = await pgw(["init"]);
    chmodSync(folder.path, 0o700);
    expect(code).toBe(1);
    expect(stderr).toContain(".env: permission denied");
  });

  async function talk(lines: readonly string[], args: readonly string[] = []) {
    const stdin = Object.assign(new PassThrough(), { isTTY: true });
    stdin.end(lines.map((line) => `${line}\n`).join(""));
    const terminal = { ...fakeTerminal(), stdin };
    const out = join(folder.path, "asked.env");
    const code = await runCli(["init", "--out", out, ...args], terminal);
    return { code, out, said: terminal.err() };
  }

  test("asks on a terminal: again until it fits, defaults by an empty line", async () => {
    const { code, out, said } = await talk([
      "speech",
      "",
      "nobody",
      "deepseek, custom",
      "",
      "htp://x",
      "http://10.0.0.7:8000/v1",
      "",
      "my-model",
      "yaml",
    ]);
    expect(code).toBe(0);
    expect(said).toContain("Write chat, embeddings, ocr.");
    expect(said).toContain(`Known are ${PROVIDER_NAMES.join(", ")}`);
    expect(said).toContain("Model of deepseek [deepseek-chat]: ");
    expect(said).toContain("is not an http(s) address");
    const text = readFileSync(out, "utf8");
    expect(text).toContain('model: "my-model"');
    expect(text).toContain("apiKey: ${DEEPSEEK_API_KEY}");
  });

  test("writes nothing when the questions are left, and asks nothing with --yes or --provider", async () => {
    const left = await talk(["chat", "openai"]);
    expect(left.code).toBe(130);
    expect(left.said).toContain("nothing was written");
    expect(existsSync(left.out)).toBe(false);
    expect(await talk([], ["--yes"])).toMatchObject({ code: 0, said: "" });
  });

  test("says when a configuration file stands in the way of the .env", async () => {
    put("polygateway.yaml", yaml());
    expect((await pgw(["init"])).stdout).toContain("polygateway.yaml is the configuration in this folder");
  });
});
