import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { SourceConfig } from "../../domain/source.js";
import { RequestRejectedError, ResultInvalidError, SourceDeadError, TransientError } from "../../errors.js";
import type { OcrTransport } from "../../ports/transport.js";
import type { OcrServer } from "../../testing/ocr/http.js";
import {
  type MistralOcrChanges,
  type MistralOcrServerOptions,
  startMistralOcrServer,
} from "../../testing/ocr/mistral-server.js";
import { runtime, testSource } from "../attempt.test-helper.js";
import { profiles } from "../openai/profiles.js";
import { startReplayServer } from "../replay-server.test-helper.js";
import { createMistralOcrTransport } from "./mistral.js";
import { failure, ocrAttempt, PDF, picture, SIZELESS } from "./ocr.test-helper.js";

// Its own for each test: a port may come again, with a server that knows nothing of the sockets kept for the one before.
let transport: OcrTransport;
beforeEach(() => {
  transport = createMistralOcrTransport({ runtime });
});
let server: OcrServer<MistralOcrChanges>;

async function start(options: MistralOcrServerOptions = {}, overrides: Partial<SourceConfig> = {}) {
  server = await startMistralOcrServer(options);
  return testSource(server.baseUrl, {
    transport: "mistral",
    model: "mistral-ocr-latest",
    profile: profiles.mistral,
    ...overrides,
  });
}

afterEach(async () => {
  await transport.close();
  await server?.stop();
});

const TABLE = "<table><tr><td>2</td></tr></table>";
const PAGES = [
  {
    width: 1_000,
    height: 1_000,
    blocks: [{ type: "table", content: "", box: [100, 100, 500, 500], tableId: "tbl-0.html" }],
    tables: { "tbl-0.html": TABLE },
  },
  {
    width: 500,
    height: 500,
    blocks: [
      { type: "equation", content: "\\[a+b\\]", box: [50, 50, 250, 250] },
      { type: "references", content: "[1] A. Author", box: [50, 250, 250, 500] },
      { type: "new_kind", content: "x", box: [0, 0, 250, 250] },
    ],
  },
];

describe("what is asked", () => {
  test("a picture as image_url, a PDF as document_url; blocks and tables apart for layouts alone", async () => {
    const source = await start({ apiKeys: ["sk-test-key-0001"] });
    await transport.parseLayout(ocrAttempt(source));
    await transport.recognizeText(ocrAttempt(source, PDF));
    const [layout, text] = server.ledger();
    expect(layout).toMatchObject({ method: "POST", path: "/v1/ocr", outcome: "answered" });
    expect(layout?.body).toEqual({
      model: "mistral-ocr-latest",
      document: { type: "image_url", image_url: `data:image/png;base64,${picture().bytes.toString("base64")}` },
      include_image_base64: false,
      include_blocks: true,
      table_format: "html",
    });
    expect(text?.body).toEqual({
      model: "mistral-ocr-latest",
      document: { type: "document_url", document_url: `data:application/pdf;base64,${PDF.bytes.toString("base64")}` },
      include_image_base64: false,
    });
  });

  test("a field that the source refuses is told as ours, and left out from then on", async () => {
    const source = await start({ refusedFields: ["include_blocks", "table_format"] });
    for (const param of ["include_blocks", "table_format"]) {
      const error = await failure(transport.parseLayout(ocrAttempt(source)));
      expect(error).toBeInstanceOf(RequestRejectedError);
      expect(error).toMatchObject({ code: "unsupported_param", details: { param, droppedByUs: true } });
    }
    const { layout } = await transport.parseLayout(ocrAttempt(source));
    expect(layout.elements).toEqual([
      { type: "image", rawType: "image", bbox: [0.1, 0.4, 0.5, 0.6], page: 1, order: 0 },
    ]);
    expect(server.ledger()[2]?.body).not.toHaveProperty("include_blocks");
    // Another source has its own memory.
    const other = { ...source, name: "src_2" };
    expect(await failure(transport.parseLayout(ocrAttempt(other)))).toMatchObject({ code: "unsupported_param" });
  });

  test("a refusal that names a field is no reason to leave it out where it is about something else", async () => {
    const body = '{"object":"error","message":"Invalid model: x (include_blocks was set)","code":"1500"}';
    const replay = await startReplayServer({ status: 404, chunks: [{ utf8: body }] });
    const error = await failure(transport.parseLayout(ocrAttempt(testSource(replay.baseUrl))));
    expect(error).toBeInstanceOf(SourceDeadError);
    await replay.close();
  });
});

