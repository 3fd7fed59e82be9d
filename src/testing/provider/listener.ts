import { createServer, type Socket } from "node:net";
import type { ProviderClock } from "./clock.js";
import { type Connection, type ConnectionEvents, openConnection } from "./connection.js";

/** The listening socket of a server for tests, with the connections that it has accepted. */
export interface Listener {
  readonly port: number;
  /** `http://host:port`. */
  readonly origin: string;
  readonly connections: number;
  readonly listening: boolean;
  /** Accepts again on the same port. */
  reopen(): Promise<void>;
  /** Accepts no more; what is open stays open. */
  refuse(): void;
  /** RST to every connection. */
  resetAll(): void;
  allClosed(): Promise<void>;
}

/** Rejects with the system's error when the port can't be had. */
export async function startListener(
  { host, port: wanted }: { readonly host: string; readonly port: number },
  clock: ProviderClock,
  events: ConnectionEvents,
): Promise<Listener> {
  const connections = new Set<Connection>();
  const idleWaiters = new Set<() => void>();

  function accept(socket: Socket): void {
    const connection = openConnection(socket, clock, {
      ...events,
      onClose(closed, by) {
        connections.delete(closed);
        events.onClose(closed, by);
        if (connections.size > 0) return;
        for (const wake of idleWaiters) wake();
        idleWaiters.clear();
      },
    });
    connections.add(connection);
  }

  const server = createServer(accept);

  function listen(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen({ host, port, backlog: 4096 }, () => {
        server.off("error", reject);
        resolve();
      });
    });
  }

  await listen(wanted);
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  const { port } = address;

  return {
    port,
    origin: `http://${host.includes(":") ? `[${host}]` : host}:${port}`,
    get connections() {
      return connections.size;
    },
    get listening() {
      return server.listening;
    },
    reopen: () => listen(port),
    refuse: () => void server.close(),
    resetAll() {
      for (const connection of [...connections]) connection.reset("now");
    },
    allClosed() {
      if (connections.size === 0) return Promise.resolve();
      return new Promise<void>((resolve) => void idleWaiters.add(resolve));
    },
  };
}
