import { appendFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLedger, readLedger } from "./ledger.js";

let folder: string;
let due: (() => void)[];
let nowMs: number;

const clock = {
  now: () => nowMs,
  wallNow: () => 1_000_000 + nowMs,
  setTimer(_delayMs: number, callback: () => void) {
    due.push(callback);
    return () => {
      due = due.filter((one) => one !== callback);
    };
  },
};

const arrival = { path: "/v1/chat/completions", apiKey: "", requestId: null };
const end = { status: 200, outcome: "answered", clientClosed: false, bytes: 7 } as const;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "pgw-ledger-"));
  due = [];
  nowMs = 5;
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

describe("a ledger", () => {
  it("ends each entry once", () => {
    const ledger = createLedger("p", clock, {});
    const entry = ledger.open(arrival);
    nowMs = 9;
    ledger.close(entry, end);
    nowMs = 20;
    ledger.close(entry, { ...end, status: 500, outcome: "error" });
    expect(entry).toMatchObject({ arrivedAtMs: 1_000_005, endedAtMs: 1_000_009, status: 200, outcome: "answered" });
    expect(ledger.outcomes()).toEqual({ answered: 1 });
  });

  it("writes ended entries with one timer a batch, the rest when it stops", async () => {
    const file = join(folder, "l.jsonl");
    const ledger = createLedger("p", clock, { file });
    for (let i = 0; i < 3; i++) ledger.close(ledger.open(arrival), end);
    ledger.open(arrival);
    expect(due).toHaveLength(1);
    due.shift()?.();
    expect((await readLedger(file)).map(({ id }) => id)).toEqual([1, 2, 3]);
    ledger.close(ledger.open(arrival), end);
    ledger.stop();
    expect(due).toHaveLength(0);
    expect((await readLedger(file)).map(({ id }) => id)).toEqual([1, 2, 3, 5]);
  });

  it("appends to what is there, and reads it without a torn last line", async () => {
    const file = join(folder, "l.jsonl");
    for (let i = 0; i < 2; i++) {
      const ledger = createLedger(`p${i}`, clock, { file });
      ledger.close(ledger.open(arrival), end);
      ledger.stop();
    }
    appendFileSync(file, '{"provider":"to');
    expect((await readLedger(file)).map(({ provider }) => provider)).toEqual(["p0", "p1"]);
  });

  it("refuses a file it can't open", () => {
    expect(() => createLedger("p", clock, { file: folder })).toThrow(/EISDIR/);
  });

  it.skipIf(!existsSync("/dev/full"))("goes on without a file it can't write any more", () => {
    const full = createLedger("p", clock, { file: "/dev/full" });
    full.close(full.open(arrival), end);
    full.flush();
    expect(full.fileError).toMatch(/ENOSPC/);
    full.close(full.open(arrival), end);
    expect(full.entries()).toHaveLength(2);
    expect(due).toHaveLength(0);
  });
});
