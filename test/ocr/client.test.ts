import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import type { OcrOptions, SourceOptions } from "../../src/config/options.js";
import { toPixels } from "../../src/domain/ocr.js";
import {
  AllSourcesExhausted,
  ConfigError,
  RequestRejectedError,
  ResultInvalidError,
  SourceNotConfiguredError,
} from "../../src/errors.js";
import { OcrClient } from "../../src/gateway/ocr-client.js";
import { PricingTable } from "../../src/telemetry/pricing.js";
import { createMemoryRecorder } from "../../src/testing/memory-recorder.js";
import { startMistralOcrServer } from "../../src/testing/ocr/mistral-server.js";
import { startPaddleServer } from "../../src/testing/ocr/paddle-server.js";
import { pngOf, tiffOf } from "./pictures.js";

/** OcrClient as users hold it: over real HTTP, on the one loop. */

const open: (() => Promise<unknown>)[] = [];
const folder = mkdtempSync(join(tmpdir(), "pgw-ocr-"));
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});
afterEach(() => rmSync(join(folder, "x"), { force: true }));

async function paddle(options: Parameters<typeof startPaddleServer>[0] = {}) {
  const server = await startPaddleServer(options);
  open.push(() => server.stop());
  return server;
}

function source(name: string, baseUrl: string, more: Partial<SourceOptions> = {}): SourceOptions {
  return { name, baseUrl, apiKey: "none", model: "PaddleOCR-VL", transport: "paddle", ...more };
}

function clientOf(sources: SourceOptions[], more: Partial<OcrOptions> = {}) {
  const recorder = createMemoryRecorder();
  const client = new OcrClient({
    scope: "OCR",
    sources,
    retry: { backoffBaseMs: 1, backoffMaxMs: 2 },
    telemetry: recorder,
    proxyEnv: {},
    ...more,
  });
  open.push(() => client.close());
  return { client, recorder };
}

const PICTURE = pngOf(1_200, 800);

describe("recognizeText and parseLayout", () => {
  test("give text, boxes in shares of the page, and what the call took", async () => {
    const server = await paddle();
    const pricing = new PricingTable({ "PaddleOCR-VL": { perPage: 0.004 } });
    const { client } = clientOf([source("a", server.baseUrl)], { pricing });
    const text = await client.recognizeText(PICTURE);
    expect(text).toMatchObject({ text: "Annual report\n\nAll is well.", pageCount: 1, sourceName: "a", cost: 0.004 });
    const layout = await client.parseLayout(PICTURE);
    expect(layout.pages).toEqual([{ page: 1, width: 1_200, height: 800, unit: "pixel" }]);
    expect(layout.elements.map(({ type, page, order }) => [type, page, order])).toEqual([
      ["title", 1, 0],
      ["text", 1, 1],
    ]);
    expect(toPixels(layout.elements[0]!.bbox, 1_200, 800).map(Math.round)).toEqual([90, 70, 700, 110]);
    expect(layout).toMatchObject({ droppedElements: 0, attempts: 1, usage: { totalTokens: 0 }, cost: 0.004 });
  });

  test("take bytes, an ArrayBuffer, a Blob, a path, a file: URL and its text", async () => {
    const server = await paddle();
    const { client } = clientOf([source("a", server.baseUrl)]);
    const path = join(folder, "x");
    writeFileSync(path, PICTURE);
    const bytes = new Uint8Array(PICTURE);
    const url = pathToFileURL(path);
    for (const input of [bytes, bytes.buffer, new Blob([bytes]), path, url, url.href]) {
      expect((await client.recognizeText(input)).text).toContain("Annual report");
    }
    const sent = server.ledger().map(({ body }) => body?.file);
    expect(new Set(sent)).toEqual(new Set([PICTURE.toString("base64")]));
  });

  test("a call goes on with the next source when one fails, and its rows say how it went", async () => {
    const [broken, good] = [await paddle({ faults: { status: 500 } }), await paddle()];
    const { client, recorder } = clientOf([
      source("broken", broken.baseUrl, { priority: 0 }),
      source("good", good.baseUrl, { priority: 1 }),
    ]);
    const { sourceName, attempts } = await client.recognizeText(PICTURE, { sessionId: "s", parentCallId: "page-1" });
    expect([sourceName, attempts]).toEqual(["good", 2]);
    await client.close();
    const rows = recorder.rows;
    expect(rows.map(({ operation, outcome, sourceName: name, final }) => [operation, outcome, name, final])).toEqual([
      ["ocr_text", "transient", "broken", false],
      ["ocr_text", "success", "good", true],
    ]);
    expect(rows[0]?.error).toMatch(/^broken ocr_text transient failure: 500/);
    expect(rows[1]).toMatchObject({
      sessionId: "s",
      parentCallId: "page-1",
      response: "Annual report\n\nAll is well.",
    });
    expect(rows[1]?.messages).toMatch(/^\["sha256:[0-9a-f]{64} image\/png \d+"\]$/);
    expect(JSON.stringify(rows, (_, value) => (typeof value === "bigint" ? String(value) : value))).not.toContain(
      PICTURE.toString("base64").slice(0, 40),
    );
  });

  test("a layout's row says how much there was, never a picture", async () => {
    const server = await paddle({ faults: { brokenBoxes: true } });
    const { client, recorder } = clientOf([source("a", server.baseUrl)]);
    const { droppedElements, elements } = await client.parseLayout(PICTURE);
    expect(droppedElements).toBeGreaterThan(0);
    for (const { bbox } of elements) {
      const [x0, y0, x1, y1] = bbox;
      expect(x0 >= 0 && y0 >= 0 && x1 <= 1 && y1 <= 1 && x0 < x1 && y0 < y1).toBe(true);
    }
    await client.close();
    expect(recorder.rows[0]?.response).toBe(
      `<layout: ${elements.length} elements on 1 page, ${droppedElements} elements left out>`,
    );
  });

  test("limits are governed by requests and calls in flight", async () => {
    const server = await paddle({ latencyMs: 30 });
    const { client } = clientOf([source("a", server.baseUrl, { maxConcurrency: 2 })]);
    await Promise.all(Array.from({ length: 6 }, () => client.recognizeText(PICTURE)));
    const entries = server.ledger();
    const inFlight = entries.map(
      ({ arrivedAtMs: at }) => entries.filter((e) => e.arrivedAtMs <= at && (e.endedAtMs ?? at) > at).length,
    );
    expect(Math.max(...inFlight)).toBeLessThanOrEqual(2);
    expect(entries).toHaveLength(6);
  });
});

