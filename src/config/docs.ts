import { FILE_SECTION } from "./docs-file.js";
import type { Field } from "./field.js";
import { EMBEDDING_FIELDS, FLAT_NAMES, GROUPS, OCR_FIELDS, SCOPE_FIELDS } from "./schema.js";
import { type LaterField, PROCESS_LATER, SCOPE_LATER, SOURCE_LATER } from "./schema-later.js";
import { PROCESS_FIELDS } from "./schema-process.js";
import { SOURCE_FIELDS } from "./schema-source.js";
import { accepted } from "./values.js";

/** docs/configuration.md and .env.example as text, made from the tables (spec 07). A test compares them with the files. */
interface Row {
  readonly field: Field;
  /** Name in code, where there is one. */
  readonly option?: string;
  readonly later?: LaterField;
}

interface Section {
  readonly title: string;
  readonly intro: string;
  /** What stands before the field's own name. */
  readonly prefix: string;
  readonly rows: readonly Row[];
}

function rows(fields: Readonly<Record<string, Field>>, owner = ""): Row[] {
  return Object.entries(fields)
    .filter(([, field]) => field.env !== undefined)
    .map(([option, field]) => ({ field, option: `${owner}${option}` }));
}

function laterRows(list: readonly LaterField[] | undefined): Row[] {
  return (list ?? []).map((later) => ({ field: later.field, later }));
}

const GROUP_INTROS: Readonly<Record<string, readonly [string, string]>> = {
  RETRY: ["Retries", "How often and how fast a call is tried again."],
  BREAKER: ["Circuit breaker", "When a failing source is left alone, and for how long."],
  BACKPRESSURE: ["Waiting", "What a call does when nothing is free."],
  SCHEDULING: [
    "Scheduling",
    "The adaptive rules, each by its name. With all of them off, limits, breaker and retries work as configured and nothing is learned.",
  ],
  CACHE: ["Answer cache", "Which answers are given again; see [the guide](guide/cache.md)."],
  GLOBAL: [
    "Limits of the whole scope",
    "Over all its sources together; a source's own limit above them can't be used up.",
  ],
};

function sections(): Section[] {
  const groups = Object.entries(GROUPS).map(([group, { option, fields }]): Section => {
    const [title, intro] = GROUP_INTROS[group] ?? [group, ""];
    const own = [...rows(fields, `${option}.`), ...laterRows(SCOPE_LATER[group])];
    return { title, intro, prefix: `{SCOPE}__${group}__`, rows: own };
  });
  return [
    {
      title: "Sources",
      intro:
        "One endpoint + credential + model each. `{PROVIDER}` is a word of yours, `{N}` a number; the source is then called `{provider}_{n}`.",
      prefix: "{SCOPE}__{PROVIDER}__{N}__",
      rows: [...rows(SOURCE_FIELDS), ...laterRows(SOURCE_LATER)],
    },
    {
      title: "Scope",
      intro: "A scope is a named group of sources that is governed together, such as `LLM`.",
      prefix: "{SCOPE}__",
      rows: rows(SCOPE_FIELDS),
    },
    ...groups,
    {
      title: "Embeddings",
      intro: "Read by `EmbeddingClient` alone; a scope with a `BATCH_SIZE` is one for embeddings.",
      prefix: "{SCOPE}__",
      rows: rows(EMBEDDING_FIELDS),
    },
    {
      title: "OCR",
      intro: "Read by `OcrClient` alone; a scope with a `TRANSPORT` of an OCR server, or `vlm`, is one for OCR.",
      prefix: "{SCOPE}__",
      rows: rows(OCR_FIELDS),
    },
    {
      title: "Process wide",
      intro: "Whatever the scope.",
      prefix: "",
      rows: [...rows(PROCESS_FIELDS, ""), ...laterRows(PROCESS_LATER)],
    },
  ];
}

const DURATION_MS = 1_000;

