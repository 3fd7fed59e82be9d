import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A wire between a client and a server that can be held, cut in silence, cut aloud, or cut when an answer is on its way. */
export interface TcpRelay {
  readonly port: number;
  /** `hold`: new connections are accepted, and nothing of them is passed on. */
  mode: "pass" | "hold";
  /** Connections that are open to it. */
  readonly open: number;
  /** From now on nothing passes on the connections that are open, and nobody is told. */
  silence(): void;
  /** Resets the open connections. */
  reset(): void;
  /** Each open connection is reset instead of its next answer: what was asked has run, and nobody is told. */
  loseReplies(): void;
  /** Connections that ended so. */
  readonly repliesLost: number;
  close(): Promise<void>;
}

export async function startTcpRelay(targetPort: number): Promise<TcpRelay> {
  const sockets = new Set<Socket>();
  const silenced = new WeakSet<Socket>();
  const doomed = new WeakSet<Socket>();
  let repliesLost = 0;
  const server = createServer((inner) => {
    sockets.add(inner);
    inner.on("error", () => {});
    inner.on("close", () => sockets.delete(inner));
    if (relay.mode === "hold") {
      // Read, so that its end is noticed.
      inner.resume();
      return;
    }
    const outer = connect(targetPort, "127.0.0.1");
    outer.on("error", () => inner.destroy());
    outer.on("close", () => silenced.has(inner) || inner.destroy());
    inner.on("close", () => outer.destroy());
    inner.on("data", (bytes) => silenced.has(inner) || outer.write(bytes));
    outer.on("data", (bytes) => {
      if (silenced.has(inner) || inner.destroyed) return;
      if (!doomed.has(inner)) return void inner.write(bytes);
      repliesLost += 1;
      inner.resetAndDestroy();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const relay: TcpRelay = {
    port: (server.address() as AddressInfo).port,
    mode: "pass",
    get open() {
      return sockets.size;
    },
    silence() {
      for (const socket of sockets) silenced.add(socket);
    },
    reset() {
      for (const socket of sockets) socket.resetAndDestroy();
    },
    loseReplies() {
      for (const socket of sockets) doomed.add(socket);
    },
    get repliesLost() {
      return repliesLost;
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
  return relay;
}
