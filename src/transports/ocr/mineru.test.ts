import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { OcrImage, OcrMediaType } from "../../domain/ocr.js";
import type { SourceConfig } from "../../domain/source.js";
import { type MinerUFaults, startMinerUServer } from "../../testing/ocr/mineru-server.js";
import { runtime, TestContext, testSource } from "../attempt.test-helper.js";
import { createMinerUTransport } from "./mineru.js";

const PNG: OcrImage = { bytes: Buffer.from("\x89PNG a picture", "latin1"), mediaType: "image/png", size: null };
const PDF: OcrImage = { bytes: Buffer.from("%PDF-1.7 a document"), mediaType: "application/pdf", size: null };
const INVALID = "ResultInvalidError";

let transport: ReturnType<typeof createMinerUTransport>;
let server: Awaited<ReturnType<typeof startMinerUServer>>;

beforeAll(() => {
  transport = createMinerUTransport({ runtime });
});
afterAll(() => transport.close());
beforeEach(async () => {
  server = await startMinerUServer({ pages: 3 });
});
afterEach(() => server.stop());

function attempt(image: OcrImage = PNG, overrides: Partial<SourceConfig> = {}) {
  return { source: testSource(server.baseUrl, { name: "reader", ...overrides }), image, context: new TestContext() };
}

async function failureOf(promise: Promise<unknown>) {
  return promise.then(
    (value) => {
      throw new Error(`no failure but ${JSON.stringify(value)}`);
    },
    (error: Error) => error,
  );
}

test("text is the Markdown of all pages, which are counted", async () => {
  const { text, pageCount } = await transport.recognizeText(attempt(PDF));
  expect(text).toMatch(/page 1.*page 2.*page 3/s);
  expect(pageCount).toBe(3);
  const [entry] = server.ledger();
  expect(entry).toMatchObject({
    method: "POST",
    path: "/file_parse",
    fileName: "scan.pdf",
    fileBytes: PDF.bytes.length,
  });
  // Language, back end and method stay the server's own.
  expect(entry?.fields).toEqual({
    return_md: "true",
    return_middle_json: "false",
    return_content_list: "true",
    return_model_output: "false",
    return_images: "false",
    response_format_zip: "false",
  });
});

test.each<[OcrMediaType, string]>([
  ["image/png", "scan.png"],
  ["image/jpeg", "scan.jpg"],
  ["image/webp", "scan.webp"],
  ["image/tiff", "scan.tiff"],
  ["application/pdf", "scan.pdf"],
])("a file of %s is sent as %s", async (mediaType, fileName) => {
  await transport.recognizeText(attempt({ ...PNG, mediaType }));
  expect(server.ledger()[0]?.fileName).toBe(fileName);
});

test("a layout is that of middle_json, in points", async () => {
  server.change({ faults: { brokenBoxes: true, nan: true } });
  const { layout, pageCount } = await transport.parseLayout(attempt(PDF));
  expect(pageCount).toBe(3);
  expect(layout.pages.map(({ page, unit, width }) => [page, unit, width])).toEqual(
    [1, 2, 3].map((n) => [n, "point", 612]),
  );
  expect(layout.elements[0]).toMatchObject({ type: "title", bbox: [72 / 612, 60 / 792, 540 / 612, 84 / 792] });
  expect(layout.droppedElements).toBe(6);
});

test("a layout without middle_json is that of the list, from 0 to 1000", async () => {
  server.change({ faults: { noMiddleJson: true } });
  const { layout, pageCount } = await transport.parseLayout(attempt(PDF));
  expect(pageCount).toBe(3);
  expect(layout.pages[0]).toEqual({ page: 1, width: 1, height: 1, unit: "normalised" });
  expect(layout.elements[0]).toMatchObject({ type: "title", bbox: [0.118, 0.076, 0.882, 0.106] });
});

test.each<[string, MinerUFaults, "text" | "layout", string, string, RegExp]>([
  ["failed task", { failure: "no such model" }, "text", "TransientError", "upstream_error", /409/],
  [
    "refused kind of file",
    { refusesType: true },
    "text",
    "RequestRejectedError",
    "unsupported_modality",
    /Unsupported/,
  ],
  ["overloaded server", { overloaded: true }, "layout", "TransientError", "overloaded", /503/],
  ["failing server", { failureRate: 1 }, "layout", "TransientError", "upstream_error", /500/],
  ["answer without results", { noResults: true }, "text", "TransientError", "malformed", /neither results.*completed/],
  ["empty text", { empty: true }, "text", INVALID, "empty", /no text was found/],
  [
    "error told as text",
    { errorText: "Error: Request timeout" },
    "text",
    "TransientError",
    "upstream_error",
    /timeout/,
  ],
  ["error told in a span", { errorText: "Error: 7" }, "layout", INVALID, "malformed", /Error: 7/],
  ["error told in the list", { errorText: "Error: 7", noMiddleJson: true }, "layout", INVALID, "malformed", /Error: 7/],
  [
    "answer without layout",
    { noLayout: true },
    "layout",
    INVALID,
    "bad_layout",
    /neither middle_json nor content_list/,
  ],
  ["page without size", { noPageSize: true }, "layout", INVALID, "bad_layout", /page_size/],
])("%s", async (_name, faults, kind, name, code, message) => {
  server.change({ faults });
  const ask = kind === "text" ? transport.recognizeText : transport.parseLayout;
  const error = await failureOf(ask(attempt()));
  expect(error).toMatchObject({ name, code, sourceName: "reader" });
  expect(error.message).toMatch(new RegExp(`^reader ocr_${kind} `));
  expect(error.message).toMatch(message);
});

describe("health", () => {
  const check = () => transport.checkHealth({ source: attempt().source, runtime, timeoutMs: 2_000 });

  test("tells what is in progress, and of 503 that it isn't well", async () => {
    expect(await check()).toMatchObject({ ok: true, detail: "ready, 0 in progress, 0 queued" });
    server.change({ faults: { unhealthy: true } });
    expect(await check()).toMatchObject({ ok: false, detail: expect.stringMatching(/503/) });
  });
});
