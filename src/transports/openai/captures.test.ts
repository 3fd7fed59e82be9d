import { existsSync, readFileSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import { TransientError } from "../../errors.js";
import { runtime, send, testSource } from "../attempt.test-helper.js";
import { startReplayServer, type UpstreamScript } from "../replay-server.test-helper.js";
import { createOpenAiChatTransport } from "./chat.js";

/** Whole recorded streams: assembled as expected however they are cut into reads, and never taken for whole when cut short. */

interface Expected {
  readonly name: string;
  readonly content: string;
  readonly thinking: string;
  readonly toolCalls: unknown[];
  readonly finishReason: string;
  readonly usage: Record<string, number | null>;
  readonly modelReported: string;
}

interface Recording extends Expected {
  readonly frames: readonly string[];
}

function load(directory: URL): Recording[] {
  const expected = JSON.parse(readFileSync(new URL("expected.json", directory), "utf8")) as Expected[];
  return expected.map((entry) => {
    const lines = readFileSync(new URL(`${entry.name}.jsonl`, directory), "utf8").split("\n");
    return { ...entry, frames: lines.filter((line) => line !== "") };
  });
}

const written = new URL("../../../test/data/streams/", import.meta.url);
const recorded = new URL("../../../../shared/captures/", import.meta.url);
const hasRecorded = existsSync(recorded);
if (!hasRecorded) {
  if (process.env.CI) throw new Error("../shared/captures is missing in CI");
  console.log(
    "recorded captures skipped: ../shared/captures is not here (third-party data, not part of the repository)",
  );
}
const recordings = [
  ...load(written).map((recording) => ["written", recording] as const),
  ...(hasRecorded ? load(recorded).map((recording) => ["recorded", recording] as const) : []),
];

function wireText({ frames }: Recording, newline = "\n", comments = false): string {
  const events = [...frames, "[DONE]"].map((frame) => `data: ${frame}${newline}${newline}`);
  return comments ? events.map((event) => `: keep-alive${newline}${newline}${event}`).join("") : events.join("");
}

function slices(bytes: Buffer, size: number): UpstreamScript["chunks"] {
  const chunks: { bytes: Buffer }[] = [];
  for (let at = 0; at < bytes.length; at += size) chunks.push({ bytes: bytes.subarray(at, at + size) });
  return chunks;
}

const SSE = { "content-type": "text/event-stream; charset=utf-8" };

describe.each(recordings)("%s stream %#", (_origin, recording) => {
  const transport = createOpenAiChatTransport({ runtime });
  afterAll(() => transport.close());

  async function replay(chunks: UpstreamScript["chunks"]) {
    const server = await startReplayServer({ headers: SSE, chunks: chunks ?? [], end: "close" });
    try {
      return await send(transport, testSource(server.baseUrl));
    } finally {
      await server.close();
    }
  }

  function expectWhole(outcome: Awaited<ReturnType<typeof replay>>): void {
    if ("error" in outcome) throw outcome.error;
    const { content, thinking, toolCalls, finishReason, usage, modelReported } = outcome.ok;
    const { promptTokens, completionTokens, reasoningTokens, cachedPromptTokens } = usage ?? {};
    expect({
      content,
      thinking,
      toolCalls,
      finishReason,
      usage: { promptTokens, completionTokens, reasoningTokens, cachedPromptTokens },
      modelReported,
    }).toEqual({
      content: recording.content,
      thinking: recording.thinking,
      toolCalls: recording.toolCalls,
      finishReason: recording.finishReason,
      usage: recording.usage,
      modelReported: recording.modelReported,
    });
  }

  it(`${recording.name}: whole, in any slices and framings`, async () => {
    const bytes = Buffer.from(wireText(recording));
    expectWhole(await replay([{ bytes }]));
    expectWhole(await replay(slices(bytes, 1_460)));
    expectWhole(await replay(slices(bytes, 7)));
    // One byte a write is slow for the longest recordings; the first and last kilobytes show the same boundaries.
    const edge = 1_024;
    const bytewise = [
      ...(slices(bytes.subarray(0, edge), 1) ?? []),
      { bytes: bytes.subarray(edge, Math.max(edge, bytes.length - edge)) },
      ...(slices(bytes.subarray(Math.max(edge, bytes.length - edge)), 1) ?? []),
    ];
    expectWhole(await replay(bytewise));
    expectWhole(await replay(slices(Buffer.from(wireText(recording, "\r\n")), 7)));
    expectWhole(await replay([{ bytes: Buffer.from(wireText(recording, "\r")) }]));
    expectWhole(await replay(slices(Buffer.from(wireText(recording, "\n", true)), 1_460)));
  });

  it(`${recording.name}: cut anywhere before its end, never a short success`, async () => {
    const finishAt = recording.frames.findIndex((frame) => /"finish_reason":\s*"[^"]/.test(frame));
    const before = recording.frames.slice(0, finishAt).map((frame) => `data: ${frame}\n\n`);
    const text = Buffer.from(before.join(""));
    const finishFrame = Buffer.from(`data: ${recording.frames[finishAt]}`);
    const boundaries = before.map((_, index) => Buffer.byteLength(before.slice(0, index).join("")));
    const everywhere = Array.from({ length: 50 }, (_, index) => Math.floor(((index + 0.5) / 50) * text.length));
    const cuts = [...boundaries, ...everywhere].map((at) => text.subarray(0, at));
    const insideFinish = Array.from({ length: 10 }, (_, index) =>
      Buffer.concat([text, finishFrame.subarray(0, Math.floor((finishFrame.length * index) / 10))]),
    );
    const pending = [...cuts, ...insideFinish];
    const worker = async () => {
      for (let bytes = pending.pop(); bytes !== undefined; bytes = pending.pop()) {
        const outcome = await replay([{ bytes }]);
        expect("error" in outcome && outcome.error).toBeInstanceOf(TransientError);
      }
    };
    await Promise.all(Array.from({ length: 8 }, worker));
  });
});
