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
  close(): Promise<void>;
}

export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let swallow = false;
  let accepted = 0;
  const cut = (): void => {
    for (const pair of pairs) for (const socket of pair) socket.resetAndDestroy();
  };
  const server = createServer((near) => {
    accepted += 1;
    const far = connect(targetPort, "127.0.0.1");
    const pair = [near, far] as const;
    pairs.add(pair);
    near.on("data", (bytes) => far.write(bytes));
    far.on("data", (bytes) => void (swallow || near.write(bytes)));
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
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        cut();
      }),
  };
}
