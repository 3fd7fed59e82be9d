import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";

/** A provider that keeps what it was sent, byte for byte, and answers as the test says. */

export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  /** As it came over the wire. */
  readonly text: string;
  readonly body: Record<string, unknown>;
  /** 1, 2, 3… by connection. */
  readonly socket: number;
}

export interface RecordingServer {
  readonly baseUrl: string;
  readonly origin: string;
  readonly port: number;
  readonly seen: readonly SeenRequest[];
  /** Connections so far, and those that are open now. */
  readonly sockets: { readonly total: number; readonly open: number };
  [Symbol.asyncDispose](): Promise<void>;
}

export type Respond = (response: ServerResponse, request: SeenRequest) => void;

function parse(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}

export async function startRecordingServer(respond: Respond = answerWith("hello")): Promise<RecordingServer> {
  const seen: SeenRequest[] = [];
  const numbers = new Map<Socket, number>();
  const open = new Set<Socket>();
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => void parts.push(part));
    request.on("end", () => {
      const text = Buffer.concat(parts).toString();
      const { method = "", url = "", headers } = request;
      const one = { method, url, headers, text, body: parse(text), socket: numbers.get(request.socket) ?? 0 };
      seen.push(one);
      respond(response, one);
    });
    response.on("error", () => {});
  });
  server.on("connection", (socket) => {
    numbers.set(socket, numbers.size + 1);
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  return {
    origin,
    port,
    baseUrl: `${origin}/v1`,
    seen,
    sockets: {
      get total() {
        return numbers.size;
      },
      get open() {
        return open.size;
      },
    },
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export function chatBody(content: string, more: object = {}): string {
  return JSON.stringify({
    id: "c1",
    model: "m-reported",
    choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }],
    usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 },
    ...more,
  });
}

export function deltaEvent(content: string, finishReason: string | null = null): string {
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: finishReason }] })}\n\n`;
}

export const DONE_EVENT = "data: [DONE]\n\n";

/** Answers a stream or a JSON body, as the request asks. */
export function answerWith(content: string): Respond {
  return (response, { body }) => {
    if (body.stream === true) {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.end(`${deltaEvent(content)}${deltaEvent("", "stop")}${DONE_EVENT}`);
    } else sendJson(response, 200, chatBody(content));
  };
}

export function sendJson(response: ServerResponse, status: number, body: string, headers: object = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(body);
}
