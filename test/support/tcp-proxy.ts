import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** A wire between a client and a server that can be broken in ways that a server can't be. */
export interface TcpProxy {
  readonly port: number;
  /** Connections taken so far. */
  readonly accepted: number;
  /** What the server says is thrown away from now on; the connection stays. */
  swallowReplies(swallow: boolean): void;
  /** Resets every connection; new ones are taken. */
  cut(): void;
  /** Where new connections lead from now on. */
  retarget(port: number): void;
  /** Whatever is said from now on takes so long, each way, in its order. */
  delay(nextMs: () => number): void;
  close(): Promise<void>;
}

export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let swallow = false;
  let accepted = 0;
  let target = targetPort;
  let nextDelayMs: (() => number) | null = null;
  /** A way of its own for each direction of a connection: nothing overtakes. */
  const way = (write: (bytes: Buffer) => void) => {
    let freeAtMs = 0;
    return (bytes: Buffer): void => {
      if (nextDelayMs === null) {
        write(bytes);
        return;
      }
      freeAtMs = Math.max(performance.now() + nextDelayMs(), freeAtMs);
      setTimeout(() => write(bytes), freeAtMs - performance.now());
    };
  };
  const cut = (): void => {
    for (const pair of pairs) for (const socket of pair) socket.resetAndDestroy();
  };
  const server = createServer((near) => {
    accepted += 1;
    const far = connect(target, "127.0.0.1");
    const pair = [near, far] as const;
    pairs.add(pair);
    const there = way((bytes) => void (far.destroyed || far.write(bytes)));
    const back = way((bytes) => void (swallow || near.destroyed || near.write(bytes)));
    near.on("data", there);
    far.on("data", back);
    for (const [socket, other] of [[near, far] as const, [far, near] as const]) {
      socket.setNoDelay(true);
      socket.on("error", () => {});
      socket.on("close", () => {
        pairs.delete(pair);
        other.destroy();
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    get accepted() {
      return accepted;
    },
    swallowReplies: (on) => {
      swallow = on;
    },
    cut,
    retarget: (port) => {
      target = port;
    },
    delay: (nextMs) => {
      nextDelayMs = nextMs;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        cut();
      }),
  };
}