describe("what is answered", () => {
  test("text is the Markdown of all pages by their index, tables in their place; paid by pages", async () => {
    const source = await start({ pages: PAGES });
    const answer = await transport.recognizeText(ocrAttempt(source, PDF));
    expect(answer).toMatchObject({
      text: `${TABLE}\n\n\\[a+b\\]\n\n[1] A. Author\n\nx`,
      pageCount: 2,
      usage: null,
      modelReported: "mistral-ocr-latest",
    });
    const pages = [
      { index: 1, markdown: "second" },
      { index: 0, markdown: "first" },
    ];
    const body = JSON.stringify({ pages, usage_info: { pages_processed: 7 } });
    const replay = await startReplayServer({ chunks: [{ utf8: body }] });
    expect(await transport.recognizeText(ocrAttempt(testSource(replay.baseUrl)))).toMatchObject({
      text: "first\n\nsecond",
      pageCount: 7,
      modelReported: null,
    });
    await replay.close();
  });

  test("blocks are shares of their page, tables come from where they were taken out", async () => {
    const source = await start({ pages: PAGES });
    const { layout } = await transport.parseLayout(ocrAttempt(source, PDF));
    expect(layout.pages).toEqual([
      { page: 1, width: 1_000, height: 1_000, unit: "pixel" },
      { page: 2, width: 500, height: 500, unit: "pixel" },
    ]);
    expect(layout.elements).toEqual([
      { type: "table", rawType: "table", bbox: [0.1, 0.1, 0.5, 0.5], page: 1, order: 0, html: TABLE },
      { type: "formula", rawType: "equation", bbox: [0.1, 0.1, 0.5, 0.5], page: 2, order: 0, latex: "a+b" },
      { type: "text", rawType: "references", bbox: [0.1, 0.5, 0.5, 1], page: 2, order: 1, text: "[1] A. Author" },
      { type: "other", rawType: "new_kind", bbox: [0, 0, 0.5, 0.5], page: 2, order: 2, text: "x" },
    ]);
  });

  test.each([
    ["blocks", true, 4],
    ["pictures", false, 3],
  ])("broken boxes of %s are mended or dropped and counted", async (_of, supportsBlocks, kept) => {
    const source = await start({ supportsBlocks, faults: { brokenBoxes: true } });
    const { layout } = await transport.parseLayout(ocrAttempt(source));
    expect(layout.elements).toHaveLength(supportsBlocks ? 5 : kept);
    expect(layout.droppedElements).toBe(7);
  });

  test("blocks and pictures that are none are counted", async () => {
    const dimensions = { width: 10, height: 10 };
    const box = { top_left_x: 0, top_left_y: 0, bottom_right_x: 5, bottom_right_y: 5 };
    const pages = [
      { index: 0, dimensions, blocks: ["none", { type: "text", content: "a", ...box }], images: [null] },
      { index: 1, dimensions, blocks: [], images: ["none", null, box] },
    ];
    const replay = await startReplayServer({ chunks: [{ utf8: JSON.stringify({ pages }) }] });
    const { layout } = await transport.parseLayout(ocrAttempt(testSource(replay.baseUrl)));
    expect(layout.elements.map(({ type, page }) => [type, page])).toEqual([
      ["text", 1],
      ["image", 2],
    ]);
    expect(layout.droppedElements).toBe(3);
    await replay.close();
  });

  test("a page without dimensions is the picture sent, and without its size an unusable layout", async () => {
    const source = await start({ faults: { noSize: true } });
    const { layout } = await transport.parseLayout(ocrAttempt(source, picture(1_700, 2_200)));
    expect(layout.elements[0]?.bbox).toEqual([0.1, 0.1, 0.5, 0.15]);
    const error = await failure(transport.parseLayout(ocrAttempt(source, SIZELESS)));
    expect(error).toBeInstanceOf(ResultInvalidError);
    expect(error).toMatchObject({ code: "bad_layout" });
  });

  test.each([
    ["no page", '{"pages":[],"usage_info":{}}'],
    ["no text", '{"pages":[{"index":0,"markdown":"  "}]}'],
  ])("%s is an unusable result", async (_name, body) => {
    const replay = await startReplayServer({ chunks: [{ utf8: body }] });
    const error = await failure(transport.recognizeText(ocrAttempt(testSource(replay.baseUrl))));
    expect(error).toBeInstanceOf(ResultInvalidError);
    expect(error).toMatchObject({ code: "empty", message: expect.stringMatching(/^src_1 ocr_text unusable result: /) });
    await replay.close();
  });
});

