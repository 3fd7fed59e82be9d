import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import type { GatewayClient, SourceOptions } from "../src/index.js";
import { type SimulatedProvider, startSimulatedProvider, type UpstreamScript } from "../src/testing/index.js";
import { attemptErrorOf, call, replyOf, until, type Way } from "./support/calls.js";
import { checkOutcome, checkRows } from "./support/case-check.js";
import { CANARY_KEY, caseClient, requestOf, sourceOf, timeoutsOf } from "./support/case-client.js";
import { checkEmbedded, embedCase, embeddingClient, isEmbeddingCase } from "./support/case-embedding.js";
import {
  type CaseRecord,
  caseRecords,
  type LocalCase,
  type SequenceCase,
  type UpstreamCase,
} from "./support/case-records.js";
import { checkSequence, runSequence } from "./support/case-sequence.js";
import { playedElsewhere, skippedCases } from "./support/case-skips.js";
import { sendJson, startRecordingServer } from "./support/recording-server.js";

/**
 * Every upstream misbehaviour of test/data/cases.jsonl, replayed byte for byte over real HTTP by the simulated provider,
 * through the public client.
 */

const chosen = caseRecords.filter(({ id }) => !skippedCases.has(id));
const upstreams = chosen.filter((record): record is UpstreamCase => record.kind === "upstream");
const upstreamCases = upstreams.filter((record) => !isEmbeddingCase(record));
const embeddingCases = upstreams.filter(isEmbeddingCase);
const schemaCases = chosen.filter((record): record is LocalCase => record.kind === "local");
const sequenceCases = chosen.filter((record): record is SequenceCase => record.kind === "sequence");

/** These must all run, whatever the list of skips says. */
const MANDATORY = new Set(["sse-framing", "http-error", "stream-error", "timeout-abort"]);

const LONGEST_REAL_WAIT_MS = 60_000;
const SCALED_WAIT_MS = 1_300;

/** Waits of minutes are scaled where the record says so; what remains of its sense is tested with undici's clock moved. */
function scaled({ upstream, expect: { scaled: says } }: UpstreamCase): UpstreamScript {
  if (says === undefined || "reusedSocket" in upstream) return upstream;
  const short = (delayMs = 0) => (delayMs > LONGEST_REAL_WAIT_MS ? SCALED_WAIT_MS : delayMs);
  const chunks = (upstream.chunks ?? []).map((chunk) => ({ ...chunk, delayMs: short(chunk.delayMs) }));
  return { ...upstream, headersDelayMs: short(upstream.headersDelayMs), chunks };
}

/** `stream()` answers one choice only. */
const waysOf = ({ request }: UpstreamCase): Way[] => ((request.body.n ?? 1) === 1 ? ["chat", "stream"] : ["chat"]);

function sourceFor(record: UpstreamCase, provider: SimulatedProvider): SourceOptions {
  const { clientOptions = {} } = record.request;
  return sourceOf("s_1", provider.baseUrl, {
    ...timeoutsOf(clientOptions, record.expect.maxWallMs !== undefined),
    ...(clientOptions.transient400 === undefined ? {} : { transient400: clientOptions.transient400 }),
  });
}

async function replaying(script: UpstreamScript): Promise<SimulatedProvider> {
  const provider = await startSimulatedProvider();
  provider.script(script, "always");
  return provider;
}

async function expectNothingLeft(client: Pick<GatewayClient, "snapshot">): Promise<void> {
  const { sources, waiting, leases } = await client.snapshot();
  expect(sources.map((source) => source.inflight)).toEqual(sources.map(() => 0));
  expect(sources.some((source) => source.probeInFlight)).toBe(false);
  expect(waiting.count).toBe(0);
  expect(leases).toEqual({ live: 0, lost: 0 });
}

async function runUpstream(record: UpstreamCase, way: Way): Promise<void> {
  const { clientOptions = {} } = record.request;
  await using provider = await replaying(scaled(record));
  const { client, recorder } = caseClient([sourceFor(record, provider)], {
    retry: { maxAttempts: (clientOptions.retries ?? 0) + 1 },
  });
  const controller = new AbortController();
  const left = new Error("the caller left");
  const { abortAfterMs } = clientOptions;
  if (abortAfterMs === 0) controller.abort(left);
  const timer = abortAfterMs ? setTimeout(() => controller.abort(left), abortAfterMs) : undefined;
  const called = await call(client, way, { ...requestOf(record.request), signal: controller.signal });
  clearTimeout(timer);
  checkOutcome(called, record.expect, left);
  await expectNothingLeft(client);
  expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  const { arrived } = provider.stats();
  expect(arrived).toBe(record.expect.upstreamRequests ?? 1);
  if (record.expect.upstreamClosedWithinMs !== undefined) await until(() => provider.ledger()[0]!.clientClosed);
  checkRows(recorder.rows, arrived, record.expect);
  expect(JSON.stringify(recorder.rows, (_key, value) => (typeof value === "bigint" ? 0 : value))).not.toContain(
    CANARY_KEY,
  );
  await client.close();
}

