import { Socket } from "node:net";
import { startTimer } from "../backends/system.js";
import { PoolError } from "./postgres-errors.js";

/** Connections of which is known whether what is at their other end is PostgreSQL: it says its first word quickly. */
export interface WatchedSockets {
  open(): Socket;
  /** From now on nobody waits longer than this for a first word, those who wait already too. */
  hurry(limitMs: number): void;
  /** Those that are still there, at once. */
  destroy(): void;
}

/** Shorter than the driver's own limit, which says nothing of what was seen. */
const SILENCE_MS = 4_000;
/** Authentication, error, notice, version; where TLS is asked for, one letter alone: S or N. */
const FIRST_LETTERS = new Set([..."RENvS"].map((letter) => letter.charCodeAt(0)));

const STRANGERS: readonly (readonly [RegExp, string])[] = [
  [/^HTTP\//, "a web server (HTTP) answers there, not PostgreSQL"],
  [/^[-+](?:ERR|NOAUTH|DENIED|OK|PONG)/, "Redis answers there, not PostgreSQL"],
  [/^SSH-/, "an SSH server answers there, not PostgreSQL"],
];

export function watchedSockets(): WatchedSockets {
  const all = new Set<Socket>();
  const silent = new Set<Socket>();
  let limitMs = SILENCE_MS;

  /** Keeps no process alive by itself: who waits does. */
  function giveUpAfter(waitMs: number, sockets: ReadonlySet<Socket>): void {
    startTimer(
      waitMs,
      () => {
        for (const socket of sockets) if (silent.has(socket)) socket.destroy(new Error(silenceText(socket, waitMs)));
      },
      false,
    );
  }

  return {
    open() {
      const socket = new Socket();
      // The driver hears it too; once it doesn't any more, nobody would, and an unheard error ends the process.
      socket.on("error", () => {});
      all.add(socket);
      silent.add(socket);
      socket.once("close", () => {
        all.delete(socket);
        silent.delete(socket);
      });
      socket.once("data", (bytes: Buffer) => {
        silent.delete(socket);
        if (!isPostgres(bytes)) socket.destroy(new PoolError(strangerText(bytes)));
      });
      giveUpAfter(limitMs, new Set([socket]));
      return socket;
    },
    hurry(newLimitMs) {
      limitMs = newLimitMs;
      giveUpAfter(newLimitMs, new Set(silent));
    },
    destroy() {
      for (const socket of all) socket.destroy();
    },
  };
}

/** Behind the letter of a message stands its length in four bytes, of which the first is always zero. */
function isPostgres(bytes: Buffer): boolean {
  return FIRST_LETTERS.has(bytes[0] ?? 0) && (bytes.length === 1 || bytes[1] === 0);
}

function strangerText(bytes: Buffer): string {
  const text = bytes.subarray(0, 16).toString("latin1");
  const known = STRANGERS.find(([form]) => form.test(text))?.[1];
  return `${known ?? "what answers there is not PostgreSQL"}: correct host and port`;
}

function silenceText(socket: Socket, waitMs: number): string {
  const within = `within ${waitMs / 1_000} s`;
  if (socket.connecting) return `no connection ${within}`;
  return `something takes the connection, but does not answer ${within} as PostgreSQL does: look at host and port`;
}
