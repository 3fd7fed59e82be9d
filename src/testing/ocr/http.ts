import { createSystemRuntime } from "../../backends/system.js";
import { maskSecret } from "../../domain/secret.js";
import type { ProviderClock } from "../provider/clock.js";
import type { Connection } from "../provider/connection.js";
import { jsonHead, statusLine } from "../provider/http-response.js";
import { startListener } from "../provider/listener.js";
import type { RequestHead } from "../provider/request-reader.js";

/** What the simulated OCR servers have in common: real HTTP, a ledger of what arrived, and failures on demand. */

/** Failures that hold until they are changed; at most one of them at a time. Requests for a server's health meet none. */
export interface OcrServerFaults {
  /** Answered with this status and an error as this server tells it. */
  readonly status?: number;
  /** Accepted and never answered. */
  readonly hang?: boolean;
  /** The answer stops in its middle, and the connection is closed. */
  readonly cut?: boolean;
  /** RST before a single byte. */
  readonly reset?: boolean;
  /** 200 with a web page. */
  readonly html?: boolean;
  /** The fault is over after so many requests. Default: it stays. */
  readonly times?: number;
}

export interface OcrServerOptions {
  /** Default `127.0.0.1`. */
  readonly host?: string;
  /** 0 (default) = any free port. */
  readonly port?: number;
  /** Keys that are accepted; empty or absent = every key, also none. */
  readonly apiKeys?: readonly string[];
  /** Time before each answer, ms. Default 0. */
  readonly latencyMs?: number;
  /** Default: the system's. */
  readonly clock?: ProviderClock;
}

export type OcrServerOutcome = "answered" | "error" | "unauthorized" | "hang" | "cut" | "reset" | "client_closed";

/** What a server saw of one request. */
export interface OcrLedgerEntry {
  /** 1, 2, 3… by arrival. */
  readonly id: number;
  readonly method: string;
  readonly path: string;
  /** Masked; "" = none. */
  readonly apiKey: string;
  /** Epoch ms. */
  readonly arrivedAtMs: number;
  /** The request's body as JSON; undefined = it has none. */
  body: Readonly<Record<string, unknown>> | undefined;
  /** null = not yet. */
  endedAtMs: number | null;
  /** HTTP status sent; 0 = none. */
  status: number;
  outcome: OcrServerOutcome;
}

