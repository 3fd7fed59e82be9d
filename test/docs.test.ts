import { spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as redis from "../src/backends/redis/index.js";
import { createProgram } from "../src/cli/program.js";
import { isWholeProfile, profileProblems } from "../src/config/profile-shape.js";
import { providersPage } from "../src/config/provider-docs.js";
import * as everyone from "../src/index.js";
import * as postgres from "../src/telemetry/postgres.js";
import * as sqlite from "../src/telemetry/sqlite.js";
import * as testing from "../src/testing/index.js";
import { MINERU_OPTION_NAMES } from "../src/testing/ocr/mineru-server.js";
import { MISTRAL_OCR_OPTION_NAMES } from "../src/testing/ocr/mistral-server.js";
import { MONKEY_OCR_OPTION_NAMES } from "../src/testing/ocr/monkey-ocr-server.js";
import { PADDLE_OPTION_NAMES } from "../src/testing/ocr/paddle-server.js";
import { optionPaths } from "../src/testing/provider/option-names.js";
import { PROVIDER_OPTION_NAMES } from "../src/testing/provider/options.js";
import { type SimulatedProvider, startSimulatedProvider } from "../src/testing/provider/server.js";
import { VERSION } from "../src/version.js";
import { fakeTerminal } from "./cli-harness.js";

/** What the documents say about the code, held against the code. */

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..");
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const manifest = JSON.parse(read("package.json"));

function filesBelow(folder: string, ending: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(ending))
    .map((name) => join(folder, name).split(sep).join("/"))
    .sort();
}

const PAGES = [
  ...["README.md", "README.zh-CN.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"],
  ...filesBelow("docs", ".md"),
  ...filesBelow("examples", ".md"),
];
const DECISIONS = filesBelow("docs/decisions", ".md").filter((path) => /\/\d{4}-/.test(path));
const EXAMPLES = filesBelow("examples", ".mjs");

interface Block {
  readonly language: string;
  readonly text: string;
}

function blocksOf(markdown: string): Block[] {
  return [...markdown.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language = "", text = ""]) => ({ language, text }));
}

const withoutBlocks = (markdown: string): string => markdown.replace(/^```.*?^```$/gms, "");
const inlineCode = (markdown: string): string[] =>
  [...withoutBlocks(markdown).matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => code);

/** Everything on a page that a reader could type: inline code and the lines of blocks. */
function codeLines(path: string): string[] {
  const page = read(path);
  return [...inlineCode(page), ...blocksOf(page).flatMap((block) => block.text.split("\n"))];
}

describe("links", () => {
  /** A heading's anchor as GitHub makes it. */
  const anchorOf = (heading: string): string =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-");
  const anchorsOf = (path: string): string[] =>
    [...withoutBlocks(read(path)).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => anchorOf(heading));

  test.each(PAGES)("of %s lead somewhere", (page) => {
    const links = [...withoutBlocks(read(page)).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = ""]) => link);
    const broken = links.filter((link) => {
      if (/^https?:/.test(link)) return false;
      const [path = "", anchor] = link.split("#");
      const goal = path === "" ? page : join(dirname(page), path);
      if (!existsSync(join(ROOT, goal))) return true;
      return anchor !== undefined && !anchorsOf(goal).includes(anchor);
    });
    expect(broken).toEqual([]);
  });

  test("reach every page of the guide, every decision and every example from their index", () => {
    const indexed = (index: string, files: readonly string[]): string[] =>
      files.filter((file) => !read(index).includes(`](${relative(dirname(index), file).split(sep).join("/")})`));
    const guide = filesBelow("docs/guide", ".md").filter((path) => !path.endsWith("/README.md"));
    expect(indexed("docs/guide/README.md", guide)).toEqual([]);
    expect(indexed("docs/decisions/README.md", DECISIONS)).toEqual([]);
    expect(indexed("examples/README.md", EXAMPLES)).toEqual([]);
    expect(guide.filter((file) => !read("README.md").includes(`](${file})`))).toEqual([]);
  });
});

