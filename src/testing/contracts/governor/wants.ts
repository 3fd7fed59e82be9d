import assert from "node:assert/strict";
import type { LimitRule } from "../../../domain/source.js";
import { SourceNotConfiguredError } from "../../../errors.js";
import type { Grant } from "../../../ports/governor.js";
import { type ContractTest, type GovernorBench, isRefusal, type Open, settleOf, sourceConfig } from "./bench.js";

const RULES: readonly LimitRule[] = ["smooth", "window"];

const reservations: ContractTest[] = [
  ...RULES.map((rule) => ({
    name: `an estimate above the TPM limit of every candidate is refused for ever; the limit itself passes (${rule})`,
    body: async (open: Open) => {
      const source = sourceConfig("a", { tpm: 1_000, limitRule: rule });
      const bench = await open({ sources: [source, sourceConfig("b", { tpm: 2_000, limitRule: rule })] });
      assert.equal((await bench.refused("a", { estTokens: 1_001 })).kind, "never");
      assert.equal((await bench.refused(["a", "b"], { estTokens: 2_001 })).kind, "never");
      const grant = await bench.granted(["a", "b"], { estTokens: 1_500 });
      assert.equal(grant.source, "b");
      assert.notEqual(
        (await bench.refused(["a", "b"], { estTokens: 1_500 })).kind,
        "never",
        "b only has to be waited for",
      );
      await bench.granted("a", { estTokens: 1_000 });
    },
  })),
  {
    name: "an estimate above the global TPM limit is refused for ever",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a"), sourceConfig("b")], global: { tpm: 1_000 } });
      assert.equal((await bench.refused(["a", "b"], { estTokens: 1_001 })).kind, "never");
      await bench.granted(["a", "b"], { estTokens: 1_000 });
    },
  },
  {
    name: "an impossible estimate is refused for ever at once, although the source happens to be open",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { tpm: 1_000 })], breaker: { failThreshold: 1 } });
      await bench.attempt("a", "failure");
      assert.equal((await bench.refused("a", { estTokens: 1_001 })).kind, "never");
    },
  },
  {
    name: "a source with EST_TOKENS reserves that, whatever the call estimates",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { tpm: 1_000, estTokens: 400, limitRule: "window" })] });
      await bench.alignToMinute();
      const grant = await bench.granted("a", { estTokens: 50_000 });
      assert.equal(grant.reservedTokens, 400);
      assert.equal((await bench.granted("a", { estTokens: 1 })).reservedTokens, 400);
      assert.equal((await bench.refused("a", { estTokens: 1 })).gate, "tpm");
    },
  },
];

const batches: ContractTest[] = [
  {
    name: "wants of one tick are served in order",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { maxConcurrency: 3 })] });
      const answers = await bench.ask(Array.from({ length: 8 }, () => bench.newWant("a")));
      assert.deepEqual(answers.map(isRefusal), [false, false, false, true, true, true, true, true]);
    },
  },
  {
    name: "a later want never overtakes a refused one with equal candidates, but passes one with others",
    body: async (open) => {
      const limited = { tpm: 1_000, limitRule: "window" } as const;
      const bench = await open({ sources: [sourceConfig("a", limited), sourceConfig("b", limited)] });
      await bench.alignToMinute();
      await bench.granted("a", { estTokens: 600 });
      const large = bench.newWant("a", { estTokens: 500 });
      const small = bench.newWant("a", { estTokens: 100 });
      const other = bench.newWant("b", { estTokens: 100 });
      assert.deepEqual((await bench.ask([large, small, other])).map(isRefusal), [true, true, false]);
      assert.deepEqual((await bench.ask([small])).map(isRefusal), [false]);
    },
  },
  {
    name: "a want refused for ever stands in nobody's way",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { tpm: 1_000 })] });
      const wants = [bench.newWant("a", { estTokens: 5_000 }), bench.newWant("a", { estTokens: 100 })];
      assert.deepEqual((await bench.ask(wants)).map(isRefusal), [true, false]);
    },
  },
  {
    name: "an unknown source in the candidates throws SourceNotConfiguredError and changes nothing",
    body: (open) => unknownSource(open, (bench) => ({ wants: [bench.newWant("a"), bench.newWant(["a", "nobody"])] })),
  },
  {
    name: "an unknown source in a settle throws SourceNotConfiguredError and changes nothing",
    body: (open) =>
      unknownSource(open, (_, held) => ({ settles: [settleOf({ ...held, source: "nobody" }, "success")] })),
  },
];

async function unknownSource(
  open: Open,
  faulty: (bench: GovernorBench, held: Grant) => Parameters<GovernorBench["tick"]>[0],
): Promise<void> {
  const bench = await open({ sources: [sourceConfig("a", { maxConcurrency: 5, rpm: 60, tpm: 60_000 })] });
  const held = await bench.granted("a");
  const other = await bench.granted("a");
  const before = await bench.snapshot();
  const batch = faulty(bench, held);
  const settles = [settleOf(other, "failure"), ...(batch.settles ?? [])];
  await assert.rejects(bench.tick({ ...batch, settles }), (error) => {
    assert.ok(error instanceof SourceNotConfiguredError, String(error));
    assert.match(error.message, /nobody/);
    return true;
  });
  assert.deepEqual(await bench.snapshot(), before);
  assert.equal(await bench.settle(other, "failure"), true, "the settle of the failed tick can be sent again");
}

export const wantTests: readonly ContractTest[] = [...reservations, ...batches];