async function runEmbedding(record: UpstreamCase): Promise<void> {
  await using provider = await replaying(scaled(record));
  const { client, recorder } = embeddingClient(record, sourceFor(record, provider));
  checkEmbedded(await embedCase(client, record), record.expect);
  await expectNothingLeft(client);
  const { arrived } = provider.stats();
  // Refused for its size, a batch is sent again in parts: calls of their own, all of which are refused here.
  const isCut = record.expect.limit !== undefined;
  if (!isCut) expect(arrived).toBe(1);
  expect(recorder.rows.length).toBe(arrived);
  expect(provider.ledger()[0]).toMatchObject({ path: record.request.path });
  const completionTokens = record.expect.outcome === "rejected" ? null : 0;
  for (const row of recorder.rows) {
    checkRows([row], 1, record.expect);
    expect(row).toMatchObject({ operation: "embedding", completionTokens, sampling: null });
  }
  await client.close();
}

/** What the note of the record says: the limit is learned from the refusal. */
async function runRefusedBatch(record: UpstreamCase): Promise<void> {
  await using provider = await startSimulatedProvider();
  provider.script(record.upstream as UpstreamScript);
  const { client, recorder } = embeddingClient(record, sourceFor(record, provider));
  const { result, error } = await embedCase(client, record);
  if (result === undefined) throw error;
  const { client: free } = embeddingClient(record, sourceFor(record, provider));
  expect(result.vectors).toEqual((await embedCase(free, record)).result?.vectors);
  expect(recorder.rows.map((row) => row.response)).toEqual([
    null,
    "<vectors n=10 dim=16>",
    "<vectors n=10 dim=16>",
    "<vectors n=5 dim=16>",
  ]);
  await Promise.all([client.close(), free.close()]);
}

describe("the records", () => {
  it("run, but for those that are listed with what they wait for", () => {
    // Played on a real PostgreSQL by cases-postgres.test.ts.
    const storeCases = caseRecords.filter(({ family }) => family === "telemetry-store");
    const ran = new Set<string>(
      [...upstreamCases, ...embeddingCases, ...sequenceCases, ...schemaCases, ...storeCases].map(({ id }) => id),
    );
    const leftOut = caseRecords.filter(({ id }) => !ran.has(id)).map(({ id }) => id);
    const elsewhere = Object.values(playedElsewhere).flat();
    expect(leftOut.sort()).toEqual([...skippedCases.keys(), ...elsewhere].sort());
    const missing = (record: CaseRecord) => MANDATORY.has(record.family) && !ran.has(record.id);
    expect(caseRecords.filter(missing)).toEqual([]);
    expect(ran.size).toBe(138);
  });

  it("have ids of their own", () => {
    expect(new Set(caseRecords.map(({ id }) => id)).size).toBe(caseRecords.length);
  });
});

const runs = upstreamCases.flatMap((record) => waysOf(record).map((way) => [record.id, way, record] as const));

describe("one attempt", () => {
  it.concurrent.each(runs)("%s through %s()", (_id, way, record) => runUpstream(record, way));
});

describe("one batch of texts", () => {
  it.concurrent.each(embeddingCases.map((record) => [record.id, record] as const))("%s", (_id, record) =>
    runEmbedding(record),
  );

  it.each(
    embeddingCases.filter(({ expect: { limit } }) => limit !== undefined).map((record) => [record.id, record] as const),
  )("%s, by a source that takes the parts: 3 requests, order kept", (_id, record) => runRefusedBatch(record));
});

describe("the same source again", () => {
  const told = upstreamCases.filter((record) => record.expect.retrySame !== undefined);

  it.concurrent.each(told.map((record) => [record.id, record] as const))("%s", async (_id, record) => {
    await using provider = await replaying(scaled(record));
    const { client } = caseClient([sourceFor(record, provider)], { retry: { maxAttempts: 2, backoffBaseMs: 10 } });
    const called = await call(client, "stream", requestOf(record.request));
    expect(called.reply).toBeUndefined();
    expect(provider.stats().arrived).toBe(record.expect.retrySame ? 2 : 1);
    await client.close();
  });
});