describe("what is refused before anything is sent", () => {
  test.each([
    ["no picture", Buffer.from("hello"), /neither PNG, JPEG, WebP, TIFF nor PDF/],
    ["nothing", new Uint8Array(), /is empty/],
    ["a file that isn't there", join(folder, "gone.png"), /gone\.png can't be read: there is no such file/],
    ["a folder", folder, /it is a folder/],
    ["an address", new URL("https://example.org/a.png"), /is not fetched; give its bytes/],
    ["a number", 5 as never, /must be bytes, a Blob, a path/],
  ])("%s", async (_, input, reason) => {
    const server = await paddle();
    const { client } = clientOf([source("a", server.baseUrl)]);
    const outcome = client.recognizeText(input);
    await expect(outcome).rejects.toThrow(reason);
    await expect(outcome).rejects.toBeInstanceOf(RequestRejectedError);
    expect(server.ledger()).toEqual([]);
  });

  test("a picture above the limit, and options that don't exist", async () => {
    const server = await paddle();
    const { client } = clientOf([source("a", server.baseUrl)], { maxImageBytes: 100 });
    const large = Buffer.concat([PICTURE, Buffer.alloc(200)]);
    for (const input of [large, new Blob([new Uint8Array(large)])]) {
      await expect(client.parseLayout(input)).rejects.toThrow(/more than 100 bytes \(MAX_IMAGE_BYTES, maxImageBytes\)/);
    }
    await expect(client.recognizeText(pngOf(1, 1), { page: 3 } as never)).rejects.toThrow(/unknown option "page"/);
    await expect(client.recognizeText(pngOf(1, 1), { priority: Number.NaN })).rejects.toThrow(/priority/);
    expect(server.ledger()).toEqual([]);
  });

  test("what no source can read; what only some can goes to them", async () => {
    const mistral = await startMistralOcrServer();
    open.push(() => mistral.stop());
    const monkey = source("monkey", "http://127.0.0.1:1", { transport: "monkey-ocr", priority: 0 });
    const alone = clientOf([monkey]).client;
    await expect(alone.recognizeText(tiffOf(10, 10))).rejects.toMatchObject({ code: "unsupported_modality" });
    await expect(alone.recognizeText(tiffOf(10, 10))).rejects.toThrow(/monkey: MonkeyOCR takes PNG, JPEG and PDF/);
    const { client } = clientOf([
      monkey,
      source("mistral", mistral.baseUrl, { transport: "mistral", model: "mistral-ocr-latest", priority: 1 }),
    ]);
    expect((await client.recognizeText(tiffOf(10, 10))).sourceName).toBe("mistral");
    const plain = source("plain", "http://127.0.0.1:1/v1", { transport: "vlm", model: "gpt-x" });
    await expect(clientOf([plain]).client.parseLayout(PICTURE)).rejects.toThrow(
      /gpt-x, read as plain, tells no places/,
    );
    await expect(clientOf([plain]).client.recognizeText(Buffer.from("%PDF-1.7"))).rejects.toThrow(
      /render the pages first/,
    );
  });

  test("a signal that has fired, with exactly its reason", async () => {
    const server = await paddle();
    const { client } = clientOf([source("a", server.baseUrl)]);
    const reason = new Error("left");
    await expect(client.recognizeText(PICTURE, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(server.ledger()).toEqual([]);
  });
});

describe("failures by their class", () => {
  test("a wrong key is not configured, a refused document is rejected, an unusable answer invalid", async () => {
    const locked = await paddle({ apiKeys: ["right"] });
    const wrongKey = clientOf([source("a", locked.baseUrl, { apiKey: "sk-wrong-key-7713" })]);
    const outcome = wrongKey.client.recognizeText(PICTURE).catch((error: unknown) => error);
    expect(await outcome).toSatisfy((e) => SourceNotConfiguredError.isInstance(e) || AllSourcesExhausted.isInstance(e));
    expect(String((await outcome) as Error)).not.toContain("wrong-key");
    const refusing = await paddle({ faults: { errorCode: 422 } });
    await expect(clientOf([source("a", refusing.baseUrl)]).client.recognizeText(PICTURE)).rejects.toBeInstanceOf(
      RequestRejectedError,
    );
    const empty = await paddle({ pages: [{ width: 10, height: 10, blocks: [], markdown: "" }] });
    await expect(clientOf([source("a", empty.baseUrl)]).client.recognizeText(PICTURE)).rejects.toBeInstanceOf(
      ResultInvalidError,
    );
  });

  test("an answer that never comes ends with TIMEOUT, and a caller who leaves ends it at once", async () => {
    const server = await paddle({ faults: { hang: true } });
    const { client } = clientOf([source("a", server.baseUrl, { timeoutMs: 150 })], { retry: { maxAttempts: 1 } });
    await expect(client.recognizeText(PICTURE)).rejects.toMatchObject({ cause: { code: "timeout" } });
    const uneven = clientOf([source("a", server.baseUrl, { timeoutMs: 150.416754 })], { retry: { maxAttempts: 1 } });
    await expect(uneven.client.recognizeText(PICTURE)).rejects.toThrow(/within 150 ms \(TIMEOUT_S\)/);
    await expect(uneven.client.recognizeText(PICTURE, { deadlineMs: 100.4167 })).rejects.toThrow(/deadline of 100 ms/);
    const abort = new AbortController();
    const reason = new Error("left");
    const call = client.recognizeText(PICTURE, { signal: abort.signal });
    abort.abort(reason);
    await expect(call).rejects.toBe(reason);
  });
});

test("checkHealth tells how each source is, and takes no permit", async () => {
  const server = await paddle();
  const { client } = clientOf([source("up", server.baseUrl), source("down", "http://127.0.0.1:1")]);
  const health = await client.checkHealth({ timeoutMs: 5_000 });
  expect(health.up).toMatchObject({ ok: true, latencyMs: expect.any(Number) });
  expect(health.down).toMatchObject({ ok: false, detail: expect.stringMatching(/connect|connection/) });
  expect(Object.keys(await client.checkHealth(null as never))).toEqual(["up", "down"]);
  await expect(client.checkHealth({ timeoutMs: Number.NaN })).rejects.toThrow(/timeoutMs of checkHealth/);
  expect((await client.snapshot()).sources.map(({ requestsUsed }) => requestsUsed)).toEqual([0, 0]);
});

describe("configuration", () => {
  const base = { scope: "OCR", sources: [source("a", "http://127.0.0.1:1")] };

  test("a scope read from the environment is for OCR by its transport, with defaults that suit it", async () => {
    const env = {
      OCR__MONKEY__1__BASE_URL: "http://127.0.0.1:1",
      OCR__MONKEY__1__API_KEY: "none",
      OCR__MONKEY__1__MODEL: "MonkeyOCR",
      OCR__MONKEY__1__TRANSPORT: "monkey-ocr",
      OCR__MAX_IMAGE_BYTES: "1000",
      PGW_TELEMETRY: "none",
    };
    const client = OcrClient.fromEnv("OCR", { env });
    open.push(() => client.close());
    expect((await client.snapshot()).sources[0]).toMatchObject({ maxConcurrency: 1 });
    await expect(client.recognizeText(Buffer.concat([PICTURE, Buffer.alloc(2_000)]))).rejects.toThrow(/1000 bytes/);
  });

  test.each([
    [{ ...base, cache: {} }, /OCR is never cached/],
    [{ ...base, maxImageBytes: 0 }, /maxImageBytes/],
    [{ ...base, batchSize: 3 }, /batchSize/],
    [{ ...base, sources: [source("a", "http://h", { transport: "openai" })] }, /openai is no protocol for OCR/],
    [{ ...base, sources: [source("a", "http://h", { transport: "tesseract" as never })] }, /transport/],
    [{ ...base, sources: [source("a", "http://h", { ocrReader: "magic" as never })] }, /ocrReader/],
  ])("refuses %j", (options, reason) => {
    expect(() => new OcrClient(options as never)).toThrow(reason);
    expect(() => new OcrClient(options as never)).toThrow(ConfigError);
  });
});
