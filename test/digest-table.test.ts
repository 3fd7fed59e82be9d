import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  AllSourcesExhausted,
  type CallRecord,
  type GatewayOptions,
  type PolyGatewayError,
  RequestRejectedError,
  SourceDeadError,
  type SourceSnapshot,
  TransientError,
} from "../src/index.js";
import { SqliteRecorder } from "../src/telemetry/sqlite.js";
import { type ResponseScript, type SimulatedProvider, startSimulatedProvider } from "../src/testing/index.js";
import { createMemoryRecorder } from "../src/testing/memory-recorder.js";
import { attemptErrorIn, until } from "./support/calls.js";
import { sourceOf } from "./support/case-client.js";
import { failureOf } from "./support/embedding-server.js";
import { LOOP_OPERATIONS, type LoopOperation, type OperationClient, ocrOperations } from "./support/operations.js";

/**
 * The digest rules and the class table of spec 02 §1, for every HTTP status and every kind of call: class, code, what
 * governance made of it, message, `bodyText`, and the row that tells of it.
 */

const SOURCE = "s_1";

/** Written down here a second time, from the specification. */
function expectedDigest(body: string): string {
  const text = body.replace(/\s+/g, " ").trim();
  if (text.length <= 2_048) return text;
  return `${text.slice(0, 1_400)}…(${text.length - 2_000} chars omitted)…${text.slice(-600)}`;
}

type Treatment = "rejected" | "counted" | "limited" | "dead";

interface Verdict {
  readonly treatment: Treatment;
  readonly code: string;
  readonly label: string;
}

const rejected: Verdict = { treatment: "rejected", code: "bad_request", label: "request rejected" };
const unpaid = (code: string): Verdict => ({ treatment: "dead", code, label: "credential rejected or unpaid" });
const missing = (code: string): Verdict => ({ treatment: "dead", code, label: "model or endpoint not found" });
const counted = (code: string): Verdict => ({ treatment: "counted", code, label: "transient failure" });
const limited = (code: string): Verdict => ({ treatment: "limited", code, label: "rate limited" });

const NO_ADDRESS: Verdict = {
  treatment: "dead",
  code: "endpoint_not_found",
  label: "model or endpoint not found (check BASE_URL)",
};

const TABLE: Readonly<Record<number, Verdict>> = {
  400: rejected,
  401: unpaid("auth"),
  402: unpaid("quota"),
  403: unpaid("auth"),
  404: missing("model_not_found"),
  405: missing("model_not_found"),
  406: rejected,
  408: counted("upstream_error"),
  409: counted("upstream_error"),
  410: missing("model_not_found"),
  413: rejected,
  422: rejected,
  424: rejected,
  425: counted("upstream_error"),
  426: rejected,
  428: rejected,
  429: limited("rate_limit"),
  451: rejected,
  498: counted("overloaded"),
  499: counted("upstream_error"),
  500: counted("upstream_error"),
  503: counted("overloaded"),
  520: counted("upstream_error"),
  529: limited("overloaded"),
  530: counted("upstream_error"),
};

function verdictOf(status: number, operation: string): Verdict {
  const verdict = TABLE[status] ?? (status >= 500 ? counted("upstream_error") : rejected);
  // The table's OCR source is asked for no model: what isn't there is the address.
  return operation.startsWith("ocr_") && verdict.code === "model_not_found" ? NO_ADDRESS : verdict;
}

const CLASSES = {
  rejected: RequestRejectedError,
  counted: TransientError,
  limited: TransientError,
  dead: SourceDeadError,
} as const;
const ROW_OUTCOMES = {
  rejected: "rejected",
  counted: "transient",
  limited: "rate_limited",
  dead: "source_dead",
} as const;
const END_REASONS = { counted: "retry_exhausted", limited: "quota_exhausted", dead: "all_sources_dead" } as const;

/** What the breaker (threshold 1) and the cooldown made of one such answer. */
function expectGoverned(source: SourceSnapshot, treatment: Treatment): void {
  expect(source).toMatchObject({ inflight: 0, probeInFlight: false, dead: treatment === "dead" });
  expect(source.state).toBe(treatment === "dead" || treatment === "counted" ? "open" : "closed");
  if (treatment === "limited") expect(source.coolingMs).toBeGreaterThan(0);
  else expect(source.coolingMs).toBe(0);
}

interface Refused {
  readonly error: PolyGatewayError;
  readonly thrown: unknown;
  readonly source: SourceSnapshot;
  readonly rows: readonly CallRecord[];
}

let provider: SimulatedProvider;

beforeAll(async () => {
  provider = await startSimulatedProvider();
});

afterAll(() => provider.stop());

type Open = LoopOperation["open"];

