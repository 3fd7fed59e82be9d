import { describe, expect, it } from "vitest";
import type { EmbedOptions, EmbedResult } from "../domain/embedding.js";
import { RequestRejectedError } from "../errors.js";
import { SimulationKernel } from "../testing/kernel.js";
import type { LineAnswer } from "./kinds/kinds.js";
import { groupTexts } from "./text-groups.js";
import { createVectorWidth } from "./vector-width.js";

interface Asked {
  readonly texts: readonly string[];
  readonly options: EmbedOptions;
}

/** Every text has its length for a vector; "bad" has none. Each request takes 100 ms. */
function bench(batchSize: number, batches: number) {
  const kernel = new SimulationKernel();
  const runtime = kernel.runtime();
  const asked: Asked[] = [];
  let failing: Error | undefined;
  const client = {
    async embed(texts: readonly string[], options: EmbedOptions): Promise<EmbedResult<number[] | null>> {
      asked.push({ texts, options });
      await runtime.sleep(100, options.signal);
      if (failing !== undefined) throw failing;
      const good = texts.map((text) => text !== "bad");
      const failed = texts.flatMap((text, index) =>
        text === "bad" ? [{ index, error: new RequestRejectedError("no", { details: { index } }) }] : [],
      );
      const batch = { callId: `c${asked.length}`, sourceName: "s_1", attempts: 2 };
      const batchesOf = good.flatMap((isGood, from) =>
        isGood && (from === 0 || !good[from - 1])
          ? [{ ...batch, from, count: lengthOfRun(good, from), cost: 3, promptTokens: 7 }]
          : [],
      );
      const vectors = texts.map((text) => (text === "bad" ? null : [text.length]));
      return {
        vectors,
        failed,
        batches: batchesOf,
        dim: 1,
        promptTokens: 7,
        usageSource: "measured",
        cost: 3,
        callId: "c",
      };
    },
  };
  const embed = groupTexts(client, { batchSize, batches, runtime, width: createVectorWidth() });
  return {
    kernel,
    asked,
    ask: (text: string, signal = new AbortController().signal) =>
      embed(
        {
          request: { kind: "embedding", texts: [text], base64: false },
          sessionId: "batch",
          parentCallId: `id of ${text}`,
        },
        signal,
      ),
    fail: (error: Error) => (failing = error),
  };
}

function lengthOfRun(good: readonly boolean[], from: number): number {
  const end = good.indexOf(false, from);
  return (end < 0 ? good.length : end) - from;
}

const sizes = (asked: readonly Asked[]): number[] => asked.map(({ texts }) => texts.length);

describe("texts of many lines", () => {
  it("go together in full requests, so many at once as may be; the rest follows after a moment", async () => {
    const { kernel, asked, ask } = bench(3, 2);
    const work = Promise.all(["a", "bb", "ccc", "dddd", "eeeee", "ffffff", "g", "hh"].map((text) => ask(text)));
    await kernel.advance(0);
    expect(sizes(asked)).toEqual([3, 3]);
    const responses = await kernel.run(work);
    expect(sizes(asked)).toEqual([3, 3, 2]);
    expect(responses.map(({ body }) => body)).toEqual([1, 2, 3, 4, 5, 6, 1, 2].map((length) => [length]));
    expect(asked[0]?.options).toMatchObject({ onBadItem: "skip", parentCallId: "id of a" });
    expect(kernel.pendingTimers()).toBe(0);
  });

  it("share what their request took, to the last token", async () => {
    const { kernel, ask } = bench(3, 1);
    const responses = await kernel.run(Promise.all(["a", "b", "c"].map((text) => ask(text))));
    const sum = (of: (response: LineAnswer) => number): number =>
      responses.reduce((total, response) => total + of(response), 0);
    expect(sum(({ usage }) => usage.totalTokens)).toBe(7);
    expect(sum(({ cost }) => cost ?? 0)).toBeCloseTo(3);
    expect(sum(({ attempts }) => attempts)).toBe(2);
  });

  it("are refused alone", async () => {
    const { kernel, ask } = bench(4, 1);
    const ends = await kernel.run(Promise.allSettled(["a", "bad", "c", "d"].map((text) => ask(text))));
    expect(ends.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
    expect(ends[1]).toMatchObject({ reason: { name: "RequestRejectedError" } });
  });

  it("fail together when their request does", async () => {
    const { kernel, ask, fail } = bench(2, 1);
    const error = new Error("outage");
    fail(error);
    const ends = await kernel.run(Promise.allSettled(["a", "b"].map((text) => ask(text))));
    expect(ends).toEqual([
      { status: "rejected", reason: error },
      { status: "rejected", reason: error },
    ]);
  });

  it("leave one by one; the request ends when all of its lines have left", async () => {
    const { kernel, asked, ask } = bench(2, 1);
    const leaving = [new AbortController(), new AbortController(), new AbortController()];
    const work = Promise.allSettled(leaving.map(({ signal }, at) => ask(`t${at}`, signal)));
    await kernel.advance(10);
    const reason = new Error("left");
    leaving[2]?.abort(reason);
    leaving[0]?.abort(reason);
    await kernel.advance(1);
    expect(asked[0]?.options.signal?.aborted).toBe(false);
    leaving[1]?.abort(reason);
    expect(asked[0]?.options.signal?.aborted).toBe(true);
    const ends = await kernel.run(work);
    expect(ends.map((end) => end.status === "rejected" && end.reason)).toEqual([reason, reason, reason]);
    // The one that waited was never sent.
    expect(asked).toHaveLength(1);
    expect(kernel.pendingTimers()).toBe(0);
    await expect(ask("late", AbortSignal.abort(reason))).rejects.toBe(reason);
  });
});
