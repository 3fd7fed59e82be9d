import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { overlayHtml } from "../../src/documents/overlay.js";
import { createPageReader, lookAtDocuments } from "../../src/documents/pages.js";
import { createPdfEngine } from "../../src/documents/pdf.js";
import type { OcrMediaType } from "../../src/domain/ocr.js";
import { mediaTypeOf, pictureSize } from "../../src/domain/picture.js";
import { pdfOf, pngOf, tiffOf } from "./pictures.js";

const folder = mkdtempSync(join(tmpdir(), "pgw-documents-"));
function fileOf(name: string, bytes: Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
}

describe("pictures by their content", () => {
  const jpeg = Buffer.from("ffd8ffe000104a46494600010100000100010000ffc0001108032004b003012200021101031101", "hex");
  const webp = Buffer.concat([
    Buffer.from("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00", "latin1"),
    Buffer.from([0xaf, 0x04, 0x00, 0x1f, 0x03, 0x00]),
  ]);
  test.each([
    ["image/png", pngOf(1_200, 800)],
    ["image/jpeg", jpeg],
    ["image/webp", webp],
    ["image/tiff", tiffOf(1_200, 800)],
  ] as const)("%s: format and size from its header", (mediaType, bytes) => {
    expect(mediaTypeOf(bytes)).toBe(mediaType);
    expect(pictureSize(bytes, mediaType)).toEqual({ width: 1_200, height: 800 });
  });

  test("a PDF may have junk before its header", () => {
    expect(mediaTypeOf(Buffer.from(`${" ".repeat(500)}%PDF-1.7`))).toBe("application/pdf");
    expect(mediaTypeOf(Buffer.from(`${" ".repeat(2_000)}%PDF-1.7`))).toBeUndefined();
    expect(mediaTypeOf(Buffer.from("\ufeff\r\n%PDF-1.7"))).toBe("application/pdf");
    const answer = Buffer.concat([Buffer.from("HTTP/1.1 200 OK\r\n\r\n"), pdfOf(1)]);
    expect(mediaTypeOf(answer)).toBe("application/pdf");
    expect(mediaTypeOf(answer.subarray(0, 200), answer.subarray(-200))).toBe("application/pdf");
  });

  test("a text that speaks of PDFs is none", () => {
    const script = '#!/bin/sh\necho "%PDF-1.7" > out.pdf\nls\n';
    expect(mediaTypeOf(Buffer.from(script))).toBeUndefined();
    expect(mediaTypeOf(Buffer.from(`# %PDF-1.4\n${"x".repeat(5_000)}`))).toBeUndefined();
  });

  test("never throws and never hangs, whatever stands behind the first bytes", () => {
    const starts = [pngOf(1, 1), jpeg, webp, tiffOf(1, 1)].map((bytes) => bytes.subarray(0, 16));
    const types: OcrMediaType[] = ["image/png", "image/jpeg", "image/webp", "image/tiff", "application/pdf"];
    fc.assert(
      fc.property(fc.constantFrom(...starts), fc.uint8Array({ maxLength: 200 }), (start, rest) => {
        const bytes = Buffer.concat([start, rest]);
        const size = pictureSize(bytes, mediaTypeOf(bytes) ?? "application/pdf");
        for (const type of types) pictureSize(Buffer.from(rest), type);
        expect(size === null || (size.width > 0 && size.height > 0)).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("pages of a PDF", () => {
  const engine = createPdfEngine();
  afterAll(() => engine.close());

  test("are drawn one by one as PNG of 200 dpi", async () => {
    const pdf = await engine.open(pdfOf(3), "three.pdf");
    expect(pdf.pageCount).toBe(3);
    const [first, third] = [await pdf.renderPage(1), await pdf.renderPage(3)];
    expect(pictureSize(first, "image/png")).toEqual({ width: 1_700, height: 2_200 });
    expect(first.equals(third)).toBe(false);
    await expect(pdf.renderPage(4)).rejects.toThrow("three.pdf has no page 4: its pages are 1 to 3");
    pdf.close();
  });

  test("of a broken file are told with its name", async () => {
    await expect(engine.open(Buffer.from("%PDF-1.4 and nothing"), "bad.pdf")).rejects.toThrow(
      /bad\.pdf can't be opened as a PDF/,
    );
  });

  test("come from several documents at once, more than are kept open", async () => {
    const paths = Array.from({ length: 6 }, (_, index) => fileOf(`d${index}.pdf`, pdfOf(2)));
    const reader = createPageReader();
    const pages = await Promise.all(paths.flatMap((path) => [reader.page(path, 1), reader.page(path, 2)]));
    for (const page of pages) expect(mediaTypeOf(page)).toBe("image/png");
    await expect(reader.page(join(folder, "gone.pdf"), 1)).rejects.toThrow(
      /gone\.pdf can't be read: there is no such file/,
    );
    reader.close();
  });
});

describe("what is to be read", () => {
  test("each file once, with its pages; two of one name are refused", async () => {
    const pdf = fileOf("a.pdf", pdfOf(4));
    const png = fileOf("b.png", pngOf(5, 5));
    const { documents } = await lookAtDocuments([pdf, png, pdf]);
    expect(documents.map(({ name, pageCount }) => [name, pageCount])).toEqual([
      ["a.pdf", 4],
      ["b.png", 1],
    ]);
    const other = mkdtempSync(join(tmpdir(), "pgw-documents-"));
    writeFileSync(join(other, "a.pdf"), pdfOf(1));
    await expect(lookAtDocuments([pdf, join(other, "a.pdf")])).rejects.toThrow(/have the same name/);
  });

  test("one that can't be read costs no other", async () => {
    const good = fileOf("good.png", pngOf(5, 5));
    const bad = [
      fileOf("c.txt", Buffer.from("hello")),
      folder,
      join(folder, "gone.pdf"),
      fileOf("cut.pdf", Buffer.from("%PDF-1.4 and nothing")),
      fileOf("empty.pdf", Buffer.alloc(0)),
    ];
    const { documents, unread } = await lookAtDocuments([...bad, good]);
    expect(documents.map(({ name }) => name)).toEqual(["good.png"]);
    expect(unread.map(({ message }) => message)).toEqual([
      expect.stringMatching(/c\.txt is neither PNG/),
      expect.stringMatching(/is a folder; name the files in it/),
      expect.stringMatching(/gone\.pdf can't be read: there is no such file/),
      expect.stringMatching(/cut\.pdf can't be opened as a PDF/),
      expect.stringMatching(/empty\.pdf is empty/),
    ]);
  });
});

test("the overlay shows texts as text, whatever a model wrote", () => {
  const html = overlayHtml('<script>"x"</script>', [
    {
      page: 1,
      picture: 'a".png',
      aspect: 1,
      failure: null,
      elements: [
        {
          type: "text",
          rawType: "<i>",
          bbox: [0.1, 0.2, 0.5, 0.6],
          page: 1,
          order: 0,
          text: "<img src=x onerror=alert(1)>",
        },
      ],
    },
    { page: 2, picture: null, aspect: 1, failure: "no & answer", elements: [] },
  ]);
  expect(html).not.toMatch(/<script|<img src=x|<i>/);
  expect(html).toContain("left:10.00%;top:20.00%;width:40.00%;height:40.00%");
  expect(html).toContain("Not read: no &amp; answer");
  expect(html).toContain('src="a&quot;.png"');
});

test("a file that changed since its pages were counted is not read, and a page without area is none", async () => {
  const path = fileOf("changing.png", pngOf(5, 5));
  const { documents } = await lookAtDocuments([path]);
  const { sha256 } = documents[0]!;
  const reader = createPageReader();
  expect(await reader.page(path, 1, { sha256 })).toEqual(pngOf(5, 5));
  reader.close();
  writeFileSync(path, pngOf(6, 6));
  const later = createPageReader();
  await expect(later.page(path, 1, { sha256 })).rejects.toThrow(
    /changing\.png was changed since its pages were counted/,
  );
  const flat = fileOf("flat.pdf", pdfOf(1, [0.01, 0.01]));
  await expect(later.page(flat, 1)).rejects.toThrow(/page 1 of .*flat\.pdf can't be drawn: it has no area/);
  later.close();
});

test("a pipe is refused instead of being waited for", async () => {
  const path = join(folder, "pipe.png");
  execFileSync("mkfifo", [path]);
  await expect(createPageReader().page(path, 1)).rejects.toThrow(/pipe\.png is no file/);
  const { unread } = await lookAtDocuments([path]);
  expect(unread[0]?.message).toMatch(/pipe\.png is no file/);
});
