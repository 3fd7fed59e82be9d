import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ChatResponse, GatewayClient, type SourceOptions, TransientError } from "../src/index.js";
import { type ScriptChunk, type SimulatedProvider, startSimulatedProvider } from "../src/testing/index.js";
import { seededStream } from "../src/testing/seeded-random.js";
import { attemptErrorOf, type Called, call, joinedText, replyOf, type Way } from "./support/calls.js";
import { checkEvents } from "./support/case-check.js";
import { sourceOf } from "./support/case-client.js";
import {
  type ExpectedAnswer,
  eventEnds,
  finishedAt,
  type Recording,
  recordedCaptures,
  slices,
  wireBytes,
  writtenStreams,
} from "./support/recordings.js";

/**
 * Whole streams of real and written providers over real HTTP, through the public client: assembled as expected however
 * they are cut into writes, and never taken for whole when they are cut short.
 */

const MANDATORY = ["openai-text", "alibaba-text", "mistral-text"];
const LANES = 4;
const RANDOM_CUTS = 50;
const BLANK_LINE_BYTES = 2;
const WAYS: readonly Way[] = ["chat", "stream"];

/** One provider and one client on it: replays run one after another, so that each request meets its own script. */
interface Lane {
  readonly provider: SimulatedProvider;
  readonly client: GatewayClient;
}

interface Replay {
  readonly chunks: readonly ScriptChunk[];
  readonly end: "close" | "reset";
  readonly way: Way;
  check(called: Called): void;
}

async function openLane(source: Partial<SourceOptions> = {}): Promise<Lane> {
  const provider = await startSimulatedProvider();
  const client = new GatewayClient({
    scope: "LLM",
    sources: [sourceOf("s_1", provider.baseUrl, source)],
    retry: { maxAttempts: 1 },
    // Thousands of cut streams in a row are the point here, not a sick source.
    breaker: { failThreshold: 1e6, minSamples: 1e6 },
    scheduling: { evidence: false },
    proxyEnv: {},
  });
  return { provider, client };
}

async function play({ provider, client }: Lane, { chunks, end, way, check }: Replay): Promise<void> {
  const headers = { "content-type": "text/event-stream; charset=utf-8" };
  provider.script({ status: 200, headers, chunks, end, keepAlive: end === "close" });
  check(await call(client, way, { messages: [{ role: "user", content: "hi" }] }));
}

function toldBy({ content, thinking, toolCalls, finishReason, usage, modelReported }: ChatResponse) {
  const { promptTokens, completionTokens, reasoningTokens, cachedPromptTokens } = usage;
  const counts = { promptTokens, completionTokens, reasoningTokens, cachedPromptTokens };
  return { content, thinking, toolCalls, finishReason, usage: counts, modelReported };
}

function expectedOf({ content, thinking, toolCalls, finishReason, usage, modelReported }: ExpectedAnswer) {
  return { content, thinking, toolCalls, finishReason, usage, modelReported };
}

function expectWhole(recording: Recording, called: Called): void {
  const reply = replyOf(called);
  expect(toldBy(reply)).toEqual(expectedOf(recording));
  if (called.way === "stream") checkEvents(called, reply);
}

/** A cut before the end is an error that knows what had arrived; behind the last finish_reason nothing is missing. */
function expectNoShortAnswer(recording: Recording, cut: number, end: "close" | "reset", called: Called): void {
  // A reset takes with it an event whose blank line had not come.
  if (cut >= finishedAt(recording) + (end === "reset" ? BLANK_LINE_BYTES : 0)) {
    const { usage: _cutOff, ...whole } = expectedOf(recording);
    const { usage: _estimated, ...told } = toldBy(replyOf(called));
    expect(told).toEqual(whole);
    return;
  }
  const error = attemptErrorOf(called);
  expect(error).toBeInstanceOf(TransientError);
  expect(["truncated", "empty", "network"]).toContain(error.code);
  expect(recording.content.startsWith(error.partial?.content ?? "")).toBe(true);
  expect(recording.content.startsWith(joinedText(called.events, "text-delta"))).toBe(true);
  expect(called.events.some((event) => event.type === "finish" || event.type === "tool-call")).toBe(false);
}

