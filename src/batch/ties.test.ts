import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { compareInput, readTies, type Ties, writeTies } from "./ties.js";

const dir = mkdtempSync(join(tmpdir(), "pgw-ties-"));
const path = join(dir, "out.jsonl.pgw.json");
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const file = (sha256: string, bytes: number) => ({ kind: "file", path: "in", bytes, sha256 }) as const;
const stream = (firstLineSha256: string | null) => ({ kind: "stream", firstLineSha256 }) as const;

describe("ties between OUT and IN", () => {
  it("come back as they were written; a missing file is undefined, a broken one is refused", async () => {
    expect(readTies(path)).toBeUndefined();
    const ties: Ties = { version: 1, batchId: "b", startedAt: "now", input: file("x", 1) };
    await writeTies(path, ties);
    expect(readTies(path)).toEqual(ties);
    for (const text of ["", "{}", '{"version":2}']) {
      writeFileSync(path, text);
      expect(() => readTies(path)).toThrow(/not readable as the file that ties/);
    }
  });

  it("know the same content under any name, and lines appended to it", () => {
    expect(compareInput(file("x", 1), { ...file("x", 1), path: "moved" })).toBe("same");
    expect(compareInput(file("x", 1), file("y", 2), "x")).toBe("grown");
    expect(compareInput(file("x", 1), file("y", 2), "z")).toBe("other");
    expect(compareInput(file("x", 2), file("y", 1), undefined)).toBe("other");
    expect(compareInput(stream("x"), stream("x"))).toBe("same");
    expect(compareInput(stream("x"), stream(null))).toBe("same");
    expect(compareInput(stream("x"), stream("y"))).toBe("other");
    expect(compareInput(stream("x"), file("x", 1))).toBe("other");
  });
});
