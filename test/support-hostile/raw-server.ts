import { type AddressInfo, createServer, type Socket } from "node:net";

/** A provider on a bare socket: what it sends need be no HTTP, need never end, and need not fit anywhere. */

export interface RawRequest {
  /** Request line and headers as they came. */
  readonly head: string;
  readonly body: string;
  readonly isStream: boolean;
  /** 1, 2, 3… over all connections. */
  readonly number: number;
}

export type RawRespond = (socket: Socket, request: RawRequest) => void;

export interface RawServer {
  readonly port: number;
  readonly origin: string;
  readonly baseUrl: string;
  readonly requests: readonly RawRequest[];
  readonly sockets: { readonly total: number; readonly open: number };
  [Symbol.asyncDispose](): Promise<void>;
}

const HEAD_END = "\r\n\r\n";

/** Calls back with each whole request of a connection. */
function readRequests(socket: Socket, onRequest: (head: string, body: string) => void): void {
  let unread = "";
  socket.setEncoding("latin1");
  socket.on("data", (text: string) => {
    unread += text;
    for (;;) {
      const end = unread.indexOf(HEAD_END);
      if (end === -1) return;
      const bodyStart = end + HEAD_END.length;
      const length = Number(/^content-length: *(\d+)/im.exec(unread.slice(0, end))?.[1] ?? 0);
      if (unread.length < bodyStart + length) return;
      const body = unread.slice(bodyStart, bodyStart + length);
      const head = unread.slice(0, end);
      unread = unread.slice(bodyStart + length);
      onRequest(head, body);
    }
  });
}

export async function startRawServer(respond: RawRespond): Promise<RawServer> {
  const requests: RawRequest[] = [];
  const open = new Set<Socket>();
  let total = 0;
  const server = createServer((socket) => {
    total += 1;
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    socket.on("error", () => {});
    readRequests(socket, (head, body) => {
      const request = { head, body, isStream: /"stream":true/.test(body), number: requests.length + 1 };
      requests.push(request);
      respond(socket, request);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  return {
    port,
    origin,
    baseUrl: `${origin}/v1`,
    requests,
    sockets: {
      get total() {
        return total;
      },
      get open() {
        return open.size;
      },
    },
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
}

/** Writes piece after piece as fast as the other side takes them, until there are no more or the socket is gone. */
export function pour(socket: Socket, pieces: Iterator<string | Buffer>, onEnd: (socket: Socket) => void = () => {}) {
  const more = (): void => {
    for (;;) {
      if (socket.destroyed) return;
      const { value, done } = pieces.next();
      if (done === true) {
        onEnd(socket);
        return;
      }
      if (!socket.write(value)) {
        socket.once("drain", more);
        return;
      }
    }
  };
  more();
}

/** Writes a piece every `everyMs` until the socket is gone. */
export function drip(socket: Socket, piece: string | (() => string), everyMs: number): void {
  const timer = setInterval(() => {
    if (socket.destroyed) clearInterval(timer);
    else socket.write(typeof piece === "string" ? piece : piece());
  }, everyMs);
  socket.on("close", () => clearInterval(timer));
}

export function* forever(piece: string | Buffer): Generator<string | Buffer> {
  for (;;) yield piece;
}

export function* times(count: number, piece: string | ((index: number) => string)): Generator<string> {
  for (let index = 0; index < count; index += 1) yield typeof piece === "string" ? piece : piece(index);
}

export const SSE_HEAD = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
export const JSON_HEAD = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n";

export function statusHead(status: number, headers: Readonly<Record<string, string>> = {}): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Whatever\r\n${lines.join("")}\r\n`;
}