describe("what fails", () => {
  let source: SourceConfig;
  beforeEach(async () => {
    source = await start({ apiKeys: ["sk-test-key-0001"] });
  });

  test.each([
    [{ status: 422 }, RequestRejectedError, "bad_request"],
    [{ status: 401 }, SourceDeadError, "auth"],
    [{ status: 429 }, TransientError, "rate_limit"],
    [{ status: 503 }, TransientError, "overloaded"],
    [{ html: true }, SourceDeadError, "endpoint_not_found"],
    [{ cut: true }, TransientError, "truncated"],
  ])("%j", async (faults, type, code) => {
    server.change({ faults });
    const error = await failure(transport.recognizeText(ocrAttempt(source)));
    expect(error).toBeInstanceOf(type);
    expect(error).toMatchObject({ code, message: expect.stringMatching(/^src_1 ocr_text /) });
  });

  test("an error object inside a 200, a model that doesn't exist, and a list instead of an object", async () => {
    const flat =
      '{"object":"error","message":"Service tier capacity exceeded for this model.","type":"service_tier_capacity_exceeded"}';
    const scripts = [flat, "[1, 2]"].map((utf8) => ({ chunks: [{ utf8 }] }));
    const replay = await startReplayServer(() => scripts.shift());
    const replayed = testSource(replay.baseUrl, { profile: profiles.mistral });
    const busy = await failure(transport.recognizeText(ocrAttempt(replayed)));
    expect(busy).toBeInstanceOf(TransientError);
    expect(busy).toMatchObject({ code: "overloaded", statusCode: 200 });
    expect(await failure(transport.recognizeText(ocrAttempt(replayed)))).toMatchObject({ code: "malformed" });
    await replay.close();
    const unknown = await failure(transport.recognizeText(ocrAttempt({ ...source, model: "no-such-model" })));
    expect(unknown).toMatchObject({ upstreamMessage: "Invalid model: no-such-model" });
  });

  test("an answer made to fill the memory is not parsed", async () => {
    const utf8 = `{"pages":[${"{},".repeat(4_000_000)}{}]}`;
    const replay = await startReplayServer({ chunks: [{ utf8 }] });
    const error = await failure(transport.recognizeText(ocrAttempt(testSource(replay.baseUrl))));
    expect(error).toMatchObject({ code: "malformed", message: expect.stringContaining("too many values") });
    await replay.close();
  });
});

test("health asks for the models with the key", async () => {
  const source = await start({ apiKeys: ["sk-test-key-0001"] });
  const check = (given: SourceConfig) => transport.checkHealth({ source: given, runtime, timeoutMs: 2_000 });
  expect(await check(source)).toMatchObject({ ok: true, detail: "answers, and lists the model" });
  expect(await check({ ...source, model: "mistral-ocr-3" })).toMatchObject({
    ok: true,
    detail: "answers, but doesn't list the model",
  });
  await server.stop();
  const closed = await start({ apiKeys: ["sk-another-key"] });
  expect(await check(closed)).toMatchObject({ ok: false, detail: expect.stringContaining("401") });
  expect(server.ledger()[0]).toMatchObject({ method: "GET", path: "/v1/models", outcome: "unauthorized" });
});
