import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { OPENAI_PROFILE } from "../../domain/profile.js";
import type { SourceConfig } from "../../domain/source.js";
import { RequestRejectedError, ResultInvalidError, SourceDeadError, TransientError } from "../../errors.js";
import type { OcrTransport } from "../../ports/transport.js";
import type { OcrServer } from "../../testing/ocr/http.js";
import { type PaddleChanges, type PaddleServerOptions, startPaddleServer } from "../../testing/ocr/paddle-server.js";
import { runtime, TestContext, testSource } from "../attempt.test-helper.js";
import { startReplayServer } from "../replay-server.test-helper.js";
import { failure, ocrAttempt, PDF, picture } from "./ocr.test-helper.js";
import { createPaddleOcrTransport } from "./paddle.js";

// Its own for each test: a port may come again, with a server that knows nothing of the sockets kept for the one before.
let transport: OcrTransport;
beforeEach(() => {
  transport = createPaddleOcrTransport({ runtime });
});
let server: OcrServer<PaddleChanges>;

async function start(options: PaddleServerOptions = {}, overrides: Partial<SourceConfig> = {}) {
  server = await startPaddleServer(options);
  return testSource(server.baseUrl, { transport: "paddle", ...overrides });
}

const TWO_PAGES = [
  {
    width: 1_000,
    height: 500,
    markdown: "# One",
    blocks: [{ label: "doc_title", content: "One", bbox: [100, 50, 500, 100] }],
  },
  {
    width: 2_000,
    height: 4_000,
    markdown: "Two",
    blocks: [
      { label: "table", content: "<table><tr><td>2</td></tr></table>", bbox: [200, 400, 1_000, 2_000] },
      { label: "display_formula", content: "$$ E=mc^2 $$", bbox: [200, 2_400, 1_000, 2_800] },
      { label: "paragraph_title", content: "Results", bbox: [200, 2_900, 1_000, 3_000] },
      { label: "number", content: "2", bbox: [900, 3_900, 1_000, 4_000] },
      { label: "image", content: '<img src="imgs/a.jpg" alt="Image" />', bbox: [0, 0, 100, 100] },
      { label: "spotting_new", content: "x", bbox: [0, 0, 100, 100] },
    ],
  },
];

afterEach(async () => {
  await transport.close();
  await server?.stop();
});

describe("what is asked", () => {
  test("a picture is file type 1, a PDF 0, both as base64, without what would move boxes", async () => {
    const source = await start();
    await transport.parseLayout(ocrAttempt(source));
    await transport.recognizeText(ocrAttempt(source, PDF));
    const [image, pdf] = server.ledger();
    expect(image).toMatchObject({ method: "POST", path: "/layout-parsing", outcome: "answered" });
    expect(image?.body).toEqual({
      file: picture().bytes.toString("base64"),
      fileType: 1,
      useLayoutDetection: true,
      useDocUnwarping: false,
      useDocOrientationClassify: false,
      visualize: false,
    });
    expect(pdf?.body).toMatchObject({ file: PDF.bytes.toString("base64"), fileType: 0 });
  });

  test("a base URL that ends with the path is taken as it is", async () => {
    const source = await start();
    await transport.recognizeText(ocrAttempt({ ...source, baseUrl: `${source.baseUrl}/layout-parsing` }));
    await transport.recognizeText(ocrAttempt({ ...source, baseUrl: `${source.baseUrl}/layout-parsing/` }));
    const whole = { ...source, baseUrl: `${source.baseUrl}/layout-parsing` };
    expect(await transport.checkHealth({ source: whole, runtime, timeoutMs: 2_000 })).toMatchObject({
      detail: "ready",
    });
    expect(server.ledger().map(({ path }) => path)).toEqual(["/layout-parsing", "/layout-parsing", "/health"]);
  });

  test("the hosted service gets its key by the profile's scheme", async () => {
    const profile = { ...OPENAI_PROFILE, auth: { header: "authorization", scheme: "token" } };
    const source = await start({ apiKeys: ["sk-test-key-0001"] }, { profile });
    await expect(transport.recognizeText(ocrAttempt(source))).resolves.toMatchObject({ text: expect.any(String) });
    const error = await failure(transport.recognizeText(ocrAttempt({ ...source, profile: OPENAI_PROFILE })));
    expect(error).toBeInstanceOf(SourceDeadError);
    expect(error).toMatchObject({
      code: "auth",
      message: expect.stringContaining("src_1 ocr_text credential rejected"),
    });
  });
});

