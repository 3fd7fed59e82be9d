import type { Socket } from "node:net";
import type { CancelTimer } from "../../ports/runtime.js";
import type { ProviderClock } from "./clock.js";
import { createRequestReader, type RequestHead } from "./request-reader.js";

/** Who ended a connection: the other side, or this server. */
export type ClosedBy = "client" | "server";

/** How long bytes already written get to leave before a reset: a reset right behind them may overtake them. */
const RESET_LINGER_MS = 10;

/** One client socket with at most one request in progress and at most one pending timer. */
export interface Connection {
  /** Requests received on this socket before the current one. */
  readonly earlierRequests: number;
  readonly isOpen: boolean;
  bytesWritten: number;
  write(data: string | Buffer): void;
  /** Runs `step` after the delay, at once when it is 0; replaces the pending timer. Never runs once the socket is closed. */
  after(delayMs: number, step: () => void): void;
  /** The response is complete: keep the socket for the next request, or close it. */
  finish(keepAlive: boolean): void;
  /** FIN, whatever the response looks like so far. */
  end(): void;
  /** RST. `now` also drops what is still on its way. */
  reset(when: "now" | "after_flush"): void;
}

export interface ConnectionEvents {
  onHead(connection: Connection, head: RequestHead): void;
  onRequest(connection: Connection, head: RequestHead, body: Buffer): void;
  onUnreadable(connection: Connection, status: number, message: string): void;
  /** The socket is gone; `by` tells who ended it first. */
  onClose(connection: Connection, by: ClosedBy): void;
}

export function openConnection(socket: Socket, clock: ProviderClock, events: ConnectionEvents): Connection {
  let pending: CancelTimer | null = null;
  let endedBy: ClosedBy | null = null;
  let received = 0;

  function cancelPending(): void {
    pending?.();
    pending = null;
  }

  function resetNow(): void {
    endedBy ??= "server";
    cancelPending();
    socket.resetAndDestroy();
  }

  const connection: Connection = {
    get earlierRequests() {
      return received - 1;
    },
    get isOpen() {
      return endedBy === null && !socket.destroyed;
    },
    bytesWritten: 0,
    write(data) {
      if (!connection.isOpen) return;
      connection.bytesWritten += typeof data === "string" ? Buffer.byteLength(data) : data.length;
      socket.write(data);
    },
    after(delayMs, step) {
      cancelPending();
      if (!connection.isOpen) return;
      if (delayMs <= 0) return step();
      pending = clock.setTimer(delayMs, () => {
        pending = null;
        if (connection.isOpen) step();
      });
    },
    finish(keepAlive) {
      if (!keepAlive) return connection.end();
      reader.release();
    },
    end() {
      endedBy ??= "server";
      cancelPending();
      socket.end();
    },
    reset(when) {
      if (when === "now") resetNow();
      else connection.after(RESET_LINGER_MS, resetNow);
    },
  };

  const reader = createRequestReader({
    onHead(head) {
      received += 1;
      connection.bytesWritten = 0;
      cancelPending();
      if (head.headers.expect?.toLowerCase() === "100-continue") socket.write("HTTP/1.1 100 Continue\r\n\r\n");
      events.onHead(connection, head);
    },
    onRequest: (head, body) => events.onRequest(connection, head, body),
    onError: (status, message) => events.onUnreadable(connection, status, message),
  });

  socket.setNoDelay(true);
  socket.on("data", (chunk: Buffer) => reader.push(chunk));
  socket.on("error", () => {
    // The close event that follows tells everything there is to tell.
  });
  socket.on("end", () => {
    endedBy ??= "client";
  });
  socket.on("close", () => {
    endedBy ??= "client";
    cancelPending();
    events.onClose(connection, endedBy);
  });
  return connection;
}
