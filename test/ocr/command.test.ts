import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { startMonkeyOcrServer } from "../../src/testing/ocr/monkey-ocr-server.js";
import { startPaddleServer } from "../../src/testing/ocr/paddle-server.js";
import { startCli } from "../cli-harness.js";
import { eventually } from "../services/processes.js";
import { envOf, linesOf, openInTests } from "./command.js";
import { pdfOf, pngOf } from "./pictures.js";

/** `polygateway ocr` as a process: real files, real HTTP, kills. */

const { open, folder } = openInTests();

const PAGES = 116;

test("a document of 116 pages on a server that fails, hangs and breaks boxes and archives: every page once", async () => {
  const server = await startMonkeyOcrServer({
    seed: 4,
    latencyMs: 20,
    faults: { failureRate: 0.1, hangAt: [7, 60], brokenBoxes: true, oldBuild: true },
  });
  open.push(() => server.stop());
  const cwd = folder();
  writeFileSync(join(cwd, "book.pdf"), pdfOf(PAGES, [210, 280]));
  const env = envOf(server.baseUrl, "monkey-ocr", {
    OCR__SRV__1__TIMEOUT_S: "3",
    OCR__SRV__1__MAX_CONCURRENCY: "4",
    // Of 116 pages on a server that fails one in ten, three tries would leave one unread in every ninth run.
    OCR__RETRY__MAX_ATTEMPTS: "7",
  });
  const args = ["ocr", "book.pdf", "-o", "read", "--layout"];
  const outPath = join(cwd, "read", "ocr.jsonl");
  const faults = { failureRate: 0.1, brokenBoxes: true, oldBuild: true };
  const patience = 60_000;

  const killed = startCli(args, { folder: cwd, env });
  await eventually(async () => expect(linesOf(outPath).length).toBeGreaterThan(25), patience);
  server.change({ faults: { ...faults, archive: "crc" } });
  await eventually(
    async () => expect(linesOf(outPath).filter(({ error }) => error !== null).length).toBeGreaterThan(3),
    patience,
  );
  server.change({ faults });
  await eventually(async () => expect(linesOf(outPath).length).toBeGreaterThan(60), patience);
  killed.child.kill("SIGKILL");
  await killed.finished;

  const resumed = await startCli(args, { folder: cwd, env }).finished;
  expect(resumed.code, resumed.stderr).toBe(2);
  const lines = linesOf(outPath);
  expect(lines.map(({ custom_id: id }) => id).toSorted()).toEqual(
    Array.from({ length: PAGES }, (_, index) => `book.pdf#${index + 1}`).toSorted(),
  );
  const failed = lines.filter(({ error }) => error !== null);
  for (const { custom_id: id, error } of failed) {
    expect(error?.code).toBe("bad_archive");
    expect(resumed.stdout).toContain(`Not read: book.pdf, page ${id.split("#")[1]}: ${error?.message}`);
  }
  expect(failed.length).toBeLessThan(20);
  expect(lines.some(({ response }) => (response?.body.dropped_elements ?? 0) > 0)).toBe(true);

  const again = await startCli([...args, "--retry-failed"], { folder: cwd, env }).finished;
  expect(again.code, again.stderr).toBe(0);
  expect(linesOf(outPath)).toHaveLength(PAGES);
  const files = readdirSync(join(cwd, "read", "book.pdf"));
  expect(files.filter((name) => name.endsWith(".json"))).toHaveLength(PAGES);
  expect(files.filter((name) => name.endsWith(".png"))).toHaveLength(PAGES);
  const whole = JSON.parse(readFileSync(join(cwd, "read", "book.pdf.json"), "utf8"));
  expect(whole).toMatchObject({ file: "book.pdf", pages: PAGES });
  expect(whole.results.map(({ page }: { page: number }) => page)).toEqual(
    Array.from({ length: PAGES }, (_, index) => index + 1),
  );
  const html = readFileSync(join(cwd, "read", "book.pdf.html"), "utf8");
  expect(html.match(/<section>/g)).toHaveLength(PAGES);
  expect(readFileSync(join(cwd, "read", "book.pdf.txt"), "utf8").split("\f")).toHaveLength(PAGES);
}, 240_000);

