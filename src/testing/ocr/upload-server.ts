import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createSystemRuntime } from "../../backends/system.js";
import { maskSecret } from "../../domain/secret.js";
import type { ProviderClock } from "../provider/clock.js";
import { drawsFor } from "../provider/random.js";
import { type ReceivedPart, readMultipart } from "./multipart-reader.js";

/** What the simulated servers have in common that take a picture as an upload: real HTTP, a ledger, failures on demand. */

export interface UploadServerOptions {
  /** Default `127.0.0.1`. */
  readonly host?: string;
  /** 0 (default) = any free port. */
  readonly port?: number;
  /** Same seed and same order of arrival = same failures and same pages. Integer, default 1. */
  readonly seed?: number;
  /** Pages of a PDF; a picture is one. Default 2. */
  readonly pages?: number;
  /** Keys that are accepted, as `authorization: Bearer …`; empty or absent = every key, also none. */
  readonly apiKeys?: readonly string[];
  /** Time before each answer to an upload, ms. Default 0. */
  readonly latencyMs?: number;
  /** Default: the system's. */
  readonly clock?: ProviderClock;
}

/** Failures of any such server, of uploads alone. They hold until they are changed. */
export interface UploadFaults {
  /** Share of uploads that are answered with 500, drawn from the seed. Default 0. */
  readonly failureRate?: number;
  /** Uploads that are never answered: 1 = the first one since the server started. */
  readonly hangAt?: readonly number[];
  /** 503 instead of an answer. */
  readonly overloaded?: boolean;
  /** The answer stops in its middle, and the connection is closed. */
  readonly cut?: boolean;
  /** The faults are over after so many uploads that met them. Default: they stay. */
  readonly times?: number;
}

/** What a server saw of one request. */
export interface UploadLedgerEntry {
  /** 1, 2, 3… by arrival. */
  readonly id: number;
  readonly method: string;
  /** With its query. */
  readonly path: string;
  /** Masked; "" = none. */
  readonly apiKey: string;
  /** Epoch ms. */
  readonly arrivedAtMs: number;
  /** null = not yet. */
  endedAtMs: number | null;
  /** HTTP status sent; 0 = none. */
  status: number;
  outcome: "open" | "answered" | "error" | "hang" | "cut" | "client_closed";
  /** Of the uploaded file; null = there was none. */
  fileName: string | null;
  fileBytes: number;
  /** SHA-256 of the file, hexadecimal: the same page again has the same. */
  digest: string | null;
  /** Further fields of the form. */
  fields: Readonly<Record<string, string>>;
}