function clientOf(open: Open, options: Partial<GatewayOptions>): OperationClient {
  return open({
    scope: "LLM",
    sources: [sourceOf(SOURCE, provider.baseUrl)],
    retry: { maxAttempts: 1 },
    breaker: { failThreshold: 1 },
    proxyEnv: {},
    ...options,
  });
}

async function refuse(open: Open, script: Partial<ResponseScript> & { readonly body?: string }): Promise<Refused> {
  const { body, ...rest } = script;
  const headers = { "content-type": "application/json", ...rest.headers };
  provider.script({ chunks: body === undefined ? [] : [{ utf8: body }], end: "close", ...rest, headers });
  const recorder = createMemoryRecorder();
  const client = clientOf(open, { telemetry: recorder });
  const thrown = await failureOf(client.call());
  const { sources } = await client.snapshot();
  await client.close();
  return { error: attemptErrorIn(thrown), thrown, source: sources[0]!, rows: recorder.rows };
}

/** OCR prefixes the operation (spec 02 §1). */
function nameOf(operation: string): string {
  return operation.startsWith("ocr_") ? `${SOURCE} ${operation}` : SOURCE;
}

function expectRefused(refused: Refused, verdict: Verdict, status: number, digest: string, operation: string): void {
  const { error, thrown, source, rows } = refused;
  const { treatment, code, label } = verdict;
  expect(error).toBeInstanceOf(CLASSES[treatment]);
  const message = `${nameOf(operation)} ${label}: ${status}${digest === "" ? "" : ` | ${digest}`}`;
  expect(error).toMatchObject({ code, statusCode: status, sourceName: SOURCE, bodyText: digest, message });
  expect(TransientError.isInstance(error) ? error.rateLimited : treatment === "limited").toBe(treatment === "limited");
  expectGoverned(source, treatment);
  expect(rows[0]).toMatchObject({ outcome: ROW_OUTCOMES[treatment], operation, statusCode: status, error: message });
  if (treatment === "rejected") {
    expect(thrown).toBe(error);
    expect(error.operation).toBe(operation);
    return;
  }
  expect(thrown).toBeInstanceOf(AllSourcesExhausted);
  expect(thrown).toMatchObject({ reason: END_REASONS[treatment], bodyText: "", operation, cause: error });
}

const apiError = (message: string, more: object = {}): string =>
  JSON.stringify({ error: { message, type: null, param: null, code: null, ...more } });

/** Longer than a digest, the human text first and the code last. */
const longError = (code: string): string =>
  `{"error":{"message":"the head of it","filler":"${"x".repeat(4_000)}","param":null,"code":"${code}"}}`;

const ROWS = [
  ...LOOP_OPERATIONS.map(({ kind, open }) => [kind, kind, open] as const),
  ...(["monkey-ocr", "mineru"] as const).flatMap((server) =>
    ocrOperations(server).map(({ kind, open }) => [`${kind} of ${server}`, kind, open] as const),
  ),
];