/** A default as the environment writes it; "" = none. */
function defaultOf({ fallback, kind }: Field): string {
  if (typeof fallback === "boolean") return fallback ? "on" : "off";
  if (typeof fallback === "number") return String(kind === "duration" ? fallback / DURATION_MS : fallback);
  return typeof fallback === "string" ? fallback : "";
}

function shownDefault(field: Field): string {
  if (field.required) return "**required**";
  return field.defaultText ?? (defaultOf(field) || '""');
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}

const PROCESS_CODE: Readonly<Record<string, string>> = {
  leaseTtlMs: "leaseTtlMs",
  leaseRenewal: "leaseRenewal",
  capture: "telemetryOptions.capture",
  durability: "telemetryOptions.durability",
  journal: "telemetryOptions.journal",
  statusPath: "statusPath",
  limiterBackend: "limiterBackend",
  redisUrl: "redis.url",
  redisTimeoutMs: "redis.timeoutMs",
};

/** How an option is called in code and, where that differs, in a file. */
function optionNames(section: Section, row: Row): string[] {
  const quote = (option: string | undefined): string => (option === undefined ? "–" : `\`${option}\``);
  if (section.prefix !== "") return [quote(row.option)];
  return [quote(PROCESS_CODE[row.option ?? ""]), quote(row.option && `process.${row.option}`)];
}

function tableRow(section: Section, row: Row): string {
  const { field, later } = row;
  const name = `\`${section.prefix}${field.env}\``;
  const place = section.prefix === "" ? "process." : "";
  const inFile = row.option === undefined ? "" : `, in a file \`${place}${row.option}File\`,`;
  const file = field.secret ? ` Or \`${field.env}_FILE\`${inFile} = path of a file that holds it.` : "";
  const today = later === undefined ? "" : ` Today: ${later.today}.`;
  const cells = [
    name,
    ...optionNames(section, row),
    accepted(field, "seconds"),
    shownDefault(field),
    `${field.text}.${file}${today}`,
  ];
  return `| ${cells.map(cell).join(" | ")} |`;
}

function table(section: Section): string {
  const options = section.prefix === "" ? ["in code", "in a file"] : ["in code and in a file"];
  const titles = ["key", ...options, "takes", "default", "meaning"];
  const head = `| ${titles.join(" | ")} |\n|${"---|".repeat(titles.length)}`;
  return `## ${section.title}\n\n${section.intro}\n\n${head}\n${section.rows.map((row) => tableRow(section, row)).join("\n")}`;
}

