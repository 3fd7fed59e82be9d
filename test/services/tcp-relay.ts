import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A wire between a client and a server that can be held, cut in silence, or cut aloud. */
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
  close(): Promise<void>;
}

export async function startTcpRelay(targetPort: number): Promise<TcpRelay> {
  const sockets = new Set<Socket>();
  const silenced = new WeakSet<Socket>();
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
    outer.on("data", (bytes) => silenced.has(inner) || inner.write(bytes));
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
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
  return relay;
}
