import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { type LineReader, readFileLines, readLines } from "./input.js";
import type { RawLine } from "./lines.js";

const dir = mkdtempSync(join(tmpdir(), "pgw-input-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

async function collect(reader: LineReader): Promise<RawLine[]> {
  const all: RawLine[] = [];
  for (let lines = await reader.next(); lines !== null; lines = await reader.next()) all.push(...lines);
  return all;
}

const fromChunks = (chunks: Uint8Array[], maxLineBytes?: number) =>
  collect(readLines(Readable.from(chunks), maxLineBytes === undefined ? {} : { maxLineBytes }));

describe("reading lines", () => {
  it("accepts a BOM, CRLF, blank lines and a last line without an end, and counts physical lines", async () => {
    const text = "\uFEFF{a}\r\n\r\n  \n{b}\n{ü\u2028}";
    expect(await fromChunks([Buffer.from(text)])).toEqual([
      { number: 1, text: "{a}" },
      { number: 4, text: "{b}" },
      { number: 5, text: "{ü\u2028}" },
    ]);
  });

  it("gives the same lines however the bytes are cut, plain or gzip", async () => {
    const line = fc.string({ unit: "binary" }).map((text) => text.replace(/[\s\uFEFF]/g, ""));
    await fc.assert(
      fc.asyncProperty(fc.array(line), fc.integer({ min: 1, max: 9 }), fc.boolean(), async (lines, size, gz) => {
        const plain = Buffer.from(lines.join("\n"));
        const bytes = gz ? gzipSync(plain) : plain;
        const chunks = [];
        for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
        const wanted = lines
          .map((text, index) => ({ number: index + 1, text: Buffer.from(text).toString() }))
          .filter(({ text }) => text !== "");
        expect(await fromChunks(chunks)).toEqual(wanted);
      }),
      { numRuns: 200 },
    );
  });

  it("reports a line over the cap and a line that isn't UTF-8, and goes on", async () => {
    const bytes = Buffer.concat([Buffer.from("12345678901\nok\n"), Buffer.from([0xff, 0xfe, 0x41, 0x0a])]);
    for (const size of [2, 3, 100]) {
      const chunks = [];
      for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
      expect(await fromChunks(chunks, 10)).toEqual([
        { number: 1, problem: expect.stringMatching(/longer than/) },
        { number: 2, text: "ok" },
        { number: 3, problem: "not valid UTF-8" },
      ]);
    }
  });

  it("names UTF-16, a cut gzip and a missing file as errors", async () => {
    await expect(fromChunks([Buffer.from("\uFEFFab", "utf16le")])).rejects.toThrow(/UTF-16/);
    await expect(fromChunks([gzipSync("abc\nabc\n").subarray(0, 15)])).rejects.toThrow(/unexpected end of file/);
    await expect(collect(readFileLines(join(dir, "none")))).rejects.toThrow(/ENOENT/);
  });

  it("reads no further than the byte limit and shows the stored bytes", async () => {
    const path = join(dir, "in.jsonl");
    writeFileSync(path, "a\nb\nc\n");
    const seen: Uint8Array[] = [];
    expect(await collect(readFileLines(path, { byteLimit: 4, onBytes: (chunk) => seen.push(chunk) }))).toHaveLength(2);
    expect(Buffer.concat(seen).toString()).toBe("a\nb\n");
    expect(await collect(readFileLines(path, { byteLimit: 0 }))).toEqual([]);
  });

  it("gives a pending read up when it is closed", async () => {
    const idle = new PassThrough();
    const reader = readLines(idle);
    const pending = reader.next();
    reader.close();
    await expect(pending).rejects.toThrow();
    expect(idle.destroyed).toBe(true);
  });
});