describe("what is answered", () => {
  test("text is the Markdown of all pages", async () => {
    const source = await start({ pages: TWO_PAGES });
    const answer = await transport.recognizeText(ocrAttempt(source, PDF));
    expect(answer).toMatchObject({
      text: "# One\n\nTwo",
      pageCount: 2,
      usage: null,
      modelReported: null,
      statusCode: 200,
    });
    expect(answer.latencyMs).toBeGreaterThan(0);
  });

  test("boxes are shares of their own page, pages count from 1, labels become types", async () => {
    const source = await start({ pages: TWO_PAGES });
    const { layout, pageCount } = await transport.parseLayout(ocrAttempt(source, PDF));
    expect(pageCount).toBe(2);
    expect(layout.pages).toEqual([
      { page: 1, width: 1_000, height: 500, unit: "pixel" },
      { page: 2, width: 2_000, height: 4_000, unit: "pixel" },
    ]);
    expect(layout.elements).toEqual([
      { type: "title", rawType: "doc_title", bbox: [0.1, 0.1, 0.5, 0.2], page: 1, order: 0, text: "One" },
      {
        type: "table",
        rawType: "table",
        bbox: [0.1, 0.1, 0.5, 0.5],
        page: 2,
        order: 0,
        html: "<table><tr><td>2</td></tr></table>",
      },
      { type: "formula", rawType: "display_formula", bbox: [0.1, 0.6, 0.5, 0.7], page: 2, order: 1, latex: "E=mc^2" },
      {
        type: "heading",
        rawType: "paragraph_title",
        bbox: [0.1, 0.725, 0.5, 0.75],
        page: 2,
        order: 2,
        text: "Results",
      },
      { type: "page_number", rawType: "number", bbox: [0.45, 0.975, 0.5, 1], page: 2, order: 3, text: "2" },
      { type: "image", rawType: "image", bbox: [0, 0, 0.05, 0.025], page: 2, order: 4 },
      { type: "other", rawType: "spotting_new", bbox: [0, 0, 0.05, 0.025], page: 2, order: 5, text: "x" },
    ]);
    expect(layout.droppedElements).toBe(0);
  });

  test("broken boxes are mended or dropped and counted, and nothing throws", async () => {
    const source = await start({ faults: { brokenBoxes: true } });
    const { layout } = await transport.parseLayout(ocrAttempt(source));
    expect(layout.elements.map(({ text }) => text)).toEqual(["Annual report", "All is well.", "broken 0", "broken 1"]);
    expect(layout.droppedElements).toBe(7);
    for (const { bbox } of layout.elements) {
      for (const corner of bbox) expect(corner >= 0 && corner <= 1).toBe(true);
      expect(bbox[0] < bbox[2] && bbox[1] < bbox[3]).toBe(true);
    }
  });

  test("a page without a size has that of its file, or is an unusable layout", async () => {
    const page = { prunedResult: { parsing_res_list: [{ block_label: "text", block_bbox: [0, 0, 5, 5] }] } };
    const result = (dataInfo: unknown) => ({ errorCode: 0, result: { layoutParsingResults: [page], dataInfo } });
    const ofFile = {
      pages: [
        { width: 20, height: 5 },
        { width: 50, height: 50 },
      ],
    };
    const two = { errorCode: 0, result: { layoutParsingResults: [page, page], dataInfo: ofFile } };
    const answers = [result({ type: "image", width: 10, height: 10 }), result(ofFile), two];
    const replay = await startReplayServer(() => ({ chunks: [{ utf8: JSON.stringify(answers.shift()) }] }));
    const source = testSource(replay.baseUrl);
    const boxOf = async () => (await transport.parseLayout(ocrAttempt(source))).layout.elements[0]?.bbox;
    expect(await boxOf()).toEqual([0, 0, 0.5, 0.5]);
    expect(await boxOf()).toEqual([0, 0, 0.25, 1]);
    const { layout } = await transport.parseLayout(ocrAttempt(source));
    expect(layout.elements.map(({ bbox }) => bbox)).toEqual([
      [0, 0, 0.25, 1],
      [0, 0, 0.1, 0.1],
    ]);
    await replay.close();

    const sizeless = await start({ faults: { noSize: true } });
    const error = await failure(transport.parseLayout(ocrAttempt(sizeless)));
    expect(error).toBeInstanceOf(ResultInvalidError);
    expect(error).toMatchObject({ code: "bad_layout", message: expect.stringContaining("page 1 has no usable size") });
  });

  test("blank pages leave no gap in the text, and blocks that are none are counted", async () => {
    const pageOf = (text: string) => ({
      markdown: { text },
      prunedResult: { width: 10, height: 10, parsing_res_list: ["none", null, { block_bbox: [0, 0, 5, 5] }] },
    });
    const body = { errorCode: 0, result: { layoutParsingResults: [pageOf("a"), pageOf(" "), pageOf("b")] } };
    const replay = await startReplayServer({ chunks: [{ utf8: JSON.stringify(body) }] });
    const source = testSource(replay.baseUrl);
    expect(await transport.recognizeText(ocrAttempt(source))).toMatchObject({ text: "a\n\nb", pageCount: 3 });
    const { layout } = await transport.parseLayout(ocrAttempt(source));
    expect(layout.droppedElements).toBe(6);
    expect(layout.elements).toHaveLength(3);
    await replay.close();
  });

  test("a page without Markdown is read from its blocks", async () => {
    const blocks = [{ block_content: "a" }, { block_content: 5 }, "none", { block_content: "b" }];
    const body = { errorCode: 0, result: { layoutParsingResults: [{ prunedResult: { parsing_res_list: blocks } }] } };
    const replay = await startReplayServer({ chunks: [{ utf8: JSON.stringify(body) }] });
    expect(await transport.recognizeText(ocrAttempt(testSource(replay.baseUrl)))).toMatchObject({ text: "a\n\nb" });
    await replay.close();
  });
});

