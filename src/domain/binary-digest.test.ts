import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { digestBinaryParts } from "./binary-digest.js";

const bytes = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0xff, 0x00]);
const base64 = bytes.toString("base64");
const hash = createHash("sha256").update(bytes).digest("hex");

/** The part as it is recorded when it is the only one of a message. */
function recorded(part: unknown): unknown {
  const messagesJson = JSON.stringify([{ role: "user", content: [part] }]);
  return JSON.parse(digestBinaryParts(messagesJson))[0].content[0];
}

describe("digest of binary parts", () => {
  test("an image's data URL becomes the hash, type and size of its bytes", () => {
    const image = { type: "image_url", image_url: { url: `data:image/png;base64,${base64}`, detail: "low" } };
    expect(recorded(image)).toEqual({
      type: "image_url",
      image_url: { url: `sha256:${hash} image/png 6`, detail: "low" },
    });
  });

  test("audio, files and base64 sources too", () => {
    expect(recorded({ type: "input_audio", input_audio: { data: base64, format: "wav" } })).toEqual({
      type: "input_audio",
      input_audio: { data: `sha256:${hash} audio/wav 6`, format: "wav" },
    });
    expect(recorded({ type: "file", file: { filename: "a.pdf", file_data: base64 } })).toEqual({
      type: "file",
      file: { filename: "a.pdf", file_data: `sha256:${hash} application/octet-stream 6` },
    });
    const pdf = { type: "file", file: { file_data: `data:application/pdf;base64,${base64}` } };
    expect(recorded(pdf)).toEqual({ type: "file", file: { file_data: `sha256:${hash} application/pdf 6` } });
    expect(recorded({ type: "image", source: { type: "base64", media_type: "image/webp", data: base64 } })).toEqual({
      type: "image",
      source: { type: "base64", media_type: "image/webp", data: `sha256:${hash} image/webp 6` },
    });
  });

  test("other forms of data URLs: upper case, parameters, not base64, a plain string, nested in a tool result", () => {
    const url = (text: string): unknown =>
      (recorded({ type: "image_url", image_url: text }) as { image_url: string }).image_url;
    expect(url(`DATA:image/PNG;name=x;BASE64,${base64}`)).toBe(`sha256:${hash} image/PNG 6`);
    expect(url("data:,a%20b")).toBe(`sha256:${createHash("sha256").update("a b").digest("hex")} text/plain 3`);
    expect(url("data:,100%")).toMatch(/^sha256:[0-9a-f]{64} text\/plain 4$/);
    const nested = {
      type: "tool_result",
      content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${base64}` } }],
    };
    expect(JSON.stringify(recorded(nested))).not.toContain(base64);
  });

  test("without binary the very same text comes back", () => {
    const texts = [
      [{ role: "user", content: "data:image/png;base64,AAAA is how it starts" }],
      [{ role: "user", content: [{ type: "text", text: `data:image/png;base64,${base64}` }] }],
      [{ role: "user", content: [{ type: "image_url", image_url: { url: "https://example.org/a.png" } }] }],
      [{ role: "user", content: null }, "odd", null],
      { not: 'a list, with "input_audio"' },
    ];
    for (const messages of texts) {
      const messagesJson = JSON.stringify(messages);
      expect(digestBinaryParts(messagesJson)).toBe(messagesJson);
    }
  });

  test("texts, order and unknown fields of the other parts are kept", () => {
    const messages = [
      { role: "system", content: "s", custom: { z: 1, a: 2 } },
      {
        role: "user",
        content: [
          { type: "text", text: "look" },
          { type: "image_url", image_url: { url: `data:image/png;base64,${base64}` } },
        ],
      },
    ];
    const expected = JSON.stringify(messages).replace(`data:image/png;base64,${base64}`, `sha256:${hash} image/png 6`);
    expect(digestBinaryParts(JSON.stringify(messages))).toBe(expected);
  });

  test("it never fails on any JSON, is idempotent, and leaves no data URL outside texts", () => {
    const leaf = fc.oneof(
      fc.string(),
      fc.constantFrom(`data:image/png;base64,${base64}`, "data:", "data:,"),
      fc.integer(),
    );
    const part = fc.dictionary(
      fc.constantFrom("type", "text", "url", "input_audio", "data", "file_data", "__proto__"),
      leaf,
    );
    const nested = fc.dictionary(fc.constantFrom("input_audio", "file", "source"), part);
    const content = fc.array(fc.oneof(part, nested, fc.jsonValue()));
    fc.assert(
      fc.property(fc.array(fc.record({ role: fc.string(), content })), (messages) => {
        const digested = digestBinaryParts(JSON.stringify(messages));
        expect(digestBinaryParts(digested)).toBe(digested);
        expect(digested.replaceAll(`"text":"data:`, "")).not.toContain(`"data:image/png;base64,${base64}"`);
      }),
    );
  });

  test("deep nesting does not fill the stack", () => {
    const deep = `[{"role":"user","content":${"[".repeat(3_000)}"data:,x"${"]".repeat(3_000)}}]`;
    expect(digestBinaryParts(deep)).toBe(deep);
  });
});
