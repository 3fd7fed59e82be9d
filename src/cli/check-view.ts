import type { ClientKind } from "../config/client-kind.js";
import type { Field } from "../config/field.js";
import type { ConfigNote } from "../config/invariants.js";
import { SCHEDULING_FIELDS } from "../config/schema-scheduling.js";
import type { EmbeddingConfig } from "../domain/embedding.js";
import type { OcrImage } from "../domain/ocr.js";
import { ocrIncapability, ocrReaderOf } from "../domain/ocr-ability.js";
import type { SchedulingConfig } from "../domain/scope.js";
import type { LimitConfig, SourceConfig } from "../domain/source.js";
import { planThinking } from "../domain/thinking.js";
import type { ConfigProblem } from "../errors.js";
import { profiles } from "../transports/openai/profiles.js";
import { describePace, requestPace } from "./check-limits.js";
import type { LiveAnswer } from "./check-live.js";
import type { CheckedScope, CheckReport } from "./check-report.js";
import { mostEmbedRequests } from "./embed-requests.js";
import { formatCount, formatDuration, plural } from "./format.js";
import { tableLines } from "./table.js";
import { printable, type Style } from "./terminal.js";

export function configurationLines(report: CheckReport, style: Style): string[] {
  // A broken scope has no values in force: showing defaults in their place would mislead.
  const good = report.scopes.filter(({ inspection }) => inspection.problems.length === 0);
  return [
    `Node ${report.nodeVersion} · ${originText(report)}`,
    telemetryLine(report),
    ...good.flatMap((scope) => ["", ...scopeLines(scope, style)]),
    "",
  ];
}

function originText({ configFile, envFile }: CheckReport): string {
  const environment = `environment${envFile === null ? "" : ` and ${printable(envFile)}`}`;
  return configFile === null ? environment : `${printable(configFile)}, its \${…} filled from the ${environment}`;
}

function telemetryLine({ scopes, sqlite }: CheckReport): string {
  const settings = scopes[0]?.inspection.process;
  const backends = settings?.telemetryBackends ?? ["sqlite"];
  if (settings === undefined || backends.length === 0) return "Telemetry: none";
  const stores = backends.map((backend) => {
    if (backend === "jsonl") return `JSONL at ${printable(settings.jsonlPath)}`;
    if (backend === "postgres") return `PostgreSQL at ${printable(String(settings.postgresDsn))}`;
    if (sqlite.ok) return `SQLite at ${printable(settings.sqlitePath)}`;
    return `SQLite is not available here (${sqlite.reason}), so it falls back to JSONL; ${sqlite.remedy}`;
  });
  const chosen =
    settings.telemetryBackends === undefined ? " (default of the command line; the library's is none)" : "";
  return `Telemetry: ${stores.join(", ")}${chosen}`;
}

function scopeLines({ inspection, config, cache, embedding }: CheckedScope, style: Style): string[] {
  const { retry, breaker, backpressure } = config;
  return [
    style.bold(`Scope ${printable(config.scope)}`),
    ...indent(sourceTable(inspection.client, config.sources)),
    ...(embedding === null ? [] : [embeddingLine(embedding)]),
    ...limitLines("all sources", config.global, false),
    ...config.sources.flatMap((source) => limitLines(source.name, source, true)),
    ...config.sources.flatMap(thinkingLines),
    ...(config.sources.length === 0 ? [] : [`  selector: ${config.selector}`, schedulingLine(config.scheduling)]),
    `  calls: failover ${config.failover}, ${plural(retry.maxAttempts, "attempt")}, ${retry.maxRateLimited === 0 ? "any number of rate limits" : plural(retry.maxRateLimited, "rate limit")}, backoff ${formatDuration(retry.backoffBaseMs)} to ${formatDuration(retry.backoffMaxMs)}, deadline ${config.deadlineMs === undefined ? "none" : formatDuration(config.deadlineMs)}`,
    `  breaker: opens after ${breaker.failThreshold} failures in a row or ${breaker.failRate * 100} % of at least ${breaker.minSamples} in ${formatDuration(breaker.windowMs)}, for ${formatDuration(breaker.cooldownMs)} to ${formatDuration(breaker.cooldownMaxMs)}`,
    ...(embedding === null ? cacheLines(cache) : []),
    `  waiting: full quota ${backpressure.quotaFull}, open breakers ${backpressure.whenOpen}, stall window ${formatDuration(backpressure.stallWindowMs)}`,
  ];
}