describe("what fails", () => {
  beforeEach(async () => void (await start()));

  test.each([
    [{ status: 422 }, RequestRejectedError, "bad_request", "The server failed with 422."],
    [{ status: 500 }, TransientError, "upstream_error", "The server failed with 500."],
    [{ status: 429 }, TransientError, "rate_limit", "The server failed with 429."],
    [{ status: 404 }, SourceDeadError, "endpoint_not_found", "The server failed with 404."],
    [{ status: 403 }, SourceDeadError, "auth", "The server failed with 403."],
    [{ errorCode: 422 }, RequestRejectedError, "bad_request", "The pipeline failed."],
    [{ errorCode: 500 }, TransientError, "upstream_error", "The pipeline failed."],
    [{ errorCode: 11_001 }, TransientError, "upstream_error", "The pipeline failed."],
    [{ html: true }, SourceDeadError, "endpoint_not_found", "Welcome"],
    [{ cut: true }, TransientError, "truncated", undefined],
    [{ reset: true }, TransientError, "network", undefined],
  ])("%j", async (faults, type, code, upstreamMessage) => {
    server.change({ faults });
    const error = await failure(transport.parseLayout(ocrAttempt(testSource(server.baseUrl))));
    expect(error).toBeInstanceOf(type);
    expect(error).toMatchObject({ code, message: expect.stringMatching(/^src_1 ocr_layout /) });
    expect(error.upstreamMessage).toBe(upstreamMessage);
  });

  test("a hang ends by TIMEOUT_S, and an abort closes the socket with its own reason", async () => {
    server.change({ faults: { hang: true } });
    const late = await failure(transport.recognizeText(ocrAttempt(testSource(server.baseUrl, { timeoutMs: 60 }))));
    expect(late).toMatchObject({
      code: "timeout",
      message: expect.stringContaining("src_1 ocr_text transient failure"),
    });
    const context = new TestContext();
    const pending = failure(transport.recognizeText(ocrAttempt(testSource(server.baseUrl), picture(), context)));
    await expect.poll(() => server.ledger().length).toBe(2);
    const reason = new Error("the caller left");
    context.abort(reason);
    expect(await pending).toBe(reason);
    expect(context.sent).toBe(1);
    expect(context.listeners.size).toBe(0);
    await expect.poll(() => server.ledger()[1]?.endedAtMs).not.toBeNull();
  });

  test.each([
    ["no page", '{"errorCode":0,"errorMsg":"Success","result":{"layoutParsingResults":[]}}', "empty"],
    ["no text", '{"errorCode":0,"result":{"layoutParsingResults":[{"markdown":{"text":" \\n"}}]}}', "empty"],
  ])("%s is an unusable result", async (_name, body, code) => {
    const replay = await startReplayServer({ chunks: [{ utf8: body }] });
    const error = await failure(transport.recognizeText(ocrAttempt(testSource(replay.baseUrl))));
    expect(error).toBeInstanceOf(ResultInvalidError);
    expect(error).toMatchObject({ code, message: expect.stringMatching(/^src_1 ocr_text unusable result: /) });
    await replay.close();
  });
});

