import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createRequestReader } from "./request-reader.js";

const BODY = '{"a":"é\\r\\n0\\r\\n\\r\\n"}';
const BYTES = Buffer.byteLength(BODY);
const HEAD = "POST /v1/x?y=1 HTTP/1.1\r\nA: 1\r\n";
const PLAIN = `${HEAD}Content-Length: ${BYTES}\r\n\r\n${BODY}`;
const CHUNKED = `${HEAD}Transfer-Encoding: chunked\r\n\r\n${BYTES.toString(16)};ext=1\r\n${BODY}\r\n0\r\ntrailer: 1\r\n\r\n`;
const EMPTY = "GET / HTTP/1.1\r\nConnection: Close\r\n\r\n";

/** What is read when the pieces arrive one by one, each request answered at once or only when everything has arrived. */
function read(pieces: readonly Buffer[], answer: "at_once" | "late"): string[] {
  const seen: string[] = [];
  const reader = createRequestReader({
    onHead: ({ method, path }) => seen.push(`head ${method} ${path}`),
    onRequest({ keepAlive }, body) {
      seen.push(`request ${keepAlive} ${body}`);
      if (answer === "at_once") reader.release();
    },
    onError: (status) => seen.push(`error ${status}`),
  });
  for (const piece of pieces) reader.push(piece);
  if (answer === "late") for (let i = 0; i < 10; i++) reader.release();
  return seen;
}

function cut(bytes: Buffer, at: readonly number[]): Buffer[] {
  const edges = [0, ...[...at].sort((a, b) => a - b).map((n) => n % (bytes.length + 1)), bytes.length].sort(
    (a, b) => a - b,
  );
  return edges.slice(1).map((edge, i) => bytes.subarray(edges[i], edge));
}

describe("requests", () => {
  const input = Buffer.from(PLAIN + CHUNKED + EMPTY + PLAIN);
  const expected = [
    ...["head POST /v1/x", `request true ${BODY}`],
    ...["head POST /v1/x", `request true ${BODY}`],
    ...["head GET /", "request false "],
    ...["head POST /v1/x", `request true ${BODY}`],
  ];

  it("are the same wherever the bytes are split", () => {
    expect(
      read(
        [...input].map((byte) => Buffer.of(byte)),
        "at_once",
      ),
    ).toEqual(expected);
    fc.assert(
      fc.property(fc.array(fc.nat(), { maxLength: 12 }), fc.constantFrom("at_once", "late"), (at, answer) => {
        expect(read(cut(input, at), answer as "at_once" | "late")).toEqual(expected);
      }),
    );
  });

  it("wait for each other's answer", () => {
    const seen: string[] = [];
    const reader = createRequestReader({
      onHead: () => undefined,
      onRequest: ({ method }) => seen.push(method),
      onError: () => seen.push("error"),
    });
    reader.push(Buffer.from(PLAIN + EMPTY));
    expect(seen).toEqual(["POST"]);
    reader.release();
    expect(seen).toEqual(["POST", "GET"]);
  });

  it("that are rubbish are refused once and never thrown about", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 6 }), (pieces) => {
        const seen = read(
          pieces.map((piece) => Buffer.from(piece)),
          "at_once",
        );
        expect(seen.filter((line) => line.startsWith("error")).length).toBeLessThanOrEqual(1);
      }),
    );
    expect(read([Buffer.from("x\r\n\r\n"), Buffer.from(PLAIN)], "at_once")).toEqual(["error 400"]);
    // A Redis client waits for an answer to its first line, and never sends the end of a head.
    expect(read([Buffer.from("*1\r\n$4\r\nPING\r\n")], "at_once")).toEqual(["error 400"]);
    expect(read([Buffer.from("POST /v1/x HTTP/1.1\r\nA: 1\r\n")], "at_once")).toEqual([]);
  });
});