describe.each(ROWS)("%s", (_name, operation, open) => {
  it.each(Object.keys(TABLE).map(Number))("%i: class, code, governance, message and row", async (status) => {
    const body = apiError(`said   with\n${status}`);
    const refused = await refuse(open, { status, body });
    expectRefused(refused, verdictOf(status, operation), status, expectedDigest(body), operation);
    expect(refused.error.upstreamMessage).toBe(`said   with\n${status}`);
  });

  it("every status from 400 to 599 has its class", async () => {
    for (let status = 400; status <= 599; status += 1) {
      const body = apiError("no");
      expectRefused(await refuse(open, { status, body }), verdictOf(status, operation), status, body, operation);
    }
  });

  it.each(Object.keys(TABLE).map(Number))("%i: a long body keeps its head and its tail", async (status) => {
    const body = longError("a_code_of_their_own");
    const refused = await refuse(open, { status, body });
    expectRefused(refused, verdictOf(status, operation), status, expectedDigest(body), operation);
    const { bodyText } = refused.error;
    expect(bodyText.length).toBeLessThanOrEqual(2_048);
    expect(bodyText).toMatch(/^\{"error":\{"message":"the head of it".*"code":"a_code_of_their_own"\}\}$/);
  });

  it.each(Object.keys(TABLE).map(Number))(
    "%i: a body that can't be read is none, and the class stays",
    async (status) => {
      const verdict = verdictOf(status, operation);
      const same = verdict.code === "model_not_found" ? missing("endpoint_not_found") : verdict;
      const broken = await refuse(open, { status, body: apiError("cut in the mid"), end: "reset" });
      const garbled = await refuse(open, { status, body: "no gzip at all", headers: { "content-encoding": "gzip" } });
      for (const refused of [broken, garbled]) {
        expect(refused.error).toBeInstanceOf(CLASSES[verdict.treatment]);
        expect(refused.error).toMatchObject({ code: same.code, bodyText: "", statusCode: status });
        expect(refused.error.message).toMatch(new RegExp(`^${nameOf(operation)} [^|]*: ${status}$`));
        expectGoverned(refused.source, verdict.treatment);
      }
    },
  );

  it("a page that is no API error is a wrong address, and the message says what to check", async () => {
    for (const status of [404, 405, 410]) {
      const { error } = await refuse(open, { status, body: "<html><title>Not here</title></html>" });
      expect(error).toMatchObject({ code: "endpoint_not_found", upstreamMessage: "Not here" });
      expect(error.message).toMatch(/check BASE_URL/);
      expect(error.message).toContain(`: ${status} | <html>`);
    }
  });

  it("503 with Retry-After is a rate limit", async () => {
    const body = apiError("come back");
    const refused = await refuse(open, { status: 503, body, headers: { "retry-after": "7" } });
    expectRefused(refused, limited("overloaded"), 503, body, operation);
    expect(refused.error).toMatchObject({ retryAfterMs: 7_000 });
    expect(refused.source.coolingMs).toBeGreaterThan(6_000);
  });

  it.each([
    ["10 minutes", "slow down", 600, "limited"],
    ["more than 10 minutes", "slow down", 601, "dead"],
    ["a minute, with quota wording", "daily quota reached", 60, "limited"],
    ["more than a minute, with quota wording", "daily quota reached", 61, "dead"],
  ] as const)("429 and %s", async (_length, message, seconds, treatment) => {
    const body = apiError(message);
    const refused = await refuse(open, { status: 429, body, headers: { "retry-after": String(seconds) } });
    expect(refused.error).toBeInstanceOf(CLASSES[treatment]);
    expect(refused.error).toMatchObject({ retryAfterMs: seconds * 1_000 });
    expect(refused.error.code).toBe(treatment === "dead" ? "quota" : "rate_limit");
    expectGoverned(refused.source, treatment);
    const waitMs = Math.max(refused.source.openForMs, refused.source.coolingMs);
    expect(waitMs).toBeGreaterThan(seconds * 1_000 - 5_000);
    expect(waitMs).toBeLessThanOrEqual(seconds * 1_000);
  });

  it("a quota error is one however much stands around it, though its digest is no JSON any more", async () => {
    const padding = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`field_${index}`, index]));
    const body = JSON.stringify({ error: { message: "no", ...padding, code: "insufficient_quota", after: padding } });
    for (const status of [400, 403, 429]) {
      const { error, source } = await refuse(open, { status, body });
      expect(() => JSON.parse(error.bodyText)).toThrow(SyntaxError);
      expect(error).toBeInstanceOf(SourceDeadError);
      expect(error).toMatchObject({ code: "quota", bodyText: expectedDigest(body) });
      expectGoverned(source, "dead");
    }
  });

  it("at most 64 KiB of a body are read, then the connection is dropped", async () => {
    const body = `HEAD ${"x".repeat(300_000)}`;
    const refused = await refuse(open, { status: 400, body, end: "hang" });
    const read = body.slice(0, 64 * 1_024);
    expectRefused(refused, rejected, 400, expectedDigest(read), operation);
    await until(() => provider.ledger().at(-1)!.clientClosed);
  });

  it("a body that never ends doesn't hold the call", async () => {
    const refused = await refuse(open, { status: 401, body: '{"error":', end: "hang" });
    expectRefused(refused, unpaid("auth"), 401, '{"error":', operation);
    await until(() => provider.ledger().at(-1)!.clientClosed);
  });

  it("head and tail of a long 400 stand in the `error` column of a SQLite file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "polygateway-digest-"));
    try {
      const path = join(folder, "calls.db");
      const body = `{"error":{"message":"Range of input is [1, 8]","trace":"${"y ".repeat(3_000)}","code":"invalid_parameter_error"}}`;
      provider.script({ status: 400, chunks: [{ utf8: body }], end: "close" });
      const client = clientOf(open, { telemetry: new SqliteRecorder(path) });
      const error = await failureOf(client.call());
      await client.close();
      const database = new Database(path, { readonly: true });
      const rows = database.prepare("SELECT operation, outcome, error, final FROM llm_calls").all();
      database.close();
      const message = `${nameOf(operation)} request rejected: 400 | ${expectedDigest(body)}`;
      expect(message.endsWith('"code":"invalid_parameter_error"}}')).toBe(true);
      expect(error).toMatchObject({ message });
      expect(rows).toEqual([{ operation, outcome: "rejected", error: message, final: 1 }]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
