import { open, truncate } from "node:fs/promises";
import { readFileLines } from "./input.js";
import type { RawLine } from "./lines.js";
import type { OutEntry } from "./out-entry.js";
import { replaceFile } from "./replace-file.js";

type ReadEntry = (raw: RawLine) => OutEntry | undefined;

/** Cuts what follows the last line end: a line that was being written when its process died. Returns the bytes cut. */
export async function cutTornLine(path: string): Promise<number> {
  const file = await open(path, "r");
  let size: number;
  let keep: number;
  try {
    ({ size } = await file.stat());
    keep = await endOfLastLine(file, size);
  } finally {
    await file.close();
  }
  if (keep < size) await truncate(path, keep);
  return size - keep;
}

const STEP = 64 * 1024;

async function endOfLastLine(file: Awaited<ReturnType<typeof open>>, size: number): Promise<number> {
  const buffer = Buffer.alloc(STEP);
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - STEP);
    const { bytesRead } = await file.read(buffer, 0, end - start, start);
    const at = buffer.subarray(0, bytesRead).lastIndexOf(10);
    if (at >= 0) return start + at + 1;
    end = start;
  }
  return 0;
}

/** Entries of OUT in file order; undefined for a line that is no result line. */
export async function* readOut(path: string, entry: ReadEntry): AsyncGenerator<OutEntry | undefined> {
  for await (const raw of rawLines(path)) yield entry(raw);
}

async function* rawLines(path: string): AsyncGenerator<RawLine> {
  const reader = readFileLines(path);
  try {
    for (let lines = await reader.next(); lines !== null; lines = await reader.next()) yield* lines;
  } finally {
    reader.close();
  }
}

/** Rewrites OUT with the lines that `keep` wants, in their order and untouched. */
export async function filterOut(
  path: string,
  entry: ReadEntry,
  keep: (entry: OutEntry | undefined) => boolean,
): Promise<void> {
  await replaceFile(path, async (write) => {
    let chunk = "";
    for await (const raw of rawLines(path)) {
      if ("problem" in raw || !keep(entry(raw))) continue;
      chunk += `${raw.text}\n`;
      if (chunk.length < STEP) continue;
      await write(chunk);
      chunk = "";
    }
    if (chunk !== "") await write(chunk);
  });
}
