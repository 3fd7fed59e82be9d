import { maskSecret } from "../../domain/secret.js";
import type { ProviderClock } from "./clock.js";
import type { ClosedBy, Connection } from "./connection.js";
import type { Ledger, LedgerEntry, LedgerOutcome } from "./ledger.js";
import type { RequestHead } from "./request-reader.js";

/** One request in progress: its ledger entry and what an early end would mean. */
export interface Exchange {
  readonly connection: Connection;
  readonly entry: LedgerEntry;
  /** Outcome when the connection ends first; null = the one who ended it decides. */
  brokenOutcome: LedgerOutcome | null;
  /** Nothing more will be sent, so a graceful stop doesn't wait for it. */
  hanging: boolean;
}

export interface Exchanges {
  open(connection: Connection, head: RequestHead): void;
  of(connection: Connection): Exchange | undefined;
  /** The response was completely handed to the socket. */
  end(exchange: Exchange, status: number, outcome: LedgerOutcome): void;
  hang(exchange: Exchange, status: number, outcome: LedgerOutcome): void;
  /** The connection is gone. */
  abandon(connection: Connection, by: ClosedBy): void;
  readonly inProgress: number;
  readonly arrived: number;
  /** Resolves when only hanging requests are left, at the latest after `graceMs`. */
  drained(graceMs: number): Promise<void>;
}

function bearerOf(headers: RequestHead["headers"]): string {
  const { authorization } = headers;
  return authorization?.toLowerCase().startsWith("bearer ") ? authorization.slice(7).trim() : "";
}

/** The key a request was sent with; "" = none. */
export function apiKeyOf({ headers }: RequestHead): string {
  return bearerOf(headers) || headers["api-key"] || headers["x-api-key"] || "";
}

function requestIdOf({ headers }: RequestHead): string | null {
  return headers["x-pgw-call-id"] ?? headers["x-request-id"] ?? headers["x-client-request-id"] ?? null;
}

export function createExchanges(ledger: Ledger, clock: ProviderClock): Exchanges {
  const open = new Map<Connection, Exchange>();
  let arrived = 0;
  let onChange: (() => void) | null = null;

  function close(exchange: Exchange, status: number, outcome: LedgerOutcome, clientClosed: boolean): void {
    open.delete(exchange.connection);
    ledger.close(exchange.entry, { status, outcome, clientClosed, bytes: exchange.connection.bytesWritten });
    onChange?.();
  }

  function isDrained(): boolean {
    for (const exchange of open.values()) if (!exchange.hanging) return false;
    return true;
  }

  return {
    open(connection, head) {
      arrived += 1;
      const key = apiKeyOf(head);
      const apiKey = key === "" ? "" : maskSecret(key);
      const entry = ledger.open({ path: head.path, apiKey, requestId: requestIdOf(head) });
      open.set(connection, { connection, entry, brokenOutcome: null, hanging: false });
    },
    of: (connection) => open.get(connection),
    end: (exchange, status, outcome) => close(exchange, status, outcome, false),
    hang(exchange, status, outcome) {
      exchange.entry.status = status;
      exchange.brokenOutcome = outcome;
      exchange.hanging = true;
      onChange?.();
    },
    abandon(connection, by) {
      const exchange = open.get(connection);
      if (exchange === undefined) return;
      const outcome = exchange.brokenOutcome ?? (by === "client" ? "client_closed" : "stopped");
      close(exchange, exchange.entry.status, outcome, by === "client");
    },
    get inProgress() {
      return open.size;
    },
    get arrived() {
      return arrived;
    },
    drained(graceMs) {
      if (graceMs <= 0 || isDrained()) return Promise.resolve();
      return new Promise((resolve) => {
        const done = (): void => {
          cancel();
          onChange = null;
          resolve();
        };
        const cancel = clock.setTimer(graceMs, done);
        onChange = () => {
          if (isDrained()) done();
        };
      });
    },
  };
}
