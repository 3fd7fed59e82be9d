import { createServer, type Server, type Socket } from "node:net";

/** A raw provider for tests: reads one request after the other from each socket and replays bytes exactly as a script says. */

export interface UpstreamScript {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly headersDelayMs?: number;
  readonly chunks?: readonly {
    readonly delayMs?: number;
    readonly utf8?: string;
    readonly base64?: string;
    readonly bytes?: Buffer;
  }[];
  /** `close`: FIN without framing · `reset`: RST · `hang`: stays open · `keep`: content-length, the socket lives on. */
  readonly end?: string;
  /** Bytes sent instead of a status line and headers. */
  readonly rawHead?: string;
}

export interface SeenRequest {
  readonly head: string;
  readonly body: string;
  readonly socketNumber: number;
  /** Requests answered on this socket before. */
  readonly requestOnSocket: number;
}

export interface ReplayServer {
  readonly baseUrl: string;
  readonly port: number;
  readonly requests: SeenRequest[];
  openSockets(): number;
  readonly socketsSeen: () => number;
  close(): Promise<void>;
}

export type ScriptFor = (request: SeenRequest, socket: Socket) => UpstreamScript | undefined;

const RESET_DELAY_MS = 30;

function wait(delayMs: number): Promise<void> {
  return delayMs === 0 ? Promise.resolve() : new Promise((resolve) => setTimeout(resolve, delayMs));
}

function chunkBytes(chunk: NonNullable<UpstreamScript["chunks"]>[number]): Buffer {
  return (
    chunk.bytes ?? (chunk.base64 === undefined ? Buffer.from(chunk.utf8 ?? "") : Buffer.from(chunk.base64, "base64"))
  );
}

function headOf(script: UpstreamScript, bodyBytes: number): string {
  if (script.rawHead !== undefined) return script.rawHead;
  const lines = [`HTTP/1.1 ${script.status ?? 200} Replayed`];
  for (const [name, value] of Object.entries(script.headers ?? {})) {
    const filled = value.replace(/\{\{httpdate\+(\d+)\}\}/, (_, s) =>
      new Date(Date.now() + Number(s) * 1_000).toUTCString(),
    );
    lines.push(`${name}: ${filled}`);
  }
  lines.push(script.end === "keep" ? `content-length: ${bodyBytes}` : "connection: close");
  return `${lines.join("\r\n")}\r\n\r\n`;
}

async function replay(script: UpstreamScript, socket: Socket): Promise<void> {
  const chunks = script.chunks ?? [];
  const total = chunks.reduce((sum, chunk) => sum + chunkBytes(chunk).length, 0);
  await wait(script.headersDelayMs ?? 0);
  const head = headOf(script, total);
  if (head !== "") socket.write(head);
  for (const chunk of chunks) {
    if (chunk.delayMs) await wait(chunk.delayMs);
    else await new Promise((resolve) => setImmediate(resolve));
    if (socket.destroyed) return;
    const bytes = chunkBytes(chunk);
    if (!socket.write(bytes))
      await new Promise<void>((resolve) => socket.once("drain", resolve).once("close", resolve));
  }
  if (script.end === "reset") {
    await wait(RESET_DELAY_MS);
    socket.resetAndDestroy();
  } else if (script.end === undefined || script.end === "close") socket.end();
}

function readRequests(socket: Socket, onRequest: (head: string, body: string) => void): void {
  let received = Buffer.alloc(0);
  socket.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    for (;;) {
      const headEnd = received.indexOf("\r\n\r\n");
      if (headEnd === -1) return;
      const head = received.toString("latin1", 0, headEnd);
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
      if (received.length < headEnd + 4 + length) return;
      const body = received.toString("utf8", headEnd + 4, headEnd + 4 + length);
      received = received.subarray(headEnd + 4 + length);
      onRequest(head, body);
    }
  });
}

export async function startReplayServer(scriptFor: ScriptFor | UpstreamScript): Promise<ReplayServer> {
  const choose: ScriptFor = typeof scriptFor === "function" ? scriptFor : () => scriptFor;
  const requests: SeenRequest[] = [];
  const sockets = new Set<Socket>();
  let socketCount = 0;
  const server: Server = createServer({ noDelay: true }, (socket) => {
    const socketNumber = socketCount;
    socketCount += 1;
    let requestOnSocket = 0;
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    readRequests(socket, (head, body) => {
      const seen = { head, body, socketNumber, requestOnSocket };
      requestOnSocket += 1;
      requests.push(seen);
      const script = choose(seen, socket);
      if (script !== undefined) void replay(script, socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    port,
    requests,
    openSockets: () => sockets.size,
    socketsSeen: () => socketCount,
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}
