import type { Socket } from "node:net";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { forever, JSON_HEAD, pour, type RawRespond, SSE_HEAD, statusHead, times } from "./raw-server.js";

/** Answers made to fill a client's memory or to keep its processor busy, and how each of them must end. */

export interface Monster {
  readonly name: string;
  readonly respond: RawRespond;
  /** The code of the error; null where the answer is good after all. */
  readonly code: string | null;
  /** Ended by this source's own timer (ms), where the answer has no other end. */
  readonly timeoutMs?: number;
}

const MIB = 1_024 * 1_024;
const PIECE = 65_536;

const frame = (choice: object): string => `data: ${JSON.stringify({ choices: [choice] })}\n\n`;
const delta = (content: string): string => frame({ index: 0, delta: { content } });
const FINISH = `${frame({ index: 0, delta: {}, finish_reason: "stop" })}data: [DONE]\n\n`;

/** Some thousand copies in one piece: the server must not be the slow one. */
const packed = (text: string): string => text.repeat(Math.max(1, Math.floor(PIECE / text.length)));

const poured =
  (head: string, pieces: () => Iterator<string | Buffer>): RawRespond =>
  (socket) => {
    socket.write(head);
    pour(socket, pieces(), (done: Socket) => done.end());
  };

const endless = (head: string, first: string, piece: string): RawRespond =>
  poured(head, function* () {
    yield first;
    yield* forever(packed(piece));
  });

const whole = (head: string, ...parts: (string | Buffer)[]): RawRespond => poured(head, () => parts.values());

function bomb(coding: string, zip: (bytes: Buffer) => Buffer): Monster[] {
  const bytes = zip(Buffer.alloc(200 * MIB, 0x20));
  const head = (type: string) => statusHead(200, { "content-type": type, "content-encoding": coding });
  return ["application/json", "text/event-stream"].map((type) => ({
    name: `200 MiB in ${bytes.length} bytes of ${coding}, as ${type}`,
    respond: whole(head(type), bytes),
    code: "malformed",
  }));
}

const brotli = (bytes: Buffer): Buffer =>
  brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } });

const deep = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);

function* numbered(count: number, piece: (index: number) => string): Generator<string> {
  for (let index = 0; index < count; ) {
    let text = "";
    for (; index < count && text.length < PIECE; index += 1) text += piece(index);
    yield text;
  }
}

const toolDelta = (index: number, args = "", name = "f"): string =>
  frame({ index: 0, delta: { tool_calls: [{ index, id: `c${index}`, function: { name, arguments: args } }] } });

const filled = (unit: string, bytes: number): string => unit.repeat(Math.floor(bytes / unit.length));