describe("another source takes the call", () => {
  const told = upstreamCases.filter((record) => record.expect.failover === true);
  const both = told.flatMap((record) => waysOf(record).map((way) => [record.id, way, record] as const));

  it.concurrent.each(both)("%s through %s()", async (_id, way, record) => {
    await using failing = await replaying(scaled(record));
    await using healthy = await startSimulatedProvider({ answer: () => "from the other one" });
    const other = sourceOf("other", healthy.baseUrl, { model: "m-other" });
    const { client, recorder } = caseClient([sourceFor(record, failing), other], {
      selector: { order: (names) => [...names].sort((a, b) => Number(a === "other") - Number(b === "other")) },
    });
    const reply = replyOf(await call(client, way, requestOf(record.request)));
    expect(reply).toMatchObject({ content: "from the other one", sourceName: "other", attempts: 2 });
    expect(failing.stats().arrived).toBe(1);
    expect(recorder.rows.map((row) => row.sourceName)).toEqual(["s_1", "other"]);
    await expectNothingLeft(client);
    await client.close();
  });
});

/** The schema of a record's own response format. */
function schemaOf({ request }: UpstreamCase): Record<string, unknown> {
  const format = request.body.response_format as { json_schema: { schema: Record<string, unknown> } };
  return format.json_schema.schema;
}

function bodyOf({ upstream }: UpstreamCase): string {
  return "reusedSocket" in upstream ? "" : (upstream.chunks ?? []).map((chunk) => chunk.utf8).join("");
}

describe("structured()", () => {
  const told = upstreamCases.filter(({ family }) => family === "structured");
  const messagesOf = ({ request }: UpstreamCase) => ({ messages: request.body.messages });

  it.concurrent.each(told.map((record) => [record.id, record] as const))("%s", async (_id, record) => {
    await using provider = await replaying(record.upstream);
    const { client } = caseClient([sourceFor(record, provider)], { retry: { maxAttempts: 1 } });
    const { outcome, reason, parsed, reask } = record.expect;
    const asking = client.structured(messagesOf(record), schemaOf(record), { maxReasks: 2 });
    if (outcome === "ok") expect((await asking).value).toEqual(parsed);
    else {
      const called = await asking.then(
        () => ({ way: "chat" as const, events: [] }),
        (error: unknown) => ({ way: "chat" as const, events: [], error }),
      );
      expect(attemptErrorOf(called).code).toBe(reason);
    }
    // What is cut is asked for again with more room, what doesn't fit with what is wrong.
    const again = reask === true || reason === "truncated";
    expect(provider.stats().arrived).toBe(again ? 3 : 1);
    await client.close();
  });

  it.concurrent.each(told.filter(({ expect: { reask } }) => reask).map((record) => [record.id, record] as const))(
    "%s: the next ask says what is wrong",
    async (_id, record) => {
      await using server = await startRecordingServer((response) => sendJson(response, 200, bodyOf(record)));
      const { client } = caseClient([sourceOf("s_1", server.baseUrl)], { retry: { maxAttempts: 1 } });
      await expect(client.structured(messagesOf(record), schemaOf(record), { maxReasks: 1 })).rejects.toThrow();
      const last = (server.seen[1]!.body.messages as { role: string; content: string }[]).at(-1)!;
      expect(last.role).toBe("user");
      for (const word of record.expect.reaskMentions ?? []) expect(last.content).toContain(word);
      await client.close();
    },
  );

  it.each(schemaCases.map((record) => [record.id, record] as const))(
    "%s",
    async (_id, { scenario, expect: { schemaOut } }) => {
      await using server = await startRecordingServer();
      const { client } = caseClient([sourceOf("s_1", server.baseUrl)], { retry: { maxAttempts: 1 } });
      await client
        .structured({ messages: [{ role: "user", content: "hi" }] }, scenario.schemaIn!, { maxReasks: 0 })
        .catch(() => {});
      const sent = JSON.stringify(server.seen[0]!.body.response_format);
      const references = [...sent.matchAll(/\{[^{}]*"\$ref":"([^"]*)"[^{}]*\}/g)];
      if (schemaOut?.noRefSiblings)
        for (const [object] of references) expect(Object.keys(JSON.parse(object))).toEqual(["$ref"]);
      if (schemaOut?.noSpacesInRefs)
        for (const [, reference] of references) expect(reference).toMatch(/^#(\/[\w$-]+)*$/);
      expect(sent).toContain('"type":"string"');
      await client.close();
    },
  );
});

describe("several steps", () => {
  const streams = ({ steps }: SequenceCase): boolean => steps.some((step) => step.request?.body.stream === true);
  const both = sequenceCases.flatMap((record) =>
    (streams(record) ? (["chat", "stream"] as const) : (["chat"] as const)).map(
      (way) => [record.id, way, record] as const,
    ),
  );

  it.concurrent.each(both)("%s through %s()", async (_id, way, record) => {
    await using played = await runSequence(record, way);
    await checkSequence(record, played);
  });
});