describe("files", () => {
  test.each(["ARCHITECTURE.md", "CONTRIBUTING.md", ...filesBelow("docs/guide", ".md")])(
    "that %s names exist",
    (page) => {
      const paths = inlineCode(read(page)).filter((code) =>
        /^(src|test|docs|scripts|examples|bench)\/[\w./-]+$/.test(code),
      );
      expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    },
  );
});

describe("commands and options", () => {
  const commands = new Map<string, Command>(
    createProgram({ terminal: fakeTerminal(), exitCode: 0 }).commands.map((command) => [command.name(), command]),
  );
  const optionsOf = (command: Command): string[] => [
    "--help",
    ...command.options.flatMap(({ long, short, hidden }) => (hidden ? [] : [long ?? "", short ?? ""])),
    ...command.commands.flatMap(optionsOf),
  ];
  const known = new Set(["help", ...commands.keys()]);
  const anyOption = new Set(["--version", ...[...commands.values()].flatMap(optionsOf)]);

  test("the table of README is the list of commands", () => {
    const named = [...read("README.md").matchAll(/^\| `polygateway (\w+)`\s+\|/gm)].map(([, name]) => name);
    expect(named.sort()).toEqual([...commands.keys()].sort());
  });

  test.each(PAGES)("that %s names exist", (page) => {
    const unknown: string[] = [];
    for (const line of codeLines(page)) {
      const code = line.replace(/\s#.*$/, "");
      const called = [...code.matchAll(/(?:^|[\s|])(?:polygateway|pgw) ([a-z]+)/g)].map(([, name = ""]) => name);
      unknown.push(...called.filter((name) => !known.has(name)));
      // Other programs have options of their own.
      if (/(?:^|\s)(?:npm|node|git|vitest|redis-server)\s/.test(code)) continue;
      const command = called.length === 1 ? commands.get(called[0] ?? "") : undefined;
      const allowed = command === undefined ? anyOption : new Set(optionsOf(command));
      const options = [...code.matchAll(/(?:^|\s)(--[a-z][a-z0-9-]+)/g)].map(([, option = ""]) => option);
      unknown.push(...options.filter((option) => !allowed.has(option)));
    }
    expect(unknown).toEqual([]);
  });
});

describe("names", () => {
  const modules: Readonly<Record<string, object>> = {
    polygateway: everyone,
    "polygateway/postgres": postgres,
    "polygateway/redis": redis,
    "polygateway/sqlite": sqlite,
    "polygateway/testing": testing,
  };
  const publicText = read("src/index.ts") + read("src/testing/index.ts");

  test.each([...PAGES, ...EXAMPLES])("that %s imports are exported", (path) => {
    const text = path.endsWith(".md")
      ? blocksOf(read(path))
          .map((block) => block.text)
          .join("\n")
      : read(path);
    const missing: string[] = [];
    for (const [, names = "", specifier = ""] of text.matchAll(/import \{([^}]*)\} from "(polygateway[^"]*)"/g)) {
      const module = modules[specifier];
      for (const name of names.split(",").map((part) => part.trim())) {
        if (name !== "" && !(module !== undefined && name in module)) missing.push(`${name} of ${specifier}`);
      }
    }
    for (const [, name = ""] of text.matchAll(/import\("polygateway"\)\.(\w+)/g)) {
      if (!new RegExp(`\\b${name}\\b`).test(publicText)) missing.push(name);
    }
    expect(missing).toEqual([]);
  });

  test.each(["README.md", ...filesBelow("docs/guide", ".md")])("of classes that %s mentions are exported", (page) => {
    const classes = inlineCode(read(page)).filter((code) =>
      /^[A-Z]\w+(Error|Exhausted|Client|Governor|Recorder|Table|Kernel)$/.test(code),
    );
    const exported = Object.assign({}, ...Object.values(modules)) as object;
    expect(classes.filter((name) => !(name in exported))).toEqual([]);
  });

  test("of configuration keys exist", () => {
    const configuration = read("docs/configuration.md");
    const unknown = PAGES.flatMap(codeLines)
      .flatMap((code) => code.match(/\b(?:LLM__[A-Z0-9_]+|PGW_[A-Z0-9_]+)\b/g) ?? [])
      .map((key) => key.replace(/^LLM__[A-Z]+__\d+__/, "{SCOPE}__{PROVIDER}__{N}__").replace(/^LLM__/, "{SCOPE}__"))
      // Of the tests, not of the library.
      .filter((key) => !["PGW_INSTALL_SERVICES", "PGW_TEST_RUNS", "PGW_TEST_SEED", "PGW_TEST_TEXTS"].includes(key))
      .filter((key) => !configuration.includes(`\`${key}\``) && !configuration.includes(`\`${key}=`));
    expect([...new Set(unknown)]).toEqual([]);
  });
});