export interface OcrServer<Changes> {
  readonly port: number;
  /** `http://host:port`. */
  readonly origin: string;
  /** What a source's BASE_URL is. */
  readonly baseUrl: string;
  /** What arrived so far, by arrival. */
  ledger(): readonly Readonly<OcrLedgerEntry>[];
  /** Replaces what is named. @throws ConfigError */
  change(changes: Changes): void;
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface OcrReply {
  readonly status: number;
  readonly body: unknown;
}

/** What makes one server of its kind. */
export interface OcrServerKind<Changes> {
  /** @throws ConfigError with every bad option. */
  check(options: unknown): void;
  /** The word before the key in `authorization`. */
  readonly scheme: string;
  /** What is appended to `origin` for BASE_URL. */
  readonly basePath: string;
  faults(): OcrServerFaults;
  /** Of what was checked. */
  change(changes: Changes): void;
  /** Answers a request without any fault. */
  reply(method: string, path: string, body: unknown): OcrReply;
  /** An error as this server tells it. */
  error(status: number, message: string): OcrReply;
}

const PAGE = "<!doctype html><html><head><title>Welcome</title></head><body>A portal</body></html>";

/** Starts the server; rejects with a ConfigError, or with the system's error when the port can't be had. */
export async function startOcrServer<Changes>(
  options: OcrServerOptions,
  kind: OcrServerKind<Changes>,
): Promise<OcrServer<Changes>> {
  kind.check(options);
  const clock = options.clock ?? createSystemRuntime();
  const { host = "127.0.0.1", port = 0, apiKeys = [], latencyMs = 0 } = options;
  const entries: OcrLedgerEntry[] = [];
  const open = new Map<Connection, OcrLedgerEntry>();
  let faultsMet = 0;

  function keyOf({ headers }: RequestHead): string {
    const prefix = `${kind.scheme.toLowerCase()} `;
    const { authorization = "" } = headers;
    return authorization.toLowerCase().startsWith(prefix) ? authorization.slice(prefix.length).trim() : "";
  }

  function end(connection: Connection, status: number, outcome: OcrServerOutcome): void {
    const entry = open.get(connection);
    if (entry === undefined) return;
    open.delete(connection);
    Object.assign(entry, { status, outcome, endedAtMs: clock.wallNow() });
  }

  function send(connection: Connection, { status, body }: OcrReply, outcome: OcrServerOutcome): void {
    const bytes = Buffer.from(JSON.stringify(body));
    connection.write(jsonHead(status, bytes.length, {}, true));
    if (outcome !== "cut") connection.write(bytes);
    else connection.write(bytes.subarray(0, Math.floor(bytes.length / 2)));
    end(connection, status, outcome);
    connection.finish(outcome !== "cut");
  }

  function takeFault(): OcrServerFaults {
    const faults = kind.faults();
    if (faults.times !== undefined && faultsMet >= faults.times) return {};
    faultsMet += 1;
    return faults;
  }

  function serve(connection: Connection, head: RequestHead, body: unknown): void {
    const { method, path } = head;
    if (apiKeys.length > 0 && !apiKeys.includes(keyOf(head))) {
      send(connection, kind.error(401, "The key is missing or unknown."), "unauthorized");
      return;
    }
    const faults = method === "POST" ? takeFault() : {};
    if (faults.hang === true) {
      const entry = open.get(connection);
      if (entry !== undefined) entry.outcome = "hang";
    } else if (faults.reset === true) {
      end(connection, 0, "reset");
      connection.reset("now");
    } else if (faults.html === true) {
      const text = `${statusLine(200)}content-type: text/html\r\ncontent-length: ${PAGE.length}\r\n\r\n${PAGE}`;
      connection.write(text);
      end(connection, 200, "error");
      connection.finish(true);
    } else if (faults.status !== undefined) {
      send(connection, kind.error(faults.status, `The server failed with ${faults.status}.`), "error");
    } else {
      const reply = kind.reply(method, path, body);
      const isGood = reply.status < 400;
      send(connection, reply, faults.cut === true ? "cut" : isGood ? "answered" : "error");
    }
  }

  const listener = await startListener({ host, port }, clock, {
    onHead(connection, head) {
      const key = keyOf(head);
      const entry: OcrLedgerEntry = {
        id: entries.length + 1,
        method: head.method,
        path: head.path,
        apiKey: key === "" ? "" : maskSecret(key),
        arrivedAtMs: clock.wallNow(),
        body: undefined,
        endedAtMs: null,
        status: 0,
        outcome: "client_closed",
      };
      entries.push(entry);
      open.set(connection, entry);
    },
    onRequest(connection, head, bytes) {
      const body = parsed(bytes);
      const entry = open.get(connection);
      if (entry !== undefined) entry.body = body;
      connection.after(latencyMs, () => serve(connection, head, body));
    },
    onUnreadable(connection, status, message) {
      send(connection, kind.error(status, message), "error");
      connection.end();
    },
    onClose(connection) {
      const entry = open.get(connection);
      if (entry !== undefined) end(connection, 0, entry.outcome);
    },
  });

  async function stop(): Promise<void> {
    listener.refuse();
    listener.resetAll();
    await listener.allClosed();
  }

  return {
    port: listener.port,
    origin: listener.origin,
    baseUrl: `${listener.origin}${kind.basePath}`,
    ledger: (): readonly Readonly<OcrLedgerEntry>[] => entries,
    change(changes) {
      kind.check(changes);
      kind.change(changes);
      // A change of faults begins their count anew.
      faultsMet = 0;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function parsed(bytes: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
