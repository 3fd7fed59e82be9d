import { createServer } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { OcrImage } from "../../domain/ocr.js";
import { writeZip } from "../../testing/ocr/zip-writer.js";
import { runtime, TestContext, testSource } from "../attempt.test-helper.js";
import { createMonkeyOcrTransport } from "./monkey-ocr.js";

/** A server that parses anything into the archive that the test has put there. */
let archive: Buffer = Buffer.alloc(0);
let baseUrl = "";
const server = createServer((request, response) => {
  request.resume();
  if (request.method === "GET") {
    response.end(archive);
    return;
  }
  request.on("end", () => response.end(JSON.stringify({ success: true, message: "", download_url: "/static/x.zip" })));
});
const transport = createMonkeyOcrTransport({ runtime });
const PDF: OcrImage = { bytes: Buffer.from("%PDF-1.7"), mediaType: "application/pdf", size: null };

beforeAll(async () => {
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address !== null && typeof address === "object") baseUrl = `http://127.0.0.1:${address.port}`;
});
afterAll(async () => {
  await transport.close();
  server.closeAllConnections();
  server.close();
});

function middle(text: string, size: unknown = [612, 792]): string {
  const block = { type: "text", bbox: [61.2, 79.2, 306, 396], lines: [{ spans: [{ type: "text", content: text }] }] };
  return JSON.stringify({ pdf_info: [{ page_idx: 0, page_size: size, preproc_blocks: [block] }] });
}

function parse() {
  const source = testSource(baseUrl, { name: "reader" });
  return transport.parseLayout({ source, image: PDF, context: new TestContext() });
}

test("pages of a split document are told by their folders, from 0 there and from 1 here", async () => {
  archive = writeZip(
    [10, 0, 1].map((n) => ({ name: `page_${n}/x_page_${n}_middle.json`, bytes: middle(`text ${n}`) })),
  );
  const { layout, pageCount } = await parse();
  expect(pageCount).toBe(3);
  expect(layout.elements.map(({ page, text }) => [page, text])).toEqual([
    [1, "text 0"],
    [2, "text 1"],
    [11, "text 10"],
  ]);
});

test("a part of a split document that can't be used is named by its page", async () => {
  archive = writeZip([
    { name: "page_0/x_middle.json", bytes: middle("a") },
    { name: "page_1/x_middle.json", bytes: "{" },
  ]);
  await expect(parse()).rejects.toMatchObject({
    code: "bad_layout",
    message: expect.stringMatching(/page 2 is no JSON/),
  });
  archive = writeZip([{ name: "page_4/x_middle.json", bytes: middle("a", []) }]);
  await expect(parse()).rejects.toMatchObject({
    code: "bad_layout",
    message: expect.stringMatching(/page 5 tells no/),
  });
});

test("layouts that no page is told of are not put together", async () => {
  archive = writeZip(["a", "b"].map((name) => ({ name: `${name}_middle.json`, bytes: middle(name) })));
  const error = await parse().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ name: "ResultInvalidError", code: "bad_archive" });
  expect(error).toMatchObject({ details: { entryCount: 2, entries: ["a_middle.json", "b_middle.json"] } });
  expect(String(error)).toMatch(/holds 2 members that end with _middle.json.*2 entries seen: a_middle.json/);
});

test("a web page in the place of an archive is none, and nothing of it is executed or kept", async () => {
  archive = Buffer.from("<html>not found</html>");
  await expect(parse()).rejects.toMatchObject({
    code: "bad_archive",
    message: expect.stringMatching(/no ZIP archive/),
  });
});

test("a key in the name of an entry isn't shown", async () => {
  archive = writeZip([{ name: "sk-test-key-0001.txt", bytes: "" }]);
  const error = await parse().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: "bad_archive" });
  expect(JSON.stringify(error)).not.toContain("sk-test-key-0001");
});
