import { createHash } from "node:crypto";
import { createServer, type RequestListener } from "node:http";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { OcrImage } from "../../domain/ocr.js";
import { Secret } from "../../domain/secret.js";
import type { SourceConfig } from "../../domain/source.js";
import { type MonkeyOcrFaults, startMonkeyOcrServer } from "../../testing/ocr/monkey-ocr-server.js";
import { runtime, TestContext, testSource } from "../attempt.test-helper.js";
import { createMonkeyOcrTransport } from "./monkey-ocr.js";

const PNG: OcrImage = { bytes: Buffer.from("\x89PNG a picture", "latin1"), mediaType: "image/png", size: null };
const PDF: OcrImage = { bytes: Buffer.from("%PDF-1.7 a document"), mediaType: "application/pdf", size: null };
const DIGEST = createHash("sha256").update(PNG.bytes).digest("hex");
const KEY = "sk-test-key-0001";

type Failure = Record<string, unknown> & Error;

let transport: ReturnType<typeof createMonkeyOcrTransport>;
let server: Awaited<ReturnType<typeof startMonkeyOcrServer>>;

beforeAll(() => {
  transport = createMonkeyOcrTransport({ runtime });
});
afterAll(() => transport.close());
beforeEach(async () => {
  server = await startMonkeyOcrServer({ seed: 7 });
});
afterEach(() => server.stop());

function source(overrides: Partial<SourceConfig> = {}): SourceConfig {
  return testSource(server.baseUrl, { transport: "monkey-ocr", name: "reader", ...overrides });
}

function attempt(image: OcrImage = PNG, from: SourceConfig = source(), context = new TestContext()) {
  return { source: from, image, context };
}

async function failureOf(promise: Promise<unknown>): Promise<Failure> {
  return promise.then(
    (value) => {
      throw new Error(`no failure but ${JSON.stringify(value)}`);
    },
    (error: Failure) => error,
  );
}

