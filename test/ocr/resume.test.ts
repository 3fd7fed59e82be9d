import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { startMonkeyOcrServer } from "../../src/testing/ocr/monkey-ocr-server.js";
import { startPaddleServer } from "../../src/testing/ocr/paddle-server.js";
import { type Finished, startCli } from "../cli-harness.js";
import { eventually } from "../services/processes.js";
import { envOf, linesOf, openInTests } from "./command.js";
import { pdfOf, pngOf } from "./pictures.js";

/** Runs of `polygateway ocr` that go on: elsewhere, with other files, after a kill. */

const { open, folder: newFolder } = openInTests();

async function setUp(options: Parameters<typeof startPaddleServer>[0] = {}, more: Record<string, string> = {}) {
  const server = await startPaddleServer(options);
  open.push(() => server.stop());
  const cwd = newFolder();
  const env = envOf(server.baseUrl, "paddle", more);
  return {
    server,
    cwd,
    env,
    path: (...parts: string[]) => join(cwd, ...parts),
    file: (name: string, bytes: Buffer | string) => writeFileSync(join(cwd, name), bytes),
    ocr: (args: readonly string[], folder = cwd): Promise<Finished> =>
      startCli(["ocr", ...args, "--db", join(cwd, "t.db")], { folder, env }).finished,
    idsIn: (folder: string) =>
      linesOf(join(cwd, folder, "ocr.jsonl"))
        .map(({ custom_id: id }) => id)
        .toSorted(),
  };
}

describe("a folder of results", () => {
  test("goes on where it was moved to, with its files called from another folder", async () => {
    const { server, cwd, path, file, ocr, idsIn } = await setUp();
    file("a.pdf", pdfOf(2, [100, 100]));
    file("b.png", pngOf(100, 50));
    expect((await ocr(["a.pdf", "-o", "out"])).code).toBe(0);
    expect(readFileSync(path("out", "pages.jsonl"), "utf8")).not.toContain(cwd);
    mkdirSync(path("else"));
    renameSync(path("out"), path("else", "moved"));
    mkdirSync(path("inputs"));
    for (const name of ["a.pdf", "b.png"]) renameSync(path(name), path("inputs", name));
    const ended = await ocr(["../inputs/a.pdf", "../inputs/b.png", "-o", "moved"], path("else"));
    expect(ended.code, ended.stderr).toBe(0);
    expect(server.ledger()).toHaveLength(3);
    expect(idsIn("else/moved")).toEqual(["a.pdf#1", "a.pdf#2", "b.png#1"]);
  });

  test("of an older version, with whole paths, goes on too", async () => {
    const { server, path, file, ocr, idsIn } = await setUp();
    file("a.pdf", pdfOf(2, [100, 100]));
    expect((await ocr(["a.pdf", "-o", "out"])).code).toBe(0);
    const pages = readFileSync(path("out", "pages.jsonl"), "utf8");
    rmSync(path("out"), { recursive: true });
    mkdirSync(path("out"));
    file("out/pages.jsonl", pages.replaceAll('"image":"a.pdf"', '"image":"/elsewhere/a.pdf"'));
    // The batch of an older version, in its own words.
    const older = await startCli(["batch", "out/pages.jsonl", "-o", "out/ocr.jsonl"], {
      folder: path("."),
      env: envOf(server.baseUrl, "paddle"),
    }).finished;
    expect(older.code).toBe(2);
    file("b.png", pngOf(100, 50));
    const ended = await ocr(["a.pdf", "b.png", "-o", "out", "--retry-failed"]);
    expect(ended.code, ended.stderr).toBe(0);
    expect(idsIn("out")).toEqual(["a.pdf#1", "a.pdf#2", "b.png#1"]);
  });

  test("takes more files, and runs over some of them count those alone", async () => {
    const { server, path, file, ocr, idsIn } = await setUp();
    file("a.pdf", pdfOf(2, [100, 100]));
    file("b.png", pngOf(100, 50));
    file("c.png", pngOf(100, 60));
    expect((await ocr(["a.pdf", "-o", "out"])).code).toBe(0);
    const added = await ocr(["b.png", "-o", "out", "--layout"]);
    expect(added.code, added.stderr).toBe(0);
    expect(added.stdout).toContain("All pages are read: 1 done · 0 failed · 0 left");
    expect(added.stdout).not.toContain("a.pdf");
    expect((await ocr(["c.png", "a.pdf", "-o", "out"])).code).toBe(0);
    const subset = await ocr(["a.pdf", "-o", "out"]);
    expect(subset.stdout).toContain("Nothing left to do: all 2 pages are in out.");
    expect(idsIn("out")).toEqual(["a.pdf#1", "a.pdf#2", "b.png#1", "c.png#1"]);
    expect(server.ledger()).toHaveLength(4);
    expect(existsSync(path("out", "b.png.html"))).toBe(true);
    expect(existsSync(path("out", "a.pdf.html"))).toBe(false);
  });

  test("tells exactly which file differs and how, and leaves everything as it is", async () => {
    const { server, path, file, ocr } = await setUp();
    for (const name of ["a.png", "b.png", "c.png"]) file(name, pngOf(100, 50));
    expect((await ocr(["a.png", "b.png", "-o", "out"])).code).toBe(0);
    const before = readFileSync(path("out", "pages.jsonl"), "utf8");
    file("a.png", pngOf(1, 1));
    const changed = await ocr(["a.png", "b.png", "c.png", "-o", "out"]);
    expect(changed.code).toBe(1);
    expect(changed.stderr).toContain("a.png: its content is not that of the a.png whose pages are in out.");
    expect(changed.stderr).not.toMatch(/[bc]\.png/);
    const mode = await ocr(["b.png", "-o", "out", "--layout"]);
    expect(mode.code).toBe(1);
    expect(mode.stderr).toContain("b.png: it was read without --layout, and not with.");
    expect(readFileSync(path("out", "pages.jsonl"), "utf8")).toBe(before);
    rmSync(path("out", "pages.jsonl"));
    const lost = await ocr(["b.png", "-o", "out"]);
    expect(lost.stderr).toContain("out/ocr.jsonl is there, but not out/pages.jsonl");
    file("out/pages.jsonl", before.split("\n")[1]!.concat("\n"));
    expect((await ocr(["b.png", "-o", "out"])).stderr).toContain("out/pages.jsonl is not the one");
    expect(server.ledger()).toHaveLength(2);
  });
});

