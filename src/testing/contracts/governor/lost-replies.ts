import assert from "node:assert/strict";
import { type ContractTest, isRefusal, sourceConfig } from "./bench.js";

export const lostReplyTests: ContractTest[] = [
  {
    name: "a want asked again with its lease id answers the same grant and counts nothing twice",
    body: async (open) => {
      const limited = { maxConcurrency: 2, rpm: 2, tpm: 200, limitRule: "window" } as const;
      const bench = await open({
        sources: [sourceConfig("a", limited), sourceConfig("b")],
        global: { maxConcurrency: 2 },
      });
      await bench.alignToMinute();
      const want = bench.newWant("a");
      const [first] = await bench.ask([want]);
      const before = await bench.snapshot();
      for (let retry = 0; retry < 5; retry++) assert.deepEqual(await bench.ask([want]), [first]);
      assert.deepEqual(await bench.ask([{ ...want, candidates: ["b", "a"] }]), [first]);
      assert.deepEqual(await bench.snapshot(), before);
      await bench.granted("a");
      assert.deepEqual(await bench.ask([want]), [first], "a known lease is answered although every gate is full");
    },
  },
  {
    name: "a want asked again holds its permit as long as one asked for now",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { maxConcurrency: 1 })], leaseTtlMs: 3_000 });
      const want = bench.newWant("a");
      const [first] = await bench.ask([want]);
      await bench.advance(2_000);
      assert.deepEqual(await bench.ask([want]), [first], "the answer promises the whole time again");
      await bench.advance(2_000);
      assert.equal((await bench.refused("a")).gate, "concurrency");
    },
  },
  {
    name: "a probe asked again is still the one probe",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a")], breaker: { failThreshold: 1 } });
      await bench.attempt("a", "failure");
      await bench.waitOutOpen("a");
      const want = bench.newWant("a");
      const [first] = await bench.ask([want]);
      assert.ok(first && !isRefusal(first) && first.probe);
      assert.deepEqual(await bench.ask([want]), [first]);
      assert.equal((await bench.source("a")).inflight, 1);
    },
  },
  {
    name: "after its lease is lost the same id is admitted anew and booked anew",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { rpm: 2, limitRule: "window" })], leaseTtlMs: 3_000 });
      await bench.alignToMinute();
      const want = bench.newWant("a");
      await bench.ask([want]);
      await bench.advance(4_000);
      const [again] = await bench.ask([want]);
      assert.ok(again && !isRefusal(again));
      const { inflight, requestsUsed } = await bench.source("a");
      assert.deepEqual([inflight, requestsUsed], [1, 2]);
    },
  },
];