test("docs/guide/testing.md names every option of the simulated provider", () => {
  const page = read("docs/guide/testing.md");
  const paths = optionPaths(PROVIDER_OPTION_NAMES);
  expect(paths.filter((path) => !page.includes(`\`${path}\``))).toEqual([]);
});

test.each([
  ["MonkeyOCR", MONKEY_OCR_OPTION_NAMES],
  ["MinerU", MINERU_OPTION_NAMES],
  ["PaddleX", PADDLE_OPTION_NAMES],
  ["Mistral", MISTRAL_OCR_OPTION_NAMES],
])("docs/guide/testing.md names every option of the simulated %s server", (_, names) => {
  const page = read("docs/guide/testing.md");
  expect(optionPaths(names).filter((path) => !page.includes(`\`${path}\``))).toEqual([]);
});

describe("numbers", () => {
  test("one version everywhere", () => {
    expect(VERSION).toBe(manifest.version);
    expect(/^## (\d\S*)/m.exec(read("CHANGELOG.md"))?.[1]).toBe(manifest.version);
    const tarballs = read("README.md").match(/polygateway-\d[\w.-]*\.tgz/g) ?? [];
    expect(new Set(tarballs)).toEqual(new Set([`polygateway-${manifest.version}.tgz`]));
  });

  test("one oldest Node", () => {
    const oldest = manifest.engines.node.replace(">=", "");
    for (const page of ["README.md", "CONTRIBUTING.md"]) {
      expect(/Node\.js (\d+\.\d+) or newer/.exec(read(page))?.[1]).toBe(oldest);
    }
  });

  test("as many demo questions as README says", () => {
    const questions = read("assets/demo-questions.jsonl").trimEnd().split("\n").length;
    expect(read("README.md")).toContain(`${questions} questions over four simulated sources`);
  });

  test("the quick start is short", () => {
    const [program] = blocksOf(read("README.md")).filter((block) => block.language === "js");
    expect(program?.text.trimEnd().split("\n").length).toBeLessThanOrEqual(12);
  });
});

describe("decisions", () => {
  test("are numbered without a gap", () => {
    const numbers = DECISIONS.map((path) => Number(/\/(\d{4})-/.exec(path)?.[1]));
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
  });

  test.each(DECISIONS)("%s is short, complete and about files that exist", (path) => {
    const text = read(path);
    expect(text.trimEnd().split("\n").length).toBeLessThanOrEqual(25);
    expect(text).toMatch(
      /^# \d{4}\. .+\n\n## Context\n[\s\S]+\n## Decision\n[\s\S]+\n## Consequence\n[\s\S]+\nConcerns: /,
    );
    const concerned = inlineCode(text.slice(text.indexOf("Concerns: ")));
    expect(concerned.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  });

  test("docs/benchmarks.md has the place where the table goes", () => {
    expect(read("docs/benchmarks.md")).toMatch(/<!-- table -->[\s\S]*<!-- \/table -->/);
  });
});

describe("programs", () => {
  const MOCK = "http://127.0.0.1:8787";
  let folder: string;
  let provider: SimulatedProvider;

  /** A project of a reader: the package installed, nothing of this environment but what a program needs. */
  beforeAll(async () => {
    if (!existsSync(join(ROOT, "dist", "index.js"))) throw new Error("dist/ is missing: `npm test` builds it");
    folder = mkdtempSync(join(tmpdir(), "polygateway-docs-"));
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(ROOT, join(folder, "node_modules", "polygateway"), "junction");
    // What README tells a reader to install.
    symlinkSync(join(ROOT, "node_modules", "zod"), join(folder, "node_modules", "zod"), "junction");
    provider = await startSimulatedProvider();
  });

  afterAll(async () => {
    await provider.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  function run(program: string, name: string): Promise<{ code: number | null; output: string }> {
    const file = join(folder, name);
    writeFileSync(file, program.replaceAll(MOCK, provider.origin));
    return new Promise((resolve, reject) => {
      const child = spawn(process.execPath, [file], {
        cwd: folder,
        env: { PATH: process.env.PATH, HOME: folder, TMPDIR: folder },
        stdio: ["ignore", "pipe", "pipe"],
      });
      let output = "";
      child.stdout.on("data", (chunk) => {
        output += chunk;
      });
      child.stderr.on("data", (chunk) => {
        output += chunk;
      });
      child.on("error", reject);
      child.on("close", (code) => resolve({ code, output }));
    });
  }

  async function mustRun(program: string, name: string): Promise<void> {
    const { code, output } = await run(program, name);
    if (code !== 0) throw new Error(`it ended with ${code}:\n${output}`);
    expect(output).not.toBe("");
  }

  const isProgram = ({ language, text }: Block): boolean => language === "js" && /from "polygateway/.test(text);
  const snippets = PAGES.flatMap((page) =>
    blocksOf(read(page))
      .filter(isProgram)
      .map((block, index) => [`${page} #${index + 1}`, block.text] as const),
  );

  test("are there, so that the following tests can't pass by finding nothing", () => {
    expect(snippets.length).toBeGreaterThanOrEqual(7);
    expect(EXAMPLES.length).toBeGreaterThanOrEqual(7);
  });

  test.each(snippets)("%s runs", (name, program) => mustRun(program, `${name.replace(/\W+/g, "-")}.mjs`));

  test.each(EXAMPLES)("%s runs", (path) => mustRun(read(path), path.replace("examples/", "example-")));
});

test("docs/providers.md shows whole profiles that are accepted as they are", () => {
  const section = read("docs/providers.md").split("\n## Two profiles in full\n")[1] ?? "";
  const shown = blocksOf(section).map(({ text }) => JSON.parse(text) as everyone.ProviderProfile);
  expect(shown).toEqual([everyone.profiles.glm, everyone.profiles.vllm]);
  for (const profile of shown) expect([profileProblems(profile), isWholeProfile({ ...profile })]).toEqual([[], true]);
});

test("docs/providers.md explains a field only from its docstring", () => {
  const source = read("src/domain/profile.ts").replace("/** Smallest number of tokens. */", "");
  expect(() => providersPage(everyone.profiles, source)).toThrow("ThinkingBudget.min");
});

test("docs/providers.md is what the profiles say (npm run docs:generate)", () => {
  const page = read("docs/providers.md");
  expect(page).toBe(providersPage(everyone.profiles, read("src/domain/profile.ts")));
  for (const profile of Object.values(everyone.profiles)) {
    expect(page).toContain(`## ${profile.name}\n`);
    for (const code of Object.keys(profile.errorCodes)) expect(page).toContain(`\`${code}\``);
    for (const field of profile.unconfirmed) expect(page).toContain(`\`${field}\``);
  }
});
