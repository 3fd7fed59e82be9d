import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { SourceOptions } from "../../src/index.js";
import { type RawRespond, startRawServer } from "./raw-server.js";

const HERE = dirname(fileURLToPath(import.meta.url));
const CLIENT = join(HERE, "measured-client.mjs");
const BUILT = join(HERE, "..", "..", "dist", "index.js");

/** `final`: a stream that nobody iterates. */
export type MeasuredWay = "chat" | "stream" | "final";

export interface Measured {
  readonly ok: boolean;
  readonly name?: string;
  readonly code?: string;
  readonly message?: string;
  /** UTF-16 units of content and thinking. */
  readonly units?: number;
  readonly calls?: number;
  readonly events: number;
  readonly inflight: number;
  /** By how much the process's largest resident size grew. */
  readonly grownKiB: number;
  readonly cpuMs: number;
}

const GOOD_EVENT = 'data: {"choices":[{"index":0,"delta":{"content":"good"},"finish_reason":"stop"}]}\n\n';
const GOOD = `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: ${GOOD_EVENT.length}\r\n\r\n${GOOD_EVENT}`;

/** Runs one call against `respond` in a process of its own and measures that process. */
export async function measure(
  way: MeasuredWay,
  respond: RawRespond,
  { source = {}, request = {} }: { source?: Partial<SourceOptions>; request?: object } = {},
): Promise<Measured> {
  if (!existsSync(BUILT)) throw new Error("dist/ is missing: `npm run build` makes it, and so does `npm test`");
  await using server = await startRawServer((socket, asked) => {
    if (asked.body.includes('"model":"good"')) socket.write(GOOD);
    else respond(socket, asked);
  });
  const options = JSON.stringify({ baseUrl: server.baseUrl, way, source, request });
  const child = spawn(process.execPath, ["--expose-gc", "--single-threaded-gc", CLIENT, options], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (text) => {
    stdout += text;
  });
  child.stderr.on("data", (text) => {
    stderr += text;
  });
  const code = await new Promise((resolve) => child.on("close", (status, signal) => resolve(status ?? signal)));
  if (code !== 0) throw new Error(`the client's process ended with ${String(code)}:\n${stderr.slice(-4_000)}`);
  return JSON.parse(stdout) as Measured;
}