describe("health", () => {
  const check = (source: SourceConfig, timeoutMs = 2_000) => transport.checkHealth({ source, runtime, timeoutMs });

  test("of a server that is up, that has no such path, and that refuses the key", async () => {
    const source = await start();
    expect(await check(source)).toMatchObject({ ok: true, detail: "ready" });
    expect(server.ledger()[0]).toMatchObject({ method: "GET", path: "/health" });
    await server.stop();
    expect(await check(source)).toMatchObject({ ok: false, detail: expect.stringContaining("no connection") });
    const hosted = await start({ hasHealth: false });
    expect(await check(hosted)).toMatchObject({
      ok: true,
      detail: expect.stringContaining("reachable; it has no GET /health (404)"),
    });
    await server.stop();
    const closed = await start({ apiKeys: ["sk-another-key"] });
    const refused = await check(closed);
    expect(refused.ok).toBe(false);
    expect(refused.detail).toContain("401");
    expect(refused.detail).not.toContain("sk-");
  });

  test("a server in trouble, one at its limit, one that never answers, and an address that is none", async () => {
    const answers = [500, 503, 429, 405, 400].map((status) => ({ status, chunks: [{ utf8: "{}" }] }));
    const unhealthy = { chunks: [{ utf8: '{"errorCode":500,"errorMsg":"Unhealthy"}' }] };
    const scripts = [...answers, unhealthy, { end: "hang" }];
    const replay = await startReplayServer(() => scripts.shift());
    const source = testSource(replay.baseUrl);
    const seen = [];
    for (let n = 0; n < 6; n += 1) seen.push((await check(source)).ok);
    expect(seen).toEqual([false, false, true, true, true, false]);
    expect(await check(source, 50)).toMatchObject({ ok: false, detail: expect.stringContaining("50 ms") });
    await replay.close();
    expect(await check(testSource("nonsense"))).toMatchObject({ ok: false });
  });

  test("a check that is cancelled says so", async () => {
    const replay = await startReplayServer(() => undefined);
    const controller = new AbortController();
    const source = testSource(replay.baseUrl);
    const pending = transport.checkHealth({ source, runtime, timeoutMs: 5_000, signal: controller.signal });
    await expect.poll(() => replay.requests.length).toBe(1);
    controller.abort();
    expect(await pending).toMatchObject({ ok: false, detail: "the check was cancelled" });
    expect(await transport.checkHealth({ source, runtime, timeoutMs: 5_000, signal: controller.signal })).toMatchObject(
      {
        ok: false,
      },
    );
    await replay.close();
  });
});
