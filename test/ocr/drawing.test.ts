import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { createPageReader } from "../../src/documents/pages.js";
import { createPdfEngine } from "../../src/documents/pdf.js";
import { pictureSize } from "../../src/domain/picture.js";
import { startPaddleServer } from "../../src/testing/ocr/paddle-server.js";
import { makeFolder, startCli } from "../cli-harness.js";
import { eventually } from "../services/processes.js";
import { envOf, linesOf } from "./command.js";
import { pdfOf } from "./pictures.js";

/** The thread that draws pages. */

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

const folder = mkdtempSync(join(tmpdir(), "pgw-drawing-"));
function fileOf(name: string, bytes: Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
}

/** Of a size that is drawn at the most pixels there are: it takes most of a second. */
const POSTER = [20_000, 20_000] as const;

describe("drawing", () => {
  test("leaves timers alone, however large a page is", async () => {
    const reader = createPageReader();
    open.push(() => reader.close());
    const path = fileOf("poster.pdf", pdfOf(1, POSTER));
    let ticks = 0;
    let isDrawn = false;
    const tick = (): void => {
      ticks += 1;
      if (!isDrawn) setImmediate(tick);
    };
    tick();
    const page = await reader.page(path, 1);
    isDrawn = true;
    expect(pictureSize(page, "image/png")?.width).toBeGreaterThan(6_000);
    // On the main thread it would be some dozens: those of opening and reading.
    expect(ticks).toBeGreaterThan(1_000);
  });

  test("that is ended goes on with a thread of its own for whoever asks next", async () => {
    const engine = createPdfEngine();
    open.push(() => engine.close());
    const pdf = await engine.open(pdfOf(2, POSTER), "a.pdf");
    const drawn = pdf.renderPage(1);
    engine.close();
    await expect(drawn).rejects.toMatchObject({ name: "DocumentError", kind: "engine" });
    await expect(pdf.renderPage(2)).rejects.toMatchObject({ kind: "engine" });
    const again = await engine.open(pdfOf(2, [100, 100]), "a.pdf");
    expect((await again.renderPage(2)).subarray(1, 4).toString()).toBe("PNG");
  });

  test("that never ends is given up, and costs no other page", async () => {
    const late: (() => void)[] = [];
    const setTimer = (_delayMs: number, callback: () => void) => {
      late.push(callback);
      return () => {};
    };
    const reader = createPageReader({ clock: { setTimer } });
    open.push(() => reader.close());
    const poster = fileOf("endless.pdf", pdfOf(1, POSTER));
    const small = fileOf("small.pdf", pdfOf(1, [100, 100]));
    const drawn = reader.page(poster, 1);
    // The timers are those of opening it and of drawing.
    await eventually(async () => expect(late).toHaveLength(2), 10_000);
    late[1]!();
    await expect(drawn).rejects.toThrow(/page 1 of .*endless\.pdf can't be drawn: it was not done after 120 s/);
    expect((await reader.page(small, 1)).subarray(1, 4).toString()).toBe("PNG");
  });

  test("ends for whoever stops waiting, with exactly the reason", async () => {
    const reader = createPageReader();
    open.push(() => reader.close());
    const abort = new AbortController();
    const reason = new Error("left");
    const drawn = reader.page(fileOf("left.pdf", pdfOf(1, POSTER)), 1, { signal: abort.signal });
    abort.abort(reason);
    await expect(drawn).rejects.toBe(reason);
  });
});

test("a run is stopped while it draws, and goes on afterwards", async () => {
  const server = await startPaddleServer();
  open.push(() => server.stop());
  const made = makeFolder();
  open.push(() => made.remove());
  const pages = 40;
  writeFileSync(join(made.path, "posters.pdf"), pdfOf(pages, POSTER));
  const env = envOf(server.baseUrl, "paddle");
  const args = ["ocr", "posters.pdf", "-o", "out", "--concurrency", "8"];
  const run = startCli(args, { folder: made.path, env });
  const outPath = join(made.path, "out", "ocr.jsonl");
  await eventually(async () => expect(linesOf(outPath).length).toBeGreaterThan(0), 30_000);
  run.child.kill("SIGINT");
  const ended = await run.finished;
  expect(ended.code, ended.stderr).toBe(3);
  const lines = linesOf(outPath);
  expect(lines.length).toBeLessThan(pages);
  expect(lines.filter(({ error }) => error !== null)).toEqual([]);
  expect(existsSync(join(made.path, "out", "posters.pdf.json"))).toBe(true);
}, 60_000);