describe("polygateway ocr", () => {
  async function paddle() {
    const server = await startPaddleServer();
    open.push(() => server.stop());
    return server;
  }

  test("reads pictures as text, and says what it wrote", async () => {
    const server = await paddle();
    const cwd = folder();
    writeFileSync(join(cwd, "a.png"), pngOf(100, 50));
    writeFileSync(join(cwd, "b.png"), pngOf(100, 60));
    const env = envOf(server.baseUrl, "paddle");
    const ended = await startCli(["ocr", "a.png", "b.png", "-o", "out"], { folder: cwd, env }).finished;
    expect(ended.code, ended.stderr).toBe(0);
    expect(ended.stdout).toContain("Written: out/a.png.txt, out/a.png.json, out/b.png.txt, out/b.png.json");
    expect(readFileSync(join(cwd, "out", "a.png.txt"), "utf8")).toBe("Annual report\n\nAll is well.\n");
    const again = await startCli(["ocr", "a.png", "b.png", "-o", "out"], { folder: cwd, env }).finished;
    expect([again.code, server.ledger().length]).toEqual([0, 2]);
    expect(again.stdout).toContain("Nothing left to do: all 2 pages are in out.");
    const report = await startCli(["report"], { folder: cwd, env }).finished;
    expect(report.stdout).toMatch(/Calls\s+2, 100\.0 % answered/);
  });

  test("OCR lines of a batch, and a scope that is for something else", async () => {
    const server = await paddle();
    const cwd = folder();
    writeFileSync(join(cwd, "a.png"), pngOf(100, 50));
    writeFileSync(join(cwd, "a.pdf"), pdfOf(2, [100, 100]));
    const input = [
      { id: "t", image: "a.png" },
      { id: "l", image: "a.png", layout: true },
      { id: "p", image: "a.pdf", page: 2 },
      { id: "x", image: "a.pdf", page: 3 },
      { id: "g", image: "gone.png" },
    ];
    writeFileSync(join(cwd, "in.jsonl"), input.map((line) => `${JSON.stringify(line)}\n`).join(""));
    const env = envOf(server.baseUrl, "paddle");
    const ended = await startCli(["batch", "in.jsonl", "-o", "out.jsonl"], { folder: cwd, env }).finished;
    expect(ended.code, ended.stderr).toBe(2);
    const lines = Object.fromEntries(linesOf(join(cwd, "out.jsonl")).map((line) => [line.custom_id, line]));
    expect(lines.t?.response?.body).toMatchObject({ object: "ocr.text", page_count: 1 });
    expect(lines.l?.response?.body).toMatchObject({ object: "ocr.layout", elements: expect.any(Array) });
    expect(lines.p?.response?.body).toMatchObject({ object: "ocr.text" });
    expect(lines.x?.error?.message).toMatch(/a\.pdf has no page 3: its pages are 1 to 2; nothing was sent/);
    expect(lines.g?.error?.message).toMatch(/gone\.png can't be read: there is no such file; nothing was sent/);
    const chat = { ...envOf(server.baseUrl, "openai"), OCR__SRV__1__MODEL: "m" };
    const wrong = await startCli(["ocr", "a.png", "-o", "o", "--scope", "OCR"], { folder: cwd, env: chat }).finished;
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toMatch(/Scope OCR is for chat: the sources of a scope for OCR name their TRANSPORT/);
    const none = await startCli(["ocr", "a.png", "-o", "o"], { folder: cwd, env: {} }).finished;
    expect(none.stderr).toMatch(/No scope for OCR is configured.*\n.*\n.*OCR__MONKEY__1__API_KEY=none/s);
  });

  test.each([
    [["gone.pdf"], /gone\.pdf can't be read: there is no such file/],
    [["note.txt"], /note\.txt is neither PNG, JPEG, WebP, TIFF nor PDF by its content/],
    [["broken.pdf"], /broken\.pdf can't be opened as a PDF/],
    [["."], /is a folder; name the files in it/],
  ])("refuses %j and sends nothing", async (files, reason) => {
    const server = await paddle();
    const cwd = folder();
    writeFileSync(join(cwd, "note.txt"), "hello");
    writeFileSync(join(cwd, "broken.pdf"), "%PDF-1.7 and no more");
    const env = envOf(server.baseUrl, "paddle");
    const ended = await startCli(["ocr", ...files, "-o", "out"], { folder: cwd, env }).finished;
    expect(ended.code).toBe(1);
    expect(ended.stderr).toMatch(reason);
    expect(server.ledger()).toEqual([]);
  });

  test("touches nothing of somebody else's, and finds names that clash before anything is paid", async () => {
    const server = await paddle();
    const cwd = folder();
    writeFileSync(join(cwd, "a.png"), pngOf(100, 50));
    writeFileSync(join(cwd, "a.png.txt"), pngOf(100, 50));
    writeFileSync(join(cwd, "pages.jsonl"), "mine\n");
    const env = envOf(server.baseUrl, "paddle");
    for (const [args, reason] of [
      [["a.png", "-o", "."], /a\.png stands in the folder of the results/],
      [["a.png", "a.png.txt", "-o", "out"], /Results of .*a\.png\.txt would be called a\.png\.txt/],
      [["gone.png", "-o", "out"], /^.*gone\.png can't be read: there is no such file\. Nothing was sent\.\n$/],
    ] as const) {
      const ended = await startCli(["ocr", ...args], { folder: cwd, env }).finished;
      expect(ended.code).toBe(1);
      expect(ended.stderr).toMatch(reason);
      expect(ended.stderr).not.toContain("Unexpected");
    }
    writeFileSync(join(cwd, "other.png"), pngOf(10, 10));
    expect(existsSync(join(cwd, "out"))).toBe(false);
    expect(readFileSync(join(cwd, "pages.jsonl"), "utf8")).toBe("mine\n");
    expect(server.ledger()).toEqual([]);
  });

  test("check --live asks the health of OCR sources", async () => {
    const server = await paddle();
    const cwd = folder();
    const up = await startCli(["check", "--live"], { folder: cwd, env: envOf(server.baseUrl, "paddle") }).finished;
    expect(up.code, up.stdout).toBe(0);
    expect(up.stdout).toMatch(/Answers of scope OCR\n {2}✓ srv_1/);
    const down = await startCli(["check", "--live"], {
      folder: cwd,
      env: envOf("http://127.0.0.1:1", "monkey-ocr"),
    }).finished;
    expect(down.code).toBe(1);
    expect(down.stdout).toMatch(/✗ srv_1/);
  });
});