function cutsOf(recording: Recording): number[] {
  const ends = eventEnds(recording);
  const bytes = ends.at(-1)!;
  const random = seededStream(bytes, 1);
  return [...new Set([0, ...ends, ...Array.from({ length: RANDOM_CUTS }, () => random() % bytes)])];
}

const captures = recordedCaptures();
const recordings = [
  ...writtenStreams.map((recording) => ["written", recording.name, recording] as const),
  ...(captures ?? []).map((recording) => ["captured", recording.name, recording] as const),
];

describe("streams", () => {
  let lanes: Lane[] = [];

  beforeAll(async () => {
    lanes = await Promise.all(Array.from({ length: LANES }, () => openLane()));
  });

  afterAll(async () => {
    await Promise.all(lanes.map(({ client }) => client.close()));
    await Promise.all(lanes.map(({ provider }) => provider.stop()));
  });

  async function playAll(replays: Replay[]): Promise<void> {
    const work = async (lane: Lane): Promise<void> => {
      for (let next = replays.pop(); next !== undefined; next = replays.pop()) await play(lane, next);
    };
    await Promise.all(lanes.map(work));
  }

  it.runIf(captures !== null)("of the three mandatory captures are here", () => {
    expect(captures?.map(({ name }) => name)).toEqual(expect.arrayContaining(MANDATORY));
  });

  it.each(recordings)("%s %s: whole in any writes and framings", async (_origin, _name, recording) => {
    const plain = wireBytes(recording);
    const crlf = wireBytes(recording, { newline: "\r\n" });
    const sent = [
      slices(plain, plain.length),
      slices(plain, 1),
      slices(plain, 7),
      slices(plain, 1_460),
      slices(crlf, crlf.length),
      slices(crlf, 1),
      slices(crlf, 7),
      slices(wireBytes(recording, { comments: true }), 1_460),
      slices(wireBytes(recording, { newline: "\r\n", comments: true }), 7),
    ];
    await playAll(
      sent.flatMap((chunks) =>
        WAYS.map((way) => ({
          chunks,
          end: "close" as const,
          way,
          check: (called: Called) => expectWhole(recording, called),
        })),
      ),
    );
  });

  it.each(recordings)("%s %s: never a short success, wherever it is cut", async (_origin, _name, recording) => {
    const bytes = wireBytes(recording);
    const cuts = cutsOf(recording);
    await playAll(
      cuts.map((cut, index) => {
        const end = index % 2 === 0 ? "close" : "reset";
        return {
          chunks: slices(bytes.subarray(0, cut), Math.max(1, cut)),
          end,
          way: WAYS[(index >> 1) % 2]!,
          check: (called) => expectNoShortAnswer(recording, cut, end, called),
        };
      }),
    );
    const { sources } = await lanes[0]!.client.snapshot();
    expect(sources[0]).toMatchObject({ inflight: 0, state: "closed" });
  });
});

describe("what proves the end of a stream", () => {
  const [recording] = writtenStreams as [Recording];
  const bytes = wireBytes(recording);
  const ends = eventEnds(recording);
  const done = bytes.subarray(ends.at(-2));

  async function playWith(source: Partial<SourceOptions>, sent: Buffer, check: Replay["check"]): Promise<void> {
    const lane = await openLane(source);
    for (const way of WAYS) await play(lane, { chunks: slices(sent, 1_460), end: "close", way, check });
    await lane.client.close();
    await lane.provider.stop();
  }

  const cut = Buffer.concat([bytes.subarray(0, ends[20]), done]);
  const expectTruncated = (called: Called) => expect(attemptErrorOf(called).code).toBe("truncated");

  it("[DONE] alone, but not from a relay, which appends it to cut streams", async () => {
    await playWith({ profile: "openai" }, cut, (called) => expect(replyOf(called).finishReason).toBeNull());
    await playWith({ profile: "relay" }, cut, expectTruncated);
    await playWith({ profile: "relay" }, bytes, (called) => expectWhole(recording, called));
  });

  it("requireDone: only [DONE]", async () => {
    const withoutDone = bytes.subarray(0, ends.at(-2));
    await playWith({}, withoutDone, (called) => expectWhole(recording, called));
    await playWith({ requireDone: true }, withoutDone, expectTruncated);
    await playWith({ requireDone: true }, bytes, (called) => expectWhole(recording, called));
  });
});