export function makeMonsters(): Monster[] {
  return [
    ...bomb("gzip", gzipSync),
    ...bomb("br", brotli),
    ...bomb("gzip, gzip", (bytes) => gzipSync(gzipSync(bytes))),
    {
      name: "an endless line",
      respond: endless(SSE_HEAD, 'data: {"choices":[{"delta":{"content":"', "x"),
      code: "malformed",
    },
    { name: "an endless line of another field", respond: endless(SSE_HEAD, "id: ", "x"), code: "malformed" },
    { name: "endless data lines of one event", respond: endless(SSE_HEAD, "", "data:\n"), code: "malformed" },
    { name: "endless data lines of one letter", respond: endless(SSE_HEAD, "", "data:x\n"), code: "malformed" },
    {
      name: "an endless JSON body",
      respond: endless(JSON_HEAD, '{"choices":[{"message":{"content":"', "x"),
      code: "malformed",
    },
    {
      name: "an endless JSON body beyond latin-1",
      respond: endless(JSON_HEAD, '{"choices":[{"message":{"content":"', "漢"),
      code: "malformed",
    },
    { name: "an endless JSON list", respond: endless(JSON_HEAD, '{"choices":[', "{},"), code: "malformed" },
    { name: "an endless text", respond: endless(SSE_HEAD, "", delta("x".repeat(4_000))), code: "malformed" },
    { name: "an endless text in tiny deltas", respond: endless(SSE_HEAD, "", delta("x")), code: "malformed" },
    {
      name: "an endless text in tiny deltas beyond latin-1",
      respond: endless(SSE_HEAD, "", delta("漢")),
      code: "malformed",
    },
    {
      name: "thought and text in turn without end",
      respond: endless(SSE_HEAD, "", frame({ index: 0, delta: { reasoning_content: "y" } }) + delta("x")),
      code: "malformed",
    },
    { name: "endless blanks before the text", respond: endless(SSE_HEAD, "", delta(" ")), code: "malformed" },
    {
      name: "a million tiny deltas",
      respond: poured(SSE_HEAD, function* () {
        yield* times(1_000, delta("x").repeat(1_000));
        yield FINISH;
      }),
      code: null,
    },
    {
      name: "endless log probabilities",
      respond: endless(
        SSE_HEAD,
        "",
        frame({
          index: 0,
          delta: { content: "x" },
          logprobs: { content: [{ token: "x", logprob: -0.5, bytes: [120], top_logprobs: [] }] },
        }),
      ),
      code: "malformed",
    },
    {
      name: "a million tool calls",
      respond: poured(SSE_HEAD, () => numbered(1_000_000, (index) => toolDelta(index, "{}"))),
      code: "malformed",
    },
    {
      name: "a million tool calls in one frame each thousand",
      respond: poured(SSE_HEAD, () =>
        numbered(1_000, (index) =>
          frame({
            index: 0,
            delta: {
              tool_calls: Array.from({ length: 1_000 }, (_, at) => ({
                index: index * 1_000 + at,
                id: `c${index}_${at}`,
                function: { name: "f" },
              })),
            },
          }),
        ),
      ),
      code: "malformed",
    },
    {
      name: "a million nameless tool calls",
      respond: poured(SSE_HEAD, () => numbered(1_000_000, (index) => toolDelta(index, "", ""))),
      code: "malformed",
    },
    {
      name: "two tool calls in turn without end",
      respond: poured(SSE_HEAD, () => numbered(100_000_000, (index) => toolDelta(index % 2, "x"))),
      code: "malformed",
    },
    {
      name: "a tool call in pieces without index, each a valid beginning",
      respond: poured(SSE_HEAD, () =>
        numbered(100_000_000, (index) =>
          frame({
            index: 0,
            delta: { tool_calls: [{ function: { name: "f", arguments: index === 0 ? '["a"' : ',"a"' } }] },
          }),
        ),
      ),
      code: "malformed",
    },
    {
      name: "tool calls with long names",
      respond: poured(SSE_HEAD, () => numbered(1_000_000, (index) => toolDelta(index, "", "n".repeat(60_000)))),
      code: "malformed",
    },
    {
      name: "a million choices",
      respond: poured(SSE_HEAD, () => numbered(1_000_000, (index) => frame({ index, delta: { content: "x" } }))),
      code: "malformed",
    },
    {
      name: "a million choices in one body",
      respond: whole(JSON_HEAD, `{"choices":[${filled('{"index":1,"message":{}},', 14 * MIB)}{}]}`),
      code: "malformed",
    },
    {
      name: "a body of empty objects",
      respond: whole(JSON_HEAD, `{"x":[${filled("{},", 15 * MIB)}{}],"choices":[]}`),
      code: "malformed",
    },
    {
      name: "a body of numbers",
      respond: whole(JSON_HEAD, `{"x":[${filled("1,", 15 * MIB)}1],"choices":[]}`),
      code: "malformed",
    },
    {
      name: "a body of short texts",
      respond: whole(JSON_HEAD, `{"x":[${filled('"abc",', 15 * MIB)}1],"choices":[]}`),
      code: "malformed",
    },
    {
      name: "a body of keys",
      respond: poured(JSON_HEAD, function* () {
        yield '{"choices":[],"x":{';
        yield* numbered(1_200_000, (index) => `"${index.toString(36)}":1,`);
        yield '"z":1}}';
      }),
      code: "malformed",
    },
    {
      name: "an event of empty lists",
      respond: whole(SSE_HEAD, `data: {"x":[${filled("[],", 7 * MIB)}[]],"choices":[]}\n\n`),
      code: "malformed",
    },
    {
      name: "100,000 levels in a body",
      respond: whole(
        JSON_HEAD,
        `{"choices":[{"message":{"content":"x"},"finish_reason":"stop","logprobs":${deep(100_000)}}]}`,
      ),
      code: "malformed",
    },
    {
      name: "100,000 levels in an event",
      respond: whole(SSE_HEAD, `data: {"x":${deep(100_000)}}\n\n`),
      code: "malformed",
    },
    { name: "100,000 levels of a bare list", respond: whole(JSON_HEAD, deep(100_000)), code: "malformed" },
    {
      name: "a text as long as is allowed",
      respond: whole(
        JSON_HEAD,
        `{"choices":[{"message":{"content":"${"x".repeat(15 * MIB)}"},"finish_reason":"stop"}]}`,
      ),
      code: null,
    },
    {
      name: "a text as long as is allowed, one letter beyond latin-1",
      respond: whole(
        JSON_HEAD,
        `{"choices":[{"message":{"content":"漢${"x".repeat(15 * MIB)}"},"finish_reason":"stop"}]}`,
      ),
      code: "malformed",
    },
    {
      name: "an endless error body",
      respond: endless(statusHead(500, { "content-type": "application/json" }), '{"error":{"message":"', "x"),
      code: "upstream_error",
    },
    {
      name: "an endless error event",
      respond: endless(SSE_HEAD, 'event: error\ndata: {"error":{"message":"', "x"),
      code: "malformed",
    },
    {
      name: "endless 1xx",
      respond: endless("", "", "HTTP/1.1 102 Processing\r\nx-a: b\r\n\r\n"),
      code: "timeout",
      timeoutMs: 2_000,
    },
    { name: "endless comments", respond: endless(SSE_HEAD, "", ": ping\n\n"), code: "timeout", timeoutMs: 2_000 },
    {
      name: "endless empty deltas",
      respond: endless(SSE_HEAD, "", frame({ index: 0, delta: {} })),
      code: "timeout",
      timeoutMs: 2_000,
    },
    {
      name: "endless blank lines before the answer",
      respond: endless(JSON_HEAD, "", "\n"),
      code: "timeout",
      timeoutMs: 2_000,
    },
    { name: "a giant header block", respond: endless("HTTP/1.1 200 OK\r\n", "", "x-a: b\r\n"), code: "malformed" },
    { name: "a giant header", respond: endless("HTTP/1.1 200 OK\r\nx-a: ", "", "x"), code: "malformed" },
    { name: "a giant status line", respond: endless("HTTP/1.1 200 ", "", "x"), code: "timeout", timeoutMs: 2_000 },
    {
      name: "an endless chunk extension",
      respond: endless(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n5;a=",
        "",
        "x",
      ),
      code: "timeout",
      timeoutMs: 2_000,
    },
    {
      name: "endless trailers",
      respond: endless(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n",
        "",
        "x-a: b\r\n",
      ),
      code: "malformed",
      timeoutMs: 2_000,
    },
  ];
}