describe("text", () => {
  test("is read from a picture, uploaded under a name that the server takes", async () => {
    const context = new TestContext();
    const completion = await transport.recognizeText(attempt(PNG, source(), context));
    expect(completion.text).toMatch(new RegExp(`^Scan ${DIGEST.slice(0, 8)} page 1\n`));
    expect(completion).toMatchObject({ pageCount: 1, usage: null, modelReported: null, statusCode: 200 });
    expect(context.sent).toBe(1);
    expect(context.listeners.size).toBe(0);
    const [entry] = server.ledger();
    expect(entry).toMatchObject({ path: "/ocr/text", fileName: "scan.png", digest: DIGEST, status: 200, fields: {} });
  });

  test("of a document has the pages one after the other", async () => {
    const { text } = await transport.recognizeText(attempt(PDF));
    expect(text.split("\n\n")).toHaveLength(2);
    expect(server.ledger()[0]?.fileName).toBe("scan.pdf");
  });

  test.each<[string, MonkeyOcrFaults, string, string, RegExp]>([
    ["told as a failure", { failure: "CUDA error: device-side assert" }, "TransientError", "upstream_error", /CUDA/],
    ["without room on the card", { failure: "CUDA out of memory" }, "TransientError", "upstream_error", /memory/],
    ["that isn't explained", { failure: "KeyError: 'x'" }, "TransientError", "upstream_error", /KeyError/],
    ["of a wrapped refusal", { failure: "400: page too small" }, "RequestRejectedError", "bad_request", /too small/],
    ["of a server that isn't ready", { unready: true }, "TransientError", "overloaded", /not initialized/],
    ["of a full queue", { errorText: "Error: Request queue full" }, "TransientError", "rate_limit", /queue full/],
    ["of a slow queue", { errorText: "Error: Request timeout" }, "TransientError", "upstream_error", /timeout/],
    [
      "of the card, told as text",
      { errorText: "Error: CUDA out of memory" },
      "TransientError",
      "upstream_error",
      /CUDA/,
    ],
    [
      "of an unknown kind, told as text",
      { errorText: "Error: list index" },
      "ResultInvalidError",
      "malformed",
      /list index/,
    ],
    ["with nothing but blanks", { empty: true }, "ResultInvalidError", "empty", /no text was found/],
    ["of the server", { failureRate: 1 }, "TransientError", "upstream_error", /500/],
    ["of its load", { overloaded: true }, "TransientError", "overloaded", /503/],
    ["in the middle of the answer", { cut: true }, "TransientError", "truncated", /middle of the answer/],
  ])("%s is no text", async (_name, faults, name, code, message) => {
    server.change({ faults });
    const error = await failureOf(transport.recognizeText(attempt()));
    expect(error).toMatchObject({ name, code, sourceName: "reader" });
    expect(error.message).toMatch(/^reader ocr_text /);
    expect(error.message).toMatch(message);
    expect(error.rateLimited ?? false).toBe(code === "rate_limit");
    if (code === "rate_limit") expect(error.details).toMatchObject({ limitedBy: "concurrency" });
  });

  test("whose failed page stands among others is none either", async () => {
    const faulty = await startMonkeyOcrServer({ pages: 3, faults: { errorText: "Error: Request timeout" } });
    const error = await failureOf(transport.recognizeText(attempt(PDF, testSource(faulty.baseUrl))));
    expect(error).toMatchObject({ name: "TransientError", code: "upstream_error" });
    await faulty.stop();
  });

  test.each(["image/webp", "image/tiff"] as const)("of %s is refused before anything is sent", async (mediaType) => {
    const context = new TestContext();
    for (const call of [transport.recognizeText, transport.parseLayout]) {
      const error = await failureOf(call(attempt({ ...PNG, mediaType }, source(), context)));
      expect(error).toMatchObject({ name: "RequestRejectedError", code: "unsupported_modality" });
      expect(error.message).toMatch(/takes PNG, JPEG and PDF, not image\/.*: convert it first/);
    }
    expect(context.sent).toBe(0);
    expect(server.ledger()).toEqual([]);
  });

  test("isn't waited for after an abort, and the server notices", async () => {
    server.change({ faults: { hangAt: [1] } });
    const context = new TestContext();
    const pending = failureOf(transport.recognizeText(attempt(PNG, source(), context)));
    await until(() => server.ledger()[0]?.outcome === "hang");
    const reason = new Error("the caller left");
    context.abort(reason);
    expect(await pending).toBe(reason);
    await until(() => server.ledger()[0]?.endedAtMs !== null);
  });

  test("that never comes ends by the source's timeout", async () => {
    server.change({ faults: { hangAt: [1] } });
    const error = await failureOf(transport.recognizeText(attempt(PNG, source({ timeoutMs: 50 }))));
    expect(error).toMatchObject({ name: "TransientError", code: "timeout" });
  });

  test("of a server that isn't there, or with a key that it refuses", async () => {
    const gone = await startMonkeyOcrServer();
    await gone.stop();
    const unreachable = await failureOf(transport.recognizeText(attempt(PNG, testSource(gone.baseUrl))));
    expect(unreachable).toMatchObject({ name: "TransientError", code: "network" });
    const closed = await startMonkeyOcrServer({ apiKeys: ["another"] });
    const refused = await failureOf(transport.recognizeText(attempt(PNG, testSource(closed.baseUrl))));
    expect(refused).toMatchObject({ name: "SourceDeadError", code: "auth" });
    expect(JSON.stringify(refused)).not.toContain(KEY);
    await closed.stop();
  });
});

