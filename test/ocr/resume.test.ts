import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startMonkeyOcrServer } from "../../src/testing/ocr/monkey-ocr-server.js";
import { makeFolder, startCli } from "../cli-harness.js";
import { eventually } from "../services/processes.js";
import { pdfOf, pngOf } from "./pictures.js";

/** What a run of `polygateway ocr` leaves, and how a later one goes on from it, wherever the files lie by then. */

let cwd = "";
let remove = () => {};
let server: Awaited<ReturnType<typeof startMonkeyOcrServer>>;

beforeEach(async () => {
  const made = makeFolder();
  cwd = made.path;
  remove = made.remove;
  server = await startMonkeyOcrServer({ seed: 1 });
  writeFileSync(join(cwd, "a.pdf"), pdfOf(3, [100, 100]));
  writeFileSync(join(cwd, "b.png"), pngOf(60, 40));
});

afterEach(async () => {
  await server.stop();
  remove();
});

function start(args: readonly string[]) {
  const env = {
    OCR__SRV__1__BASE_URL: server.baseUrl,
    OCR__SRV__1__API_KEY: "none",
    OCR__SRV__1__MODEL: "m",
    OCR__SRV__1__TRANSPORT: "monkey-ocr",
    OCR__SRV__1__MAX_CONCURRENCY: "2",
  };
  return startCli(["ocr", ...args], { folder: cwd, env });
}

const ocr = (...args: string[]) => start(args).finished;
const sent = () => server.ledger().length;
const ids = (folder: string) =>
  readFileSync(join(cwd, folder, "ocr.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line).custom_id)
    .toSorted();

describe("a run on the folder of an earlier one", () => {
  test("goes on when the folder, the files or both were moved", async () => {
    expect((await ocr("a.pdf", "-o", "out")).code).toBe(0);
    renameSync(join(cwd, "out"), join(cwd, "moved"));
    mkdirSync(join(cwd, "scans"));
    renameSync(join(cwd, "a.pdf"), join(cwd, "scans", "a.pdf"));
    const again = await ocr("scans/a.pdf", "b.png", "-o", "moved");
    expect(again.code, again.stderr).toBe(0);
    expect(sent()).toBe(4);
    expect(ids("moved")).toEqual(["a.pdf#1", "a.pdf#2", "a.pdf#3", "b.png#1"]);
    expect(readFileSync(join(cwd, "moved", "pages.jsonl"), "utf8")).not.toContain(cwd);
  });

  test("takes more files, in any order, and fewer where the others are read", async () => {
    await ocr("b.png", "-o", "out");
    const more = await ocr("a.pdf", "b.png", "-o", "out");
    expect([more.code, sent()], more.stderr).toEqual([0, 4]);
    const fewer = await ocr("a.pdf", "-o", "out");
    expect([fewer.code, sent()], fewer.stderr).toEqual([0, 4]);
    expect(existsSync(join(cwd, "out", "b.png.txt"))).toBe(true);
  });

  test("says which file is in the way, and how", async () => {
    server.change({ faults: { failureRate: 1 } });
    const failing = await ocr("a.pdf", "-o", "out", "--give-up-after", "1s");
    expect(failing.code).not.toBe(0);
    server.change({ faults: {} });
    const before = readFileSync(join(cwd, "out", "pages.jsonl"), "utf8");
    const other = await ocr("b.png", "-o", "out", "--retry-failed");
    expect(other.code).toBe(1);
    expect(other.stderr).toMatch(/out also belongs to a\.pdf, of which 3 pages still have to be read\. Name all files/);
    const mode = await ocr("a.pdf", "-o", "out", "--layout");
    expect(mode.stderr).toContain("out was begun without --layout, and this is with it");
    writeFileSync(join(cwd, "a.pdf"), pdfOf(3, [120, 100]));
    const changed = await ocr("a.pdf", "-o", "out");
    expect(changed.code).toBe(1);
    expect(changed.stderr).toMatch(/out holds the results of another a\.pdf: .*a\.pdf was changed since/);
    expect(readFileSync(join(cwd, "out", "pages.jsonl"), "utf8")).toBe(before);
  });
});

test("a file that can't be read costs no other, is named, and is read once it is mended", async () => {
  writeFileSync(join(cwd, "cut.pdf"), "%PDF-1.7 and no more");
  const files = ["gone.png", "cut.pdf", "a.pdf", "b.png"];
  const ended = await ocr(...files, "-o", "out");
  expect(ended.code, ended.stderr).toBe(2);
  expect(ended.stderr).toMatch(/gone\.png can't be read: there is no such file; it is left out/);
  expect(ended.stdout).toMatch(/Not read: .*gone\.png can't be read/);
  expect(ended.stdout).toMatch(/Not read: .*cut\.pdf can't be opened as a PDF/);
  expect(sent()).toBe(4);
  writeFileSync(join(cwd, "cut.pdf"), pdfOf(1, [90, 90]));
  writeFileSync(join(cwd, "gone.png"), pngOf(30, 30));
  const again = await ocr(...files, "-o", "out");
  expect([again.code, sent()], again.stderr).toEqual([0, 6]);
  expect(ids("out")).toContain("cut.pdf#1");
});

test("the files of a page are there as soon as it is read, whatever becomes of the process", async () => {
  server.change({ faults: { hangAt: [3] } });
  const run = start(["a.pdf", "-o", "out"]);
  const files = () => readdirSync(join(cwd, "out", "a.pdf")).filter((name) => name.endsWith(".txt"));
  await eventually(async () => expect(files()).toHaveLength(2), 20_000);
  run.child.kill("SIGKILL");
  await run.finished;
  expect(files()).toHaveLength(2);
  server.change({ faults: {} });
  const resumed = await ocr("a.pdf", "-o", "out");
  expect(resumed.code, resumed.stderr).toBe(0);
  expect(files()).toHaveLength(3);
  expect(readFileSync(join(cwd, "out", "a.pdf.txt"), "utf8").split("\f")).toHaveLength(3);
});
