import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { SimulationKernel } from "../testing/kernel.js";
import { type AppendFile, createOrderedSink, createSink, openAppendFile } from "./output.js";

const dir = mkdtempSync(join(tmpdir(), "pgw-output-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

function fakeFile(failOn: (text: string) => boolean = () => false) {
  const events: string[] = [];
  const file: AppendFile = {
    async append(bytes) {
      const text = Buffer.from(bytes).toString();
      await Promise.resolve();
      if (failOn(text)) throw new Error("ENOSPC");
      events.push(text);
    },
    sync: async () => void events.push("sync"),
    close: async () => void events.push("close"),
  };
  return { file, events };
}

describe("results in completion order", () => {
  it("appends whole lines, those that finish during a write together, and syncs once a second and at the end", async () => {
    const kernel = new SimulationKernel();
    const { file, events } = fakeFile();
    const sink = createSink(file, kernel.runtime(), () => {});
    await kernel.run(Promise.all(["a", "b", "c"].map((text, at) => sink.put(at, text))));
    expect(events).toEqual(["a\n", "b\nc\n"]);
    await kernel.advance(999);
    expect(events).not.toContain("sync");
    await kernel.advance(1);
    expect(events.at(-1)).toBe("sync");
    await kernel.advance(10_000);
    expect(events.filter((event) => event === "sync")).toHaveLength(1);
    await kernel.run(sink.finish());
    expect(events.slice(-2)).toEqual(["sync", "close"]);
    expect(kernel.pendingTimers()).toBe(0);
  });

  it("rejects exactly the lines that were not written, and writes later ones when it can", async () => {
    const kernel = new SimulationKernel();
    const { file, events } = fakeFile((text) => text.includes("b"));
    const sink = createSink(file, kernel.runtime(), () => {});
    const puts = ["a", "b", "c"].map((text, at) => sink.put(at, text));
    expect((await kernel.run(Promise.allSettled(puts))).map(({ status }) => status)).toEqual([
      "fulfilled",
      "rejected",
      "rejected",
    ]);
    await kernel.run(sink.put(3, "d"));
    expect(events).toEqual(["a\n", "d\n"]);
  });

  it("tells that a sync failed", async () => {
    const kernel = new SimulationKernel();
    const errors: unknown[] = [];
    const broken = { ...fakeFile().file, sync: () => Promise.reject(new Error("EIO")) };
    const sink = createSink(broken, kernel.runtime(), (error) => errors.push(error));
    await kernel.run(sink.put(0, "a"));
    await kernel.advance(1_000);
    expect(errors).toEqual([new Error("EIO")]);
    await expect(kernel.run(sink.finish())).rejects.toThrow("EIO");
  });

  it("goes on behind what the file holds", async () => {
    const path = join(dir, "out");
    writeFileSync(path, "old\n");
    const file = await openAppendFile(path);
    await file.append(Buffer.from("new\n"));
    await file.sync();
    await file.close();
    expect(readFileSync(path, "utf8")).toBe("old\nnew\n");
  });
});

describe("a file of results that somebody touches", () => {
  it.each([
    ["removed", (path: string) => rmSync(path)],
    ["moved", (path: string) => renameSync(path, `${path}.old`)],
    [
      "replaced",
      (path: string) => {
        renameSync(path, `${path}.old`);
        writeFileSync(path, "mine\n");
      },
    ],
  ])("is told to be gone when it was %s", async (_, touch) => {
    const path = join(dir, `touched-${_}`);
    const file = await openAppendFile(path);
    await file.append(Buffer.from("a\n"));
    await file.sync();
    touch(path);
    await expect(file.sync()).rejects.toThrow(`${path} was removed, moved or replaced during the run`);
    await file.close();
  });
});

describe("results in input order", () => {
  it("is the input order for any order of completion, and what is left over at the end is not lost", async () => {
    const orders = fc.shuffledSubarray(Array.from({ length: 12 }, (_, at) => at));
    await fc.assert(
      fc.asyncProperty(orders, async (order) => {
        const kernel = new SimulationKernel();
        const { file, events } = fakeFile();
        const sink = createOrderedSink(createSink(file, kernel.runtime(), () => {}));
        const puts = order.map((sequence) => sink.put(sequence, `${sequence}`));
        await kernel.run(sink.finish());
        await Promise.all(puts);
        const written = events.filter((event) => /\d/.test(event)).join("");
        expect(written).toBe(
          [...order]
            .sort((a, b) => a - b)
            .map((sequence) => `${sequence}\n`)
            .join(""),
        );
      }),
    );
  });

  it("has no more room once 1,000 lines or 64 MiB wait for an earlier one", async () => {
    const kernel = new SimulationKernel();
    const sink = createOrderedSink(createSink(fakeFile().file, kernel.runtime(), () => {}));
    for (let sequence = 1; sequence < 900; sequence++) void sink.put(sequence, "x");
    expect(sink.hasRoom(100)).toBe(true);
    expect(sink.hasRoom(101)).toBe(false);
    void sink.put(900, "x".repeat(64 * 1024 * 1024));
    expect(sink.hasRoom(0)).toBe(false);
    await kernel.run(sink.put(0, "x"));
    expect(sink.hasRoom(0)).toBe(true);
    await kernel.run(sink.finish());
  });
});