const INTRO = `<!-- Generated from src/config/schema.ts by \`npm run docs:generate\`; edit there. -->
# Configuration

Three ways in, with the same rules and the same defaults:

- **Environment and \`.env\`**: the names below. The real environment wins over \`.env\`. Commands of \`polygateway\` read both; in code it is \`GatewayClient.fromEnv("LLM")\`, with \`{ dotenvPath: ".env" }\` when the file is wanted too.
- **A file**: \`polygateway.yaml\` or JSON, [below](#a-configuration-file). In code it is \`GatewayClient.fromConfig("polygateway.yaml", "LLM")\`.
- **Code**: \`new GatewayClient({ scope: "LLM", sources: [{ name: "qwen_1", baseUrl: "…", apiKey: "…", model: "…" }] })\`. Same tree, camelCase, lengths of time in milliseconds (\`timeoutMs: 120_000\` is \`TIMEOUT_S=120\`).

The smallest \`.env\` that works:

\`\`\`sh
LLM__QWEN__1__BASE_URL=http://127.0.0.1:8080/v1
LLM__QWEN__1__API_KEY=sk-your-key
LLM__QWEN__1__MODEL=qwen3-8b
\`\`\`

\`polygateway check\` shows what is in force and everything that is wrong, all at once; \`polygateway check --live\` also asks each source one tiny question. \`polygateway init\` writes a first \`.env\` or \`polygateway.yaml\`. \`.env.example\` has every key with its default.

- Nothing is guessed where it decides correctness: endpoint, credential and model have no default.
- An unknown key of a known scope is an error, so a misspelt limit can't go unnoticed. So is an empty value.
- Secrets are never printed: messages show \`sk-…last4\`. \`*_FILE\` reads a secret from a file (one line end at its end is dropped).
- 0 switches a limit off. Numbers must be finite and in range.

## Rules between settings

| rule | because |
|---|---|
| \`TTFT_TIMEOUT_S\` and \`INTER_TOKEN_TIMEOUT_S\` ≤ \`TIMEOUT_S\` | a longer one could never fire; their defaults shrink to fit |
| \`BACKPRESSURE__STALL_WINDOW_S\` ≥ every \`TTFT_TIMEOUT_S\` | else a call gives up while its source may still answer |
| \`EST_TOKENS\` ≤ \`TPM\` and ≤ \`GLOBAL__TPM\` | else no call is ever admitted |
| \`RETRY__BACKOFF_MAX_S\` ≥ \`RETRY__BACKOFF_BASE_S\` | |
| \`PGW_LEASE_RENEWAL=off\` ⇒ \`PGW_LEASE_TTL_S\` ≥ every \`TIMEOUT_S\` | else a permit returns while its call still runs |
| \`redis\` anywhere ⇒ \`REDIS_URL\` | in a file \`process.redisUrl\` |
| \`PGW_LIMITER_BACKEND\` = \`PGW_BREAKER_BACKEND\` | both are decided in one step |
| a source's limit ≤ the scope's | warning only |
| at least one source | all of them \`DISABLED\` is allowed: calls then end as \`no_sources\` |

\`STALL_WINDOW_S\` and \`TIMEOUT_S\` are not coupled.`;

function flatTable(): string {
  const list = Object.entries(FLAT_NAMES).map(([name, { text }]) => `| \`{SCOPE}_${name}\` | ${text} |`);
  return `## Flat names\n\nRead for configurations that already have them. The structured name wins; \`check\` reports a conflict.\n\n| key | sets |\n|---|---|\n${list.join("\n")}`;
}

/** The text of docs/configuration.md. */
export function configurationPage(): string {
  return `${[INTRO, FILE_SECTION, ...sections().map(table), flatTable()].join("\n\n")}\n`;
}

const EXAMPLE_SCOPE = "LLM";
const EXAMPLE_SOURCE = "QWEN__1";
const EXAMPLE_VALUES: Readonly<Record<string, string>> = {
  BASE_URL: "http://127.0.0.1:8080/v1",
  API_KEY: "sk-your-key",
  MODEL: "qwen3-8b",
};

const EXAMPLE_INTRO = `# Copy to .env and fill in. Every key is here with its default; docs/configuration.md explains them.
# Generated from src/config/schema.ts by \`npm run docs:generate\`; edit there.`;

function exampleLine(section: Section, { field, later }: Row): string {
  const prefix = section.prefix.replace("{SCOPE}", EXAMPLE_SCOPE).replace("{PROVIDER}__{N}", EXAMPLE_SOURCE);
  const key = `${prefix}${field.env}`;
  const about = `# ${field.text} (${accepted(field, "seconds")})${later ? `; today: ${later.today}` : ""}`;
  const value = EXAMPLE_VALUES[field.env ?? ""];
  if (field.required && value !== undefined) return `${about}\n${key}=${value}`;
  return `${about}\n# ${key}=${field.required ? "" : defaultOf(field)}`;
}

/** The text of .env.example. */
export function envExample(): string {
  const blocks = sections().map((section) => {
    const lines = section.rows.map((row) => exampleLine(section, row));
    return `# ── ${section.title} ──\n${lines.join("\n")}`;
  });
  return `${[EXAMPLE_INTRO, ...blocks].join("\n\n")}\n`;
}
