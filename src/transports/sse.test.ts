import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SseReader, Utf8Decoder } from "./sse.js";

type Event = readonly [data: string, eventName: string];

function read(chunks: readonly Buffer[], maxUnits?: number): { events: Event[]; reader: SseReader } {
  const events: Event[] = [];
  const decoder = new Utf8Decoder();
  const reader = new SseReader((data, eventName) => {
    events.push([data, eventName]);
    return true;
  }, maxUnits);
  for (const chunk of chunks) reader.feed(decoder.decode(chunk));
  reader.feed(decoder.end());
  reader.end();
  return { events, reader };
}

const events = (text: string) => read([Buffer.from(text)]).events;

describe("grammar", () => {
  it.each([
    ["LF", "data: a\n\ndata: b\n\n"],
    ["CRLF", "data: a\r\n\r\ndata: b\r\n\r\n"],
    ["CR", "data: a\r\rdata: b\r\r"],
    ["mixed", "data: a\r\n\rdata: b\n\r\n"],
    ["no space", "data:a\n\ndata:b\n\n"],
    ["BOM", "\ufeffdata: a\n\ndata: b\n\n"],
    ["comments", ": hi\n\ndata: a\n: x\n\n:\ndata: b\n\n"],
    ["unknown fields", "id: 1\nretry: 5\nfoo: bar\ndata: a\n\nbaz\ndata: b\n\n"],
    ["end without blank line", "data: a\n\ndata: b"],
  ])("%s", (_name, text) => {
    expect(events(text)).toEqual([
      ["a", ""],
      ["b", ""],
    ]);
  });

  it("joins data lines, strips one space only, keeps event names to their event", () => {
    expect(events("event: error\ndata:  a\ndata\ndata: b\n\ndata: c\n\nevent: lost\n\ndata: d\n\n")).toEqual([
      [" a\n\nb", "error"],
      ["c", ""],
      ["d", ""],
    ]);
  });

  it("U+2028, U+2029 and U+0085 end no line", () => {
    expect(events("data: a\u2028b\u2029c\u0085d\n\n")).toEqual([["a\u2028b\u2029c\u0085d", ""]]);
  });

  it("hands an event over with the read that ends it, also when its last byte is a CR", () => {
    const seen: string[] = [];
    const reader = new SseReader((data) => seen.push(data) > 0);
    reader.feed("data: a\r\r");
    expect(seen).toEqual(["a"]);
    reader.feed("\ndata: b\r\n\r");
    expect(seen).toEqual(["a", "b"]);
    reader.feed("\n");
    expect(seen).toEqual(["a", "b"]);
  });

  it("stops when told to", () => {
    const seen: string[] = [];
    const reader = new SseReader((data) => {
      seen.push(data);
      return data !== "stop";
    });
    reader.feed("data: a\n\ndata: stop\n\ndata: b\n\n");
    reader.feed("data: c\n\n");
    reader.end();
    expect(seen).toEqual(["a", "stop"]);
  });
});

describe("limits", () => {
  it("an event beyond the cap ends the reading, in one line, in many reads or in many lines", () => {
    const line = Buffer.from("x".repeat(600));
    for (const chunks of [
      [Buffer.from("data: "), line, line],
      [Buffer.from(`data: ${"x".repeat(1_200)}`)],
      [Buffer.from(`data: ${"x".repeat(600)}\ndata: ${"x".repeat(600)}\n`)],
      [Buffer.from(": "), line, line],
    ]) {
      const { reader, events: seen } = read(chunks, 1_000);
      expect(reader.overflowed).toBe(true);
      expect(seen).toEqual([]);
    }
  });

  it("is linear for a line that comes byte by byte", () => {
    const time = (bytes: number) => {
      const started = process.cpuUsage();
      read(Array.from({ length: bytes }, () => Buffer.from("x")));
      return process.cpuUsage(started).user + 1;
    };
    time(50_000);
    const ratio = Math.min(...[1, 2, 3].map(() => time(200_000) / time(50_000)));
    expect(ratio).toBeLessThan(12);
  });
});

it("property: the same events however the bytes are split", () => {
  const line = fc.oneof(
    fc.string({ unit: "grapheme" }).map((text) => `data: ${text.replace(/[\r\n]/g, "")}`),
    fc.constantFrom("", "", ": c", "event: e", "data:", "data", "id: 7", "x: y"),
  );
  const text = fc
    .tuple(fc.boolean(), fc.array(fc.tuple(line, fc.constantFrom("\n", "\r\n", "\r")), { maxLength: 30 }))
    .map(([bom, lines]) => (bom ? "\ufeff" : "") + lines.map(([content, end]) => content + end).join(""));
  fc.assert(
    fc.property(text, fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 20 }), (whole, sizes) => {
      const bytes = Buffer.from(whole);
      const chunks: Buffer[] = [];
      for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
        const size = sizes[turn % sizes.length]!;
        chunks.push(bytes.subarray(at, at + size));
        at += size;
      }
      expect(read(chunks).events).toEqual(read([bytes]).events);
    }),
    { numRuns: 500 },
  );
});

it("property: the decoder keeps characters whole", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 1, max: 5 }), (text, size) => {
      const bytes = Buffer.from(text);
      const decoder = new Utf8Decoder();
      let decoded = "";
      for (let at = 0; at < bytes.length; at += size) decoded += decoder.decode(bytes.subarray(at, at + size));
      expect(decoded + decoder.end()).toBe(bytes.toString("utf8"));
    }),
  );
});