/** Answers that are allowed and grow with `count`: each once took quadratic work, or easily could. */
export function growing(): readonly (readonly [name: string, count: number, respond: (count: number) => RawRespond])[] {
  const stream = (piece: (index: number) => string) => (count: number) =>
    poured(SSE_HEAD, function* () {
      yield* numbered(count, piece);
      yield FINISH;
    });
  const logprobs = { content: [{ token: "x", logprob: -0.5, bytes: [120], top_logprobs: [] }] };
  const nameless = (index: number) => ({ function: { name: "f", arguments: index === 0 ? '["a"' : ',"a"' } });
  return [
    ["tiny deltas", 100_000, stream(() => delta("x"))],
    ["blanks before the text", 100_000, stream(() => delta(" "))],
    ["log probabilities", 20_000, stream(() => frame({ index: 0, delta: { content: "x" }, logprobs }))],
    ["data lines of one event", 400_000, (count) => poured(SSE_HEAD, () => numbered(count, () => "data:1\n"))],
    [
      "pieces of a call without index",
      30_000,
      stream((at) => frame({ index: 0, delta: { tool_calls: [nameless(at)] } })),
    ],
    ["tool calls", 1_000, stream((index) => toolDelta(index, "{}"))],
    ["an unfinished line", 1_900_000, (count) => poured(`${SSE_HEAD}data: "`, () => numbered(count, () => "x"))],
  ];
}