/** Nothing when answers are neither kept nor shared. */
function cacheLines({ backend, ttlMs, maxBytes, namespace, salt, coalesce }: CheckedScope["cache"]): string[] {
  const isKept = backend !== "none";
  if (!isKept && !coalesce) return [];
  const bound = backend === "memory" ? [`at most ${plural(maxBytes, "byte")}`] : [];
  const kept = isKept ? [`backend ${backend}`, `ttl ${formatDuration(ttlMs)}`, ...bound] : ["backend none"];
  const isSet = (text: string): string => (text === "" ? "no" : "yes");
  const parts = [
    ...kept,
    `namespace ${isSet(namespace)}`,
    `salt ${isSet(salt)}`,
    `coalesce ${coalesce ? "on" : "off"}`,
  ];
  return [`  cache: ${parts.join(", ")}`];
}

function embeddingLine({ batchSize, expectedDim, normalize, concurrency }: EmbeddingConfig): string {
  const width = expectedDim === undefined ? "any width" : `width ${formatCount(expectedDim)}`;
  const atOnce = `${plural(concurrency, "request")} of one embed() at once`;
  const command = `of \`polygateway embed\` as many as the limits allow, at most ${mostEmbedRequests(batchSize)}`;
  return `  embeddings: ${plural(batchSize, "text")} a request, ${atOnce} (${command}), ${width}${normalize ? ", scaled to length 1" : ""}`;
}

/** Which adaptive rules are in force, by their names in the environment. */
function schedulingLine(scheduling: SchedulingConfig): string {
  const { prefetchMs, priceWeight } = scheduling;
  const rules = Object.entries<Field>(SCHEDULING_FIELDS).filter(([, { kind }]) => kind === "flag");
  const named = (wanted: boolean): string => {
    const names = rules.filter(([rule]) => scheduling[rule as keyof SchedulingConfig] === wanted);
    return names.map(([, { env = "" }]) => env.toLowerCase()).join(" ") || "none";
  };
  const prefetch = prefetchMs === 0 ? "" : `, prefetch ${formatDuration(prefetchMs)}`;
  const price = priceWeight === 0 ? "" : `, price weight ${priceWeight}`;
  return `  scheduling: on ${named(true)}, off ${named(false)}${prefetch}${price}`;
}

type SourceColumn = readonly [title: string, text: (source: SourceConfig) => string];

const ADDRESS_COLUMNS: readonly SourceColumn[] = [
  ["source", ({ name }) => name],
  ["model", ({ model }) => printable(model)],
  ["address", ({ baseUrl }) => printable(baseUrl)],
  ["key", ({ apiKey }) => (apiKey.reveal() === "none" ? "none" : String(apiKey))],
];
const PROFILE: SourceColumn = ["profile", profileText];
const TIMEOUT: SourceColumn = ["timeout", ({ timeoutMs }) => formatDuration(timeoutMs)];

/** Only answers that come token by token have a first one, and pauses between them. */
const SOURCE_COLUMNS: Readonly<Record<ClientKind, readonly SourceColumn[]>> = {
  chat: [
    ...ADDRESS_COLUMNS,
    PROFILE,
    TIMEOUT,
    ["first token", ({ ttftTimeoutMs }) => formatDuration(ttftTimeoutMs)],
    ["idle", ({ interTokenTimeoutMs }) => formatDuration(interTokenTimeoutMs)],
  ],
  embedding: [...ADDRESS_COLUMNS, PROFILE, TIMEOUT],
  ocr: [...ADDRESS_COLUMNS, ["transport", transportText], ["reads", abilityText], TIMEOUT],
};