describe("a layout", () => {
  test("comes from the answer itself, pages from 1 and boxes as shares", async () => {
    const { layout, pageCount } = await transport.parseLayout(attempt(PDF));
    expect(pageCount).toBe(2);
    expect(layout.pages.map(({ page, unit }) => [page, unit])).toEqual([
      [1, "point"],
      [2, "point"],
    ]);
    expect(layout.elements.filter(({ page }) => page === 1).map(({ type }) => type)).toEqual([
      ...["title", "text", "text", "image", "caption", "table", "caption"],
      ...["formula", "footer"],
    ]);
    expect(layout.elements[0]?.bbox).toEqual([72 / 612, 60 / 792, 540 / 612, 84 / 792]);
    expect(layout.droppedElements).toBe(0);
    expect(server.ledger().map(({ path }) => path)).toEqual(["/parse?return_type=middle_json"]);
  });

  test("of an older server comes from the archive, by a second request with the same key", async () => {
    server.change({ faults: { oldBuild: true } });
    const context = new TestContext();
    const { layout, pageCount, latencyMs } = await transport.parseLayout(attempt(PDF, source(), context));
    expect(pageCount).toBe(2);
    expect(layout.elements).toHaveLength(18);
    expect(latencyMs).toBeGreaterThanOrEqual(0);
    expect(context.listeners.size).toBe(0);
    const [upload, download] = server.ledger();
    expect(upload?.method).toBe("POST");
    expect(download).toMatchObject({ method: "GET", status: 200, apiKey: upload?.apiKey });
    expect(download?.path).toMatch(/^\/static\/scan_parsed_\d+_[0-9a-f]{8}\.zip$/);
    expect(await transport.parseLayout(attempt(PDF))).toMatchObject({ layout });
  });

  test("has its broken boxes mended or dropped, its NaN as nothing, and its paragraphs where they lie", async () => {
    server.change({ faults: { brokenBoxes: true, nan: true, merged: true, emptyGroup: true } });
    const { layout } = await transport.parseLayout(attempt());
    const texts = layout.elements.map(({ text }) => text);
    expect(texts).toContain("inverted");
    expect(texts).toContain("out of the page");
    expect(texts).not.toContain("no number");
    expect(layout.droppedElements).toBe(2);
    expect(layout.elements.filter(({ type }) => type === "image")).toEqual([]);
    expect(layout.elements[1]?.text).not.toContain("\n");
    expect(layout.elements[2]?.text).toMatch(/^word/);
    for (const { bbox } of layout.elements) {
      const [x0, y0, x1, y1] = bbox;
      expect(0 <= x0 && x0 < x1 && x1 <= 1 && 0 <= y0 && y0 < y1 && y1 <= 1).toBe(true);
    }
  });

  const INVALID = "ResultInvalidError";
  test.each<[string, MonkeyOcrFaults, string, string, RegExp]>([
    ["is the server's failure", { failure: "list index out of range" }, "TransientError", "upstream_error", /500/],
    ["finds the queue full", { failure: "Request queue full" }, "TransientError", "rate_limit", /500/],
    ["is an inner refusal", { failure: "400: no page in it" }, "RequestRejectedError", "bad_request", /no page in it/],
    ["finds the server unready", { unready: true }, "TransientError", "overloaded", /not initialized/],
    [
      "has a full queue's text in a span",
      { errorText: "Error: Request queue full" },
      "TransientError",
      "rate_limit",
      /full/,
    ],
    [
      "has a timeout's text in a span",
      { errorText: "Error: Request timeout" },
      "TransientError",
      "upstream_error",
      /out/,
    ],
    ["has an unknown error's text in a span", { errorText: "Error: 7" }, INVALID, "malformed", /Error: 7/],
    ["is a placeholder", { noMiddleJson: true }, INVALID, "bad_layout", /No middle.json file found/],
    ["is no JSON", { badJson: true }, INVALID, "bad_layout", /no JSON/],
    ["has a page without size", { noPageSize: true }, INVALID, "bad_layout", /page 1 tells no usable page_size/],
    ["is in an archive that was cut", { oldBuild: true, archive: "cut" }, INVALID, "bad_archive", /it was cut/],
    ["is damaged in its archive", { oldBuild: true, archive: "crc" }, INVALID, "bad_archive", /checksum/],
    ["is encrypted", { oldBuild: true, archive: "encrypted" }, INVALID, "bad_archive", /encrypted/],
    [
      "is beside a file that climbs out",
      { oldBuild: true, archive: "traversal" },
      INVALID,
      "bad_archive",
      /leaves the/,
    ],
    ["is a bomb", { oldBuild: true, archive: "bomb" }, INVALID, "bad_archive", /inflates to more than the/],
    ["overlaps another", { oldBuild: true, archive: "overlap" }, INVALID, "bad_archive", /another name or method/],
    [
      "isn't in its archive",
      { oldBuild: true, noMiddleJson: true },
      INVALID,
      "bad_archive",
      /no member.*3 entries seen/,
    ],
    ["is no JSON in its archive", { oldBuild: true, badJson: true }, INVALID, "bad_layout", /no JSON/],
    ["has an error's text in an archive", { oldBuild: true, errorText: "Error: 7" }, INVALID, "malformed", /Error: 7/],
  ])("that %s", async (_name, faults, name, code, message) => {
    server.change({ faults });
    const error = await failureOf(transport.parseLayout(attempt()));
    expect(error).toMatchObject({ name, code, sourceName: "reader" });
    expect(error.message).toMatch(/^reader ocr_layout /);
    expect(error.message).toMatch(message);
    expect(error.rateLimited ?? false).toBe(code === "rate_limit");
    if (code === "rate_limit") expect(error.details).toMatchObject({ limitedBy: "concurrency" });
    if (code === "bad_archive") expect(error.details).toMatchObject({ entries: expect.any(Array) });
  });

  test("whose archive is gone is parsed again once; the second time it is told", async () => {
    server.change({ faults: { oldBuild: true, archiveGone: true, times: 1 } });
    const image = { ...PNG };
    const first = await failureOf(transport.parseLayout(attempt(image)));
    expect(first).toMatchObject({ name: "TransientError", code: "upstream_error", statusCode: 404 });
    server.change({ faults: { oldBuild: true } });
    expect((await transport.parseLayout(attempt(image))).pageCount).toBe(1);
    server.change({ faults: { oldBuild: true, archiveGone: true } });
    expect(await failureOf(transport.parseLayout(attempt(image)))).toMatchObject({ name: "TransientError" });
    const second = await failureOf(transport.parseLayout(attempt(image)));
    expect(second).toMatchObject({ name: INVALID, code: "bad_archive", statusCode: 404 });
    expect(await failureOf(transport.parseLayout(attempt({ ...PNG })))).toMatchObject({ name: "TransientError" });
  });

  describe("whose archive is said to be", () => {
    const asked: string[] = [];
    const listener: RequestListener = (request, response) => {
      asked.push(`${request.url} ${request.headers.authorization}`);
      response.end("PK");
    };
    const elsewhere = createServer(listener);
    let origin = "";
    beforeAll(async () => {
      await new Promise<void>((resolve) => void elsewhere.listen(0, "127.0.0.1", resolve));
      const address = elsewhere.address();
      if (address !== null && typeof address === "object") origin = `127.0.0.1:${address.port}`;
    });
    afterAll(() => void elsewhere.close());

    test.each<[string, (origin: string) => string]>([
      ["on another host", (other) => `http://${other}/static/x.zip`],
      ["on another host, by the same protocol", (other) => `//${other}/static/x.zip`],
      ["on another host, by backslashes", (other) => `/\\${other}/static/x.zip`],
      ["at an address of a cloud's own", () => "http://169.254.169.254/static/x.zip"],
      ["at another protocol", () => "file:///static/x.zip"],
      ["in a data address", () => "data:application/zip;base64,UEs="],
      ["in another folder", () => "/admin/x.zip"],
      ["above its folder", () => "/static/../admin/x.zip"],
      ["above its folder, encoded", () => "/static/%2e%2e/admin/x.zip"],
      ["above its folder, with an encoded slash", () => "/static/..%2fadmin/x.zip"],
      ["with a password for another host", (other) => `http://a:b@${other}/static/x.zip`],
      ["no address", () => "http://"],
    ])("%s isn't fetched", async (_name, urlOf) => {
      server.change({ faults: { oldBuild: true, archiveUrl: urlOf(origin) } });
      const error = await failureOf(transport.parseLayout(attempt()));
      expect(error).toMatchObject({ name: INVALID, code: "bad_archive" });
      expect(error.message).toMatch(/leads away from the server's own \/static\/.*not fetched/);
      expect(server.ledger().map(({ method }) => method)).toEqual(["POST"]);
      expect(asked).toEqual([]);
    });

    test("elsewhere by a redirect isn't followed", async () => {
      server.change({ faults: { oldBuild: true, archiveRedirect: `http://${origin}/static/x.zip` } });
      const error = await failureOf(transport.parseLayout(attempt()));
      expect(error).toMatchObject({ name: "SourceDeadError", code: "endpoint_not_found", statusCode: 302 });
      expect(asked).toEqual([]);
    });
  });

  test("behind a prefix and a query of the base URL is asked for there, its archive too", async () => {
    const inner = server.baseUrl;
    const paths: string[] = [];
    const gateway = createServer(async (request, response) => {
      paths.push(request.url ?? "");
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const body = request.method === "POST" ? Buffer.concat(chunks) : undefined;
      const headers = { "content-type": request.headers["content-type"] ?? "" };
      const path = (request.url ?? "").replace("/monkey", "").replace("tenant=7&", "").replace("?tenant=7", "");
      const answer = await fetch(inner + path, {
        method: request.method ?? "GET",
        headers,
        ...(body === undefined ? {} : { body }),
      });
      response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "" });
      response.end(Buffer.from(await answer.arrayBuffer()));
    });
    await new Promise<void>((resolve) => void gateway.listen(0, "127.0.0.1", resolve));
    const { port } = gateway.address() as { port: number };
    server.change({ faults: { oldBuild: true } });
    const from = testSource(`http://127.0.0.1:${port}/monkey/?tenant=7`);
    expect((await transport.parseLayout(attempt(PNG, from))).pageCount).toBe(1);
    expect(paths[0]).toBe("/monkey/parse?tenant=7&return_type=middle_json");
    expect(paths[1]).toMatch(/^\/monkey\/static\/scan_parsed_\w+\.zip\?tenant=7$/);
    gateway.closeAllConnections();
    gateway.close();
  });

  test("has TIMEOUT_S for all its requests together", async () => {
    // The archive is asked for only when time is left; the answer before it took half of it.
    const slow = createServer((request, response) => {
      request.resume();
      if (request.method === "GET") return;
      const body = JSON.stringify({ success: true, message: "", download_url: "/static/x.zip" });
      request.on("end", () => setTimeout(() => response.end(body), 300));
    });
    await new Promise<void>((resolve) => void slow.listen(0, "127.0.0.1", resolve));
    const { port } = slow.address() as { port: number };
    const timers: number[] = [];
    const context = new TestContext({
      ...runtime,
      setTimer(delayMs, callback) {
        timers.push(delayMs);
        return runtime.setTimer(delayMs, callback);
      },
    });
    const from = testSource(`http://127.0.0.1:${port}`, { timeoutMs: 1_000 });
    const error = await failureOf(transport.parseLayout(attempt(PNG, from, context)));
    expect(error).toMatchObject({ name: "TransientError", code: "timeout" });
    expect(timers[0]).toBeCloseTo(1_000, 6);
    expect(Math.max(...timers.slice(1))).toBeLessThan(1_000);
    expect(timers.some((delayMs) => delayMs > 0 && delayMs <= 710)).toBe(true);
    slow.closeAllConnections();
    slow.close();
  });

  test("isn't waited for after an abort while its archive is on the way, or being read", async () => {
    server.change({ faults: { oldBuild: true } });
    const reason = new Error("the caller left");
    const context = new TestContext();
    const between = failureOf(transport.parseLayout(attempt(PNG, source(), context)));
    await until(() => context.sent === 2);
    context.abort(reason);
    expect(await between).toBe(reason);
    expect(context.listeners.size).toBe(0);

    class AbortedWhileRead extends TestContext {
      #asked = 0;
      override onAbort(listener: (reason: unknown) => void): () => void {
        const stop = super.onAbort(listener);
        this.#asked += 1;
        // The first two listen for the requests.
        if (this.#asked === 3) queueMicrotask(() => this.abort(reason));
        return stop;
      }
    }
    const reading = new AbortedWhileRead();
    expect(await failureOf(transport.parseLayout(attempt(PNG, source(), reading)))).toBe(reason);
    expect(reading.sent).toBe(2);
    expect(reading.listeners.size).toBe(0);
  });

  test("is the same for the same seed and file, and fails by the seed's draws", async () => {
    const play = async (seed: number) => {
      const one = await startMonkeyOcrServer({ seed, faults: { failureRate: 0.5 } });
      const ends: string[] = [];
      for (let n = 0; n < 12; n += 1) {
        const end = transport.parseLayout(attempt(PNG, testSource(one.baseUrl)));
        ends.push(
          await end.then(
            ({ layout }) => JSON.stringify(layout.elements[1]),
            ({ code }) => String(code),
          ),
        );
      }
      await one.stop();
      return ends;
    };
    const ends = await play(3);
    expect(new Set(ends).size).toBe(2);
    expect(await play(3)).toEqual(ends);
    expect(await play(4)).not.toEqual(ends);
  });
});