export interface UploadServer<Faults> {
  readonly port: number;
  /** `http://host:port`: also what a source's BASE_URL is. */
  readonly origin: string;
  readonly baseUrl: string;
  /** What arrived so far, by arrival. */
  ledger(): readonly Readonly<UploadLedgerEntry>[];
  /** How often each file was uploaded, by its digest. */
  uploads(): ReadonlyMap<string, number>;
  /** Most uploads in progress at once so far. */
  readonly peakConcurrency: number;
  /** Replaces all faults. @throws ConfigError */
  change(changes: { readonly faults?: Faults }): void;
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface UploadRequest {
  readonly method: string;
  readonly url: URL;
  /** The first file of the form; null = there is none. */
  readonly file: (ReceivedPart & { readonly fileName: string; readonly digest: string }) | null;
  readonly fileField: string | null;
  readonly fields: Readonly<Record<string, string>>;
}

export interface UploadReply {
  readonly status: number;
  /** Bytes are sent as they are, anything else as JSON. */
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** What makes one server of its kind. */
export interface UploadServerKind<Faults extends UploadFaults> {
  /** @throws ConfigError with every bad option. */
  check(options: unknown): void;
  /** `faults`: those that an upload meets, none once they are over; of other requests, those in force. */
  reply(request: UploadRequest, faults: Faults): UploadReply;
  error(status: number, message: string): UploadReply;
}

/** Starts the server; rejects with a ConfigError, or with the system's error when the port can't be had. */
export async function startUploadServer<Faults extends UploadFaults>(
  options: UploadServerOptions & { readonly faults?: Faults },
  kind: UploadServerKind<Faults>,
): Promise<UploadServer<Faults>> {
  kind.check(options);
  const noFaults = {} as Faults;
  let faults = options.faults ?? noFaults;
  const { host = "127.0.0.1", port: wanted = 0, seed = 1, apiKeys = [], latencyMs = 0 } = options;
  const clock = options.clock ?? createSystemRuntime();
  const entries: UploadLedgerEntry[] = [];
  const counts = new Map<string, number>();
  const timers = new Set<() => void>();
  const seen = { uploads: 0, inProgress: 0, peak: 0, faultsMet: 0 };

  function open(request: IncomingMessage): UploadLedgerEntry {
    const key = /^bearer (.+)$/i.exec(request.headers.authorization ?? "")?.[1] ?? "";
    const entry: UploadLedgerEntry = {
      id: entries.length + 1,
      method: request.method ?? "",
      path: request.url ?? "",
      apiKey: key === "" ? "" : maskSecret(key),
      arrivedAtMs: clock.wallNow(),
      endedAtMs: null,
      status: 0,
      outcome: "open",
      fileName: null,
      fileBytes: 0,
      digest: null,
      fields: {},
    };
    entries.push(entry);
    return entry;
  }

  function note(entry: UploadLedgerEntry, { file, fields }: UploadRequest): void {
    entry.fields = fields;
    if (file === null) return;
    Object.assign(entry, { fileName: file.fileName, fileBytes: file.bytes.length, digest: file.digest });
    counts.set(file.digest, (counts.get(file.digest) ?? 0) + 1);
  }

  function send(response: ServerResponse, entry: UploadLedgerEntry, reply: UploadReply, isCut: boolean): void {
    const { status, body, headers } = reply;
    const bytes = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
    const contentType = Buffer.isBuffer(body) ? "application/zip" : "application/json";
    response.writeHead(status, { "content-type": contentType, "content-length": bytes.length, ...headers });
    entry.status = status;
    if (isCut) {
      entry.outcome = "cut";
      response.write(bytes.subarray(0, bytes.length / 2), () => response.destroy());
      return;
    }
    entry.outcome = status < 400 ? "answered" : "error";
    response.end(bytes);
  }

  /** The faults that the next upload meets. */
  function takeFaults(): Faults {
    const { times = Number.POSITIVE_INFINITY } = faults;
    if (seen.faultsMet >= times) return noFaults;
    seen.faultsMet += 1;
    return faults;
  }

  function answerUpload(request: UploadRequest, response: ServerResponse, entry: UploadLedgerEntry): void {
    seen.uploads += 1;
    seen.inProgress += 1;
    seen.peak = Math.max(seen.peak, seen.inProgress);
    response.on("close", () => {
      seen.inProgress -= 1;
    });
    const ordinal = seen.uploads;
    const met = takeFaults();
    if (met.hangAt?.includes(ordinal)) {
      entry.outcome = "hang";
      return;
    }
    after(latencyMs, () => {
      const isFailing = drawsFor(seed, ordinal)() < (met.failureRate ?? 0);
      let reply = kind.reply(request, met);
      if (isFailing) reply = kind.error(500, "the simulated server failed");
      else if (met.overloaded === true) reply = kind.error(503, "the simulated server is overloaded");
      send(response, entry, reply, met.cut === true);
    });
  }

  function after(delayMs: number, step: () => void): void {
    if (delayMs === 0) {
      step();
      return;
    }
    const cancel = clock.setTimer(delayMs, () => {
      timers.delete(cancel);
      step();
    });
    timers.add(cancel);
  }

  function answer(message: IncomingMessage, response: ServerResponse, body: Buffer, entry: UploadLedgerEntry): void {
    const request = requestOf(message, body);
    note(entry, request);
    const [, key = ""] = /^bearer (.+)$/i.exec(message.headers.authorization ?? "") ?? [];
    if (apiKeys.length > 0 && !apiKeys.includes(key)) {
      send(response, entry, kind.error(401, "the key is missing or unknown"), false);
    } else if (request.method === "POST") answerUpload(request, response, entry);
    else send(response, entry, kind.reply(request, faults), false);
  }

  const server = createServer((message, response) => {
    const entry = open(message);
    const chunks: Buffer[] = [];
    response.on("close", () => {
      if (entry.outcome === "open" || (entry.outcome === "answered" && !response.writableFinished)) {
        entry.outcome = "client_closed";
      }
      entry.endedAtMs = clock.wallNow();
    });
    message.on("error", () => {
      // The close of the response tells it.
    });
    message.on("data", (chunk: Buffer) => chunks.push(chunk));
    message.on("end", () => answer(message, response, Buffer.concat(chunks), entry));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(wanted, host, resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  const origin = `http://${host.includes(":") ? `[${host}]` : host}:${address.port}`;

  async function stop(): Promise<void> {
    for (const cancel of timers) cancel();
    const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  }

  return {
    port: address.port,
    origin,
    baseUrl: origin,
    ledger: () => entries,
    uploads: () => counts,
    get peakConcurrency() {
      return seen.peak;
    },
    change(changes) {
      kind.check(changes);
      faults = changes.faults ?? noFaults;
      // Their count begins anew.
      seen.faultsMet = 0;
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function requestOf(message: IncomingMessage, body: Buffer): UploadRequest {
  const parts = readMultipart(message.headers["content-type"], body) ?? [];
  const file = parts.find(({ fileName }) => fileName !== null);
  const fields = parts.filter(({ fileName }) => fileName === null).map(({ name, bytes }) => [name, bytes.toString()]);
  return {
    method: message.method ?? "",
    url: new URL(message.url ?? "/", "http://server"),
    file:
      file === undefined
        ? null
        : { ...file, fileName: file.fileName ?? "", digest: createHash("sha256").update(file.bytes).digest("hex") },
    fileField: file?.name ?? null,
    fields: Object.fromEntries(fields) as Record<string, string>,
  };
}
