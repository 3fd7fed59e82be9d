import { existsSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { parseScripts } from "./script-file.js";
import { type ResponseScript, startSimulatedProvider, type UpstreamScript } from "./server.js";

const CASES = ["test/data/cases.jsonl", "../shared/cases/cases.jsonl"].find((path) => existsSync(path));

/** Every upstream script anywhere in a record. */
function scriptsIn(value: unknown): unknown[] {
  if (typeof value !== "object" || value === null) return [];
  if (!Array.isArray(value) && ("end" in value || "reusedSocket" in value)) return [value];
  return Object.values(value).flatMap(scriptsIn);
}

function responseOf(script: UpstreamScript): ResponseScript {
  return "freshSocket" in script ? script.freshSocket : script;
}

function expectedBody({ chunks = [] }: ResponseScript): Buffer {
  return Buffer.concat(
    chunks.map(({ utf8, base64 }) => Buffer.from(utf8 ?? base64 ?? "", utf8 === undefined ? "base64" : "utf8")),
  );
}

function decodeChunked(bytes: Buffer): { body: Buffer; complete: boolean } {
  const parts: Buffer[] = [];
  let at = 0;
  for (;;) {
    const lineEnd = bytes.indexOf("\r\n", at);
    if (lineEnd < 0) return { body: Buffer.concat(parts), complete: false };
    const size = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16);
    if (size === 0) return { body: Buffer.concat(parts), complete: true };
    parts.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
}

interface Heard {
  readonly bytes: Buffer;
  readonly ended: "fin" | "rst" | "client";
}

const REQUEST = "POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}";

/** Sends one request and listens until the server ends, or until `enough`. */
function hear(port: number, enough: (bytes: Buffer) => boolean): Promise<Heard> {
  return new Promise((resolve) => {
    let bytes = Buffer.alloc(0);
    const socket = connect(port, "127.0.0.1", () => socket.write(REQUEST));
    const end = (ended: Heard["ended"]): void => {
      socket.destroy();
      resolve({ bytes, ended });
    };
    socket.on("data", (part: Buffer) => {
      bytes = Buffer.concat([bytes, part]);
      if (enough(bytes)) end("client");
    });
    socket.on("error", () => end("rst"));
    socket.on("end", () => end("fin"));
  });
}

function bodyOf(bytes: Buffer): { body: Buffer; complete: boolean } {
  return decodeChunked(bytes.subarray(bytes.indexOf("\r\n\r\n") + 4));
}

describe.skipIf(CASES === undefined)("upstream scripts of the cases", () => {
  if (CASES === undefined) console.warn("cases.jsonl was not found: the replay of its scripts is skipped");
  const records = CASES === undefined ? [] : readFileSync(CASES, "utf8").trim().split("\n");
  const scripts = records.flatMap((line) => scriptsIn(JSON.parse(line)));

  it("are all read without a complaint", () => {
    expect(scripts.length).toBeGreaterThan(100);
    expect(parseScripts(scripts.map((script) => JSON.stringify(script)).join("\n"))).toEqual(scripts);
  });

  it("arrive byte for byte with their own kind of end, delays shortened", async () => {
    const hurried = (_delayMs: number, callback: () => void) => {
      const timer = setTimeout(callback, 1);
      return () => clearTimeout(timer);
    };
    const clock = { now: () => performance.now(), wallNow: () => Date.now(), setTimer: hurried };
    await using provider = await startSimulatedProvider({ clock });
    for (const script of scripts as UpstreamScript[]) {
      provider.script(script);
      const response = responseOf(script);
      const expected = expectedBody(response);
      const waitsForClient = response.end === "hang" || response.keepAlive === true;
      const heard = await hear(
        provider.port,
        (bytes) => waitsForClient && bytes.includes("\r\n\r\n") && bodyOf(bytes).body.length >= expected.length,
      );
      const { body, complete } = bodyOf(heard.bytes);
      expect(heard.bytes.toString("latin1")).toMatch(new RegExp(`^HTTP/1\\.1 ${response.status} `));
      expect(body.equals(expected)).toBe(true);
      if (!waitsForClient)
        expect([heard.ended, complete]).toEqual(response.end === "reset" ? ["rst", false] : ["fin", true]);
    }
  });
});