describe("health", () => {
  const check = (from: SourceConfig, more: { timeoutMs?: number; signal?: AbortSignal } = {}) =>
    transport.checkHealth({ source: from, runtime, timeoutMs: 2_000, ...more });

  test("is good when the model is loaded, and only then", async () => {
    expect(await check(source())).toMatchObject({ ok: true, detail: "ready, its model is loaded" });
    server.change({ faults: { unready: true } });
    const unready = await check(source());
    expect(unready).toMatchObject({ ok: false, detail: "reader is up, but its model isn't loaded yet" });
    expect(unready.latencyMs).toBeGreaterThanOrEqual(0);
    expect(server.ledger().map(({ method, path }) => `${method} ${path}`)).toEqual(["GET /health", "GET /health"]);
  });

  test("of a server that isn't there is told and nothing is thrown", async () => {
    const { baseUrl } = server;
    await server.stop();
    const health = await check(testSource(baseUrl, { apiKey: new Secret("sk-canary-0002") }));
    expect(health.ok).toBe(false);
    expect(health.detail).toMatch(/no connection/);
    expect(health.detail).not.toContain("sk-canary");
  });
});

async function until(isTrue: () => boolean): Promise<void> {
  for (let n = 0; n < 5_000 && !isTrue(); n += 1) await new Promise((resolve) => setTimeout(resolve, 1));
  expect(isTrue()).toBe(true);
}