function sourceTable(kind: ClientKind, sources: readonly SourceConfig[]): string[] {
  const columns = SOURCE_COLUMNS[kind];
  const rows = sources.map((source) => columns.map(([, text]) => text(source)));
  return tableLines(
    columns.map(([title]) => ({ title })),
    rows,
  );
}

function transportText(source: SourceConfig): string {
  const { transport } = source;
  return transport === "vlm" ? `vlm (${ocrReaderOf(source)}, ${profileText(source)})` : transport;
}

/** Of a picture like any other. */
const A_PICTURE: OcrImage = { bytes: Buffer.alloc(0), mediaType: "image/png", size: { width: 1, height: 1 } };

function abilityText(source: SourceConfig): string {
  return ocrIncapability(source, "ocr_layout", A_PICTURE) === null ? "text, layout" : "text alone";
}

/** A profile that isn't the built-in one of its name says so. */
function profileText({ profile }: SourceConfig): string {
  const name = printable(profile.name);
  return Object.values(profiles).includes(profile) ? name : `${name} (your own)`;
}

/** What a source's default of thinking puts on the wire. */
function thinkingLines(source: SourceConfig): string[] {
  if (source.thinking === undefined) return [];
  const plan = planThinking(source, { thinking: source.thinking });
  const fields = "fields" in plan ? JSON.stringify(plan.fields) : plan.problem;
  const sent = fields === "{}" ? "nothing needs to be sent" : `sends ${fields}`;
  return [`  thinking of ${printable(source.name)}: ${JSON.stringify(source.thinking)}, ${printable(sent)}`];
}

/** The limits of one owner and what they mean; nothing for a scope without any. */
function limitLines(owner: string, limits: LimitConfig, always: boolean): string[] {
  const { maxConcurrency, rpm, tpm } = limits;
  const pace = requestPace(limits);
  const parts = [
    maxConcurrency > 0 ? `${formatCount(maxConcurrency)} at once` : "",
    pace ? `${plural(rpm, "request")}/min (${describePace(pace, limits.strict)})` : "",
    tpm > 0 ? `${plural(tpm, "token")}/min` : "",
  ].filter((part) => part !== "");
  if (parts.length === 0) return always ? [`  limits of ${owner}: none`] : [];
  const rule =
    pace || tpm > 0
      ? `, rule ${limits.limitRule}${limits.limitRule === "smooth" ? (limits.strict ? " strict" : " not strict") : ""}`
      : "";
  return [`  limits of ${owner}: ${parts.join(", ")}${rule}`];
}

function indent(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`);
}

export function noteLines(notes: readonly ConfigNote[], style: Style): string[] {
  const lines = notes.map(({ key, level, text }) => {
    const mark = level === "warning" ? style.yellow("warning") : style.dim("note");
    return `${mark}  ${printable(key)}: ${printable(text)}`;
  });
  return lines.length === 0 ? [] : [...lines, ""];
}

export function problemLines(problems: readonly ConfigProblem[], style: Style): string[] {
  return problems.flatMap(({ key, value, problem, remedy }) => [
    `${style.red("✗")} ${style.bold(printable(key))}${value === undefined ? "" : ` = ${printable(value)}`}`,
    `    ${printable(problem)}. ${printable(remedy)}`,
  ]);
}

export function liveLines(answers: ReadonlyMap<string, readonly LiveAnswer[]>, style: Style): string[] {
  return [...answers].flatMap(([scope, list]) => [
    style.bold(`Answers of scope ${printable(scope)}`),
    ...list.map(
      (answer) =>
        `  ${answer.ok ? style.green("✓") : style.red("✗")} ${answer.source}: ${printable(answerText(answer))}`,
    ),
    "",
  ]);
}

function answerText({ ok, modelReported, latencyMs, remark }: LiveAnswer): string {
  if (!ok) return remark ?? "no answer";
  if (remark !== null) return remark;
  return `${modelReported ?? "a model that doesn't give its name"} answered in ${formatDuration(latencyMs ?? 0)}`;
}