test("of two runs at once in a folder the second is refused, and changes nothing", async () => {
  const { server, cwd, path, file, env, ocr, idsIn } = await setUp({ latencyMs: 300 });
  file("a.pdf", pdfOf(6, [100, 100]));
  file("b.png", pngOf(10, 10));
  const first = startCli(["ocr", "a.pdf", "-o", "out", "--concurrency", "1"], { folder: cwd, env });
  await eventually(async () => expect(server.ledger().length).toBeGreaterThan(0), 20_000);
  const pages = readFileSync(path("out", "pages.jsonl"), "utf8");
  const second = await ocr(["b.png", "-o", "out"]);
  expect(second.code).toBe(1);
  expect(second.stderr).toContain("ocr.jsonl.lock");
  expect(readFileSync(path("out", "pages.jsonl"), "utf8")).toBe(pages);
  expect((await first.finished).code).toBe(0);
  expect((await ocr(["b.png", "-o", "out"])).code).toBe(0);
  expect(idsIn("out")).toHaveLength(7);
}, 30_000);

describe("files that can't be read", () => {
  test("are named at the beginning and the end, the others are read; once mended they are read too", async () => {
    const { server, file, ocr, idsIn } = await setUp();
    file("a.png", pngOf(100, 50));
    file("bad.pdf", "%PDF-1.7 and no more");
    const ended = await ocr(["bad.pdf", "a.png", "gone.png", "-o", "out"]);
    expect(ended.code).toBe(2);
    expect(ended.stderr).toMatch(/2 files can't be read and are left out; 1 file can:\n {2}bad\.pdf can't be opened/);
    expect(ended.stdout).toContain("Finished: 1 done");
    expect(ended.stdout).toContain("Not read: gone.png can't be read: there is no such file");
    expect(server.ledger()).toHaveLength(1);
    file("bad.pdf", pdfOf(2, [100, 100]));
    file("gone.png", pngOf(10, 10));
    const again = await ocr(["bad.pdf", "a.png", "gone.png", "-o", "out"]);
    expect(again.code, again.stderr).toBe(0);
    expect(idsIn("out")).toEqual(["a.png#1", "bad.pdf#1", "bad.pdf#2", "gone.png#1"]);
    expect(server.ledger()).toHaveLength(4);
  });

  test("all of them: it could not run", async () => {
    const { server, path, file, ocr } = await setUp();
    file("script.sh", '#!/bin/sh\necho "%PDF-1.7"\n');
    const ended = await ocr(["script.sh", "gone.png", "-o", "out"]);
    expect(ended.code).toBe(1);
    expect(ended.stderr).toMatch(/None of these files can be read; nothing was sent:\n {2}script\.sh is neither PNG/);
    expect(existsSync(path("out"))).toBe(false);
    expect(server.ledger()).toEqual([]);
  });

  test("larger pictures than may be sent fail unread", async () => {
    const { server, file, ocr } = await setUp({}, { OCR__MAX_IMAGE_BYTES: "100" });
    file("large.png", Buffer.concat([pngOf(10, 10), Buffer.alloc(200)]));
    const ended = await ocr(["large.png", "-o", "out"]);
    expect(ended.code).toBe(2);
    expect(ended.stdout).toMatch(/Not read: large\.png, page 1: .*large\.png has 257 bytes, more than 100 \(MAX_IMAGE/);
    expect(server.ledger()).toEqual([]);
  });
});

test("the files of a page are there as soon as it is read, whole, and stay right after a kill", async () => {
  const { server, cwd, path, file, env } = await setUp({ latencyMs: 40 }, { OCR__SRV__1__MAX_CONCURRENCY: "2" });
  const pages = 12;
  file("a.pdf", pdfOf(pages, [100, 100]));
  const args = ["ocr", "a.pdf", "-o", "out", "--layout"];
  const killed = startCli(args, { folder: cwd, env });
  const outPath = path("out", "ocr.jsonl");
  await eventually(async () => expect(linesOf(outPath).length).toBeGreaterThan(3), 20_000);
  killed.child.kill("SIGKILL");
  await killed.finished;
  const lines = linesOf(outPath);
  expect(lines.length).toBeLessThan(pages);
  for (const { custom_id: id } of lines) {
    const base = path("out", "a.pdf", `page-${id.split("#")[1]!.padStart(4, "0")}`);
    expect(readFileSync(`${base}.txt`, "utf8")).toContain("Annual report");
    expect(JSON.parse(readFileSync(`${base}.json`, "utf8"))).toMatchObject({ object: "ocr.layout" });
    expect(readFileSync(`${base}.png`).subarray(1, 4).toString()).toBe("PNG");
  }
  const ended = await startCli(args, { folder: cwd, env }).finished;
  expect(ended.code, ended.stderr).toBe(0);
  const names = readdirSync(path("out", "a.pdf"));
  const expected = Array.from({ length: pages }, (_, index) => `page-${String(index + 1).padStart(4, "0")}`);
  expect(names.toSorted()).toEqual(expected.flatMap((name) => [`${name}.json`, `${name}.png`, `${name}.txt`]));
  expect(linesOf(outPath)).toHaveLength(pages);
  // Only what was in flight at the kill was sent again.
  expect(server.ledger().length).toBeLessThanOrEqual(pages + 2);
}, 60_000);

test("--json tells what became of every file, in pages", async () => {
  const { file, ocr } = await setUp();
  file("a.pdf", pdfOf(2, [100, 100]));
  file("bad.png", "no picture");
  const ended = await ocr(["a.pdf", "bad.png", "-o", "out", "--json"]);
  expect(JSON.parse(ended.stdout)).toEqual({
    exitCode: 2,
    stop: null,
    folder: "out",
    session: expect.any(String),
    pages: { total: 2, read: 2, failed: 0, left: 0, fromEarlierRuns: 0 },
    files: [{ file: "a.pdf", pages: 2, read: 2, failed: 0, left: 0, written: ["out/a.pdf.txt", "out/a.pdf.json"] }],
    failedPages: [],
    unreadFiles: [{ file: "bad.png", message: expect.stringMatching(/bad\.png is neither PNG/) }],
    attempts: 2,
    tokens: 0,
    cost: null,
    elapsedMs: expect.any(Number),
  });
  expect(ended.code).toBe(2);
});

test("what is said of a run is said in pages", async () => {
  const server = await startMonkeyOcrServer({ faults: { failureRate: 1 } });
  open.push(() => server.stop());
  const { cwd, file } = await setUp();
  file("a.pdf", pdfOf(2, [100, 100]));
  const env = envOf(server.baseUrl, "monkey-ocr");
  const args = ["ocr", "a.pdf", "-o", "out", "--give-up-after", "1s"];
  const ended = await startCli(args, { folder: cwd, env }).finished;
  const help = await startCli(["ocr", "--help"], { folder: cwd, env }).finished;
  expect(ended.stdout).toMatch(/No page succeeded|2 pages were not read/);
  for (const text of [
    ended.stdout,
    ended.stderr,
    help.stdout.replaceAll(/one (?:result )?line|a line|one a line/g, ""),
  ]) {
    expect(text).not.toMatch(/\blines?\b/i);
  }
});

test("a folder that can't be made is told at once", async () => {
  const { file, ocr } = await setUp();
  file("a.png", pngOf(10, 10));
  for (const folder of ["/proc/x/y", "a.png/out"]) {
    const ended = await ocr(["a.png", "-o", folder]);
    expect(ended.code).toBe(1);
    expect(ended.stderr).toMatch(new RegExp(`The folder ${folder} can't be written to: `));
  }
}, 20_000);
