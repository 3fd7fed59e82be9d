import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { type ChatRequest, TransientError } from "../src/index.js";
import { attemptErrorOf, call, replyOf, type Way } from "./support/calls.js";
import { caseClient, sourceOf } from "./support/case-client.js";
import { chatBody, DONE_EVENT, deltaEvent, type Respond, startRecordingServer } from "./support/recording-server.js";

/** Answers that are compressed though we asked otherwise, cut inside the compression, or made to hurt. */

const WAYS: readonly Way[] = ["chat", "stream"];
const hi: ChatRequest = { messages: [{ role: "user", content: "hi" }] };
const MIB = 1_024 * 1_024;

const CODINGS = [
  ["gzip", gzipSync],
  ["br", (bytes: Buffer) => brotliCompressSync(bytes)],
  ["deflate", deflateSync],
  ["deflate", deflateRawSync],
] as const;

/** One answer, its bytes in pieces. */
function answering(contentType: string, coding: string | null, bytes: Buffer, pieceBytes = 700): Respond {
  return (response) => {
    response.writeHead(200, {
      "content-type": contentType,
      ...(coding === null ? {} : { "content-encoding": coding }),
    });
    for (let at = 0; at < bytes.length; at += pieceBytes) response.write(bytes.subarray(at, at + pieceBytes));
    response.end();
  };
}

async function answered(way: Way, respond: Respond) {
  await using server = await startRecordingServer(respond);
  const { client } = caseClient([sourceOf("s_1", server.baseUrl)], { retry: { maxAttempts: 1 } });
  try {
    return await call(client, way, hi);
  } finally {
    await client.close();
  }
}

async function peakGrowthBytes(work: () => Promise<unknown>): Promise<number> {
  const before = process.memoryUsage().rss;
  let peak = before;
  const sampler = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().rss);
  }, 2);
  try {
    await work();
  } finally {
    clearInterval(sampler);
  }
  return Math.max(peak, process.memoryUsage().rss) - before;
}

const TEXT = "a long answer, ".repeat(5_000);
const streamed = Buffer.from(`${deltaEvent(TEXT)}${deltaEvent("the end", "stop")}${DONE_EVENT}`);
const plain = Buffer.from(chatBody(`${TEXT}the end`));

describe.each(WAYS)("%s(): a compressed answer", (way) => {
  it.each(CODINGS)("in %s is read", async (coding, compress) => {
    const sse = await answered(way, answering("text/event-stream", coding, compress(streamed)));
    expect(replyOf(sse).content).toBe(`${TEXT}the end`);
    const json = await answered(way, answering("application/json", coding, compress(plain)));
    expect(replyOf(json).content).toBe(`${TEXT}the end`);
  });

  it.each(CODINGS)("in %s, cut anywhere, is no answer", async (coding, compress) => {
    const body = compress(streamed);
    for (const share of [0.1, 0.5, 0.9]) {
      const cut = body.subarray(0, Math.floor(body.length * share));
      const error = attemptErrorOf(await answered(way, answering("text/event-stream", coding, cut)));
      expect(error).toBeInstanceOf(TransientError);
      expect(["truncated", "malformed", "empty"]).toContain(error.code);
    }
  });

  it("with a coding that nobody knows, or a chain of them, is malformed", async () => {
    const chain = [1, 2, 3, 4, 5, 6].reduce((bytes) => gzipSync(bytes), plain);
    for (const [coding, bytes] of [
      ["zstd-of-tomorrow", plain],
      ["gzip, gzip, gzip, gzip, gzip, gzip", chain],
      ["gzip", Buffer.from("no gzip at all")],
    ] as const) {
      const error = attemptErrorOf(await answered(way, answering("application/json", coding, bytes)));
      expect(error).toMatchObject({ name: "TransientError", code: "malformed" });
    }
    const twice = answering("application/json", "gzip, gzip", gzipSync(gzipSync(plain)));
    expect(replyOf(await answered(way, twice)).content).toBe(`${TEXT}the end`);
  });
});

const BOMB_BYTES = 200 * MIB;
const GROWTH_BYTES = 128 * MIB;

/** 200 MiB behind some hundred bytes to some hundred KiB. */
function makeBombs(): readonly (readonly [coding: string, bytes: Buffer])[] {
  const spaces = Buffer.alloc(BOMB_BYTES, 0x20);
  const zipped = gzipSync(spaces);
  return [
    ["br", brotliCompressSync(spaces, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } })],
    ["gzip", zipped],
    ["gzip, gzip", gzipSync(zipped)],
  ];
}

const bombs = makeBombs();

describe.each(WAYS)("%s(): an answer made to fill the memory", (way) => {
  it.each(bombs)("compressed in %s ends at the cap", async (coding, bomb) => {
    for (const contentType of ["application/json", "text/event-stream"]) {
      const bytes = await peakGrowthBytes(async () => {
        const error = attemptErrorOf(await answered(way, answering(contentType, coding, bomb, 16_384)));
        expect(error).toMatchObject({ name: "TransientError", code: "malformed" });
      });
      expect(bytes).toBeLessThan(GROWTH_BYTES);
    }
  });

  it("as one endless line, one endless JSON body or an endless text ends at the cap", async () => {
    const endless = (contentType: string, first: string, piece: string): Respond => {
      return (response) => {
        response.writeHead(200, { "content-type": contentType });
        response.write(first);
        let closed = false;
        response.on("close", () => {
          closed = true;
        });
        const more = (): void => {
          while (!closed && response.write(piece));
          if (!closed) response.once("drain", more);
        };
        more();
      };
    };
    const giants = [
      endless("text/event-stream", 'data: {"choices":[{"delta":{"content":"', "x".repeat(65_536)),
      endless("application/json", '{"choices":[{"message":{"content":"', "x".repeat(65_536)),
      endless("text/event-stream", "", deltaEvent("x".repeat(65_536))),
    ];
    for (const giant of giants) {
      const bytes = await peakGrowthBytes(async () => {
        const error = attemptErrorOf(await answered(way, giant));
        expect(error).toMatchObject({ name: "TransientError", code: "malformed" });
      });
      expect(bytes).toBeLessThan(GROWTH_BYTES);
    }
  });
});
