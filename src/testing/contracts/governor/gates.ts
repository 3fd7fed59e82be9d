import assert from "node:assert/strict";
import type { LimitConfig, LimitRule, SourceConfig } from "../../../domain/source.js";
import type { GateName, Grant, Refusal } from "../../../ports/governor.js";
import { type ContractTest, type GovernorBench, isRefusal, near, type Open, settleOf, sourceConfig } from "./bench.js";

/** The fixed order of spec 02 §3. */
const GATES: readonly GateName[] = ["global_concurrency", "concurrency", "global_rpm", "rpm", "global_tpm", "tpm"];
const RULES: readonly LimitRule[] = ["smooth", "window"];
const ROOMY = { maxConcurrency: 6, rpm: 120, tpm: 60_000 };
/** Each full after one call of 100 tokens, under both rules. */
const TIGHT = { maxConcurrency: 1, rpm: 1, tpm: 150 };
const OFF = { maxConcurrency: 0, rpm: 0, tpm: 0 };

type Limits = typeof ROOMY;

function fieldOf(gate: GateName): keyof Limits {
  if (gate.endsWith("concurrency")) return "maxConcurrency";
  return gate.endsWith("rpm") ? "rpm" : "tpm";
}

function setupWith(base: Limits, tight: readonly GateName[], rule: LimitRule) {
  const global: Partial<LimitConfig> = { ...base, limitRule: rule };
  const source: Partial<SourceConfig> = { ...base, limitRule: rule };
  for (const gate of tight) {
    const field = fieldOf(gate);
    const limits = (gate.startsWith("global") ? global : source) as Record<keyof Limits, number>;
    limits[field] = TIGHT[field];
  }
  return { sources: [sourceConfig("a", source), sourceConfig("b", { ...base, limitRule: rule })], global };
}

function describe(answer: Grant | Refusal): string {
  if (!isRefusal(answer)) return `grant ${answer.source} ${answer.reservedTokens}`;
  return `refusal ${answer.kind} ${answer.gate ?? ""} ${Math.round(answer.waitHintMs)}`;
}

/** What the governor answers from here on: a charge that leaked from a refused call shows as a difference. */
async function continuation(bench: GovernorBench, held: readonly Grant[]): Promise<string[]> {
  bench.seed = 10_000;
  const { grants, refusal } = await bench.fill("b");
  const log = [...grants, refusal].map(describe);
  await bench.tick({ settles: [...held, ...grants].map((grant) => settleOf(grant, "success")) });
  for (let step = 0; step < 40; step++) {
    const answer = await bench.want(step % 2 === 0 ? "a" : ["a", "b"]);
    log.push(describe(answer));
    if (isRefusal(answer)) await bench.advance(Math.ceil(answer.waitHintMs));
    else if (step % 3 === 0) await bench.settle(answer, "success", { actualTokens: 50 });
  }
  return log;
}

async function refusalTakesNothing(open: Open, gate: GateName, rule: LimitRule): Promise<void> {
  const logs: string[][] = [];
  for (const refusedCalls of [0, 25]) {
    const bench = await open(setupWith(ROOMY, [gate], rule));
    await bench.alignToMinute();
    const { grants } = await bench.fill("a");
    const before = await bench.snapshot();
    for (let count = 0; count < refusedCalls; count++) assert.equal((await bench.refused("a")).gate, gate);
    const together = Array.from({ length: refusedCalls }, () => bench.newWant("a"));
    for (const answer of await bench.ask(together)) assert.ok(isRefusal(answer));
    assert.deepEqual(await bench.snapshot(), before);
    logs.push(await continuation(bench, grants));
  }
  assert.deepEqual(logs[1], logs[0]);
}

const eachGateAlone: ContractTest[] = RULES.flatMap((rule) =>
  GATES.map((gate) => ({
    name: `gate ${gate} full (${rule}): the refusal names it and takes nothing from the other five`,
    body: async (open) => {
      const bench = await open(setupWith(ROOMY, [gate], rule));
      const { grants, refusal } = await bench.fill("a");
      assert.equal(grants.length, 1);
      assert.equal(refusal.kind, "gate");
      assert.equal(refusal.gate, gate);
      assert.deepEqual(
        refusal.passedOver.map(({ source, reason }) => ({ source, reason })),
        [{ source: "a", reason: gate }],
      );
      await refusalTakesNothing(open, gate, rule);
    },
  })),
);

const order: ContractTest[] = RULES.map((rule) => ({
  name: `gates are judged in the fixed order: the first full one is named (${rule})`,
  body: async (open) => {
    for (const [index, gate] of GATES.entries()) {
      const bench = await open(setupWith(OFF, GATES.slice(index), rule));
      await bench.granted("a");
      assert.equal((await bench.refused("a")).gate, gate);
    }
  },
}));

const limits: ContractTest[] = [
  {
    name: "a limit of 0 is off: hundreds of calls at once, and nothing is reserved",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a")] });
      for (let batch = 0; batch < 10; batch++) {
        const wants = Array.from({ length: 32 }, () => bench.newWant("a", { estTokens: 1e9 }));
        for (const answer of await bench.ask(wants)) {
          assert.ok(!isRefusal(answer));
          assert.equal(answer.reservedTokens, 0);
        }
      }
      assert.equal((await bench.source("a")).inflight, 320);
    },
  },
  {
    name: "a free slot is granted at once, without anything passed over",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a"), sourceConfig("b")] });
      const grant = await bench.granted(["a", "b"]);
      assert.equal(grant.startInMs, 0);
      assert.deepEqual(grant.passedOver, []);
      assert.equal(grant.probe, false);
    },
  },
  {
    name: "global concurrency is shared by all sources",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a"), sourceConfig("b")], global: { maxConcurrency: 3 } });
      const held = [await bench.granted("a"), await bench.granted("b"), await bench.granted("a")];
      assert.equal((await bench.refused("b")).gate, "global_concurrency");
      await bench.settle(held[0]!, "success");
      await bench.granted("b");
      assert.equal((await bench.refused("a")).gate, "global_concurrency");
    },
  },
  ...RULES.map((rule) => ({
    name: `global RPM and TPM are shared by all sources (${rule})`,
    body: async (open: Open) => {
      const sources = [sourceConfig("a"), sourceConfig("b")];
      const requests = await open({ sources, global: { rpm: rule === "smooth" ? 60 : 4, limitRule: rule } });
      await requests.alignToMinute();
      for (const source of ["a", "b", "b", "a"]) await requests.granted(source);
      assert.equal((await requests.refused("a")).gate, "global_rpm");
      assert.equal((await requests.refused("b")).gate, "global_rpm");

      const tokens = await open({ sources, global: { tpm: 600, limitRule: rule } });
      await tokens.alignToMinute();
      const first = await tokens.granted("a", { estTokens: 400 });
      assert.equal(first.reservedTokens, 400, "reserved for the global gate although the source has no TPM");
      assert.equal((await tokens.refused("b", { estTokens: 400 })).gate, "global_tpm");
      await tokens.settle(first, "success", { actualTokens: 0 });
      await tokens.granted("b", { estTokens: 400 });
    },
  })),
  {
    name: "all candidates refused: every one is named with its reason and wait; the smallest wait decides",
    body: everyReason,
  },
  {
    name: "a grant names the sources it passed over",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { maxConcurrency: 1 }), sourceConfig("b")] });
      await bench.granted("a");
      const grant = await bench.granted(["a", "b"]);
      assert.equal(grant.source, "b");
      assert.deepEqual(
        grant.passedOver.map(({ source, reason }) => [source, reason]),
        [["a", "concurrency"]],
      );
    },
  },
  {
    name: "hintMs is the smallest wait of the refused wants; null when nothing was refused",
    body: async (open) => {
      const limited = { rpm: 1, limitRule: "window" } as const;
      const bench = await open({ sources: [sourceConfig("a", limited), sourceConfig("b", { rpm: 10 })] });
      await bench.alignToMinute();
      const free = await bench.tick({ wants: [bench.newWant("a"), bench.newWant("b")] });
      assert.equal(free.hintMs, null);
      assert.equal((await bench.tick({})).hintMs, null);
      const full = await bench.tick({ wants: [bench.newWant("a"), bench.newWant("b")] });
      const waits = full.refusals.map((refusal) => refusal.waitHintMs);
      assert.equal(waits.length, 2);
      near(full.hintMs ?? Number.NaN, Math.min(...waits), 1e-6, "hintMs");
      near(full.hintMs ?? Number.NaN, 6_050, 1, "hintMs");
    },
  },
  {
    name: "with concurrency full the hint lies no later than the earliest end of a lease",
    body: async (open) => {
      const bench = await open({ sources: [sourceConfig("a", { maxConcurrency: 2 })], leaseTtlMs: 9_000 });
      await bench.granted("a");
      await bench.advance(4_000);
      await bench.granted("a");
      const { waitHintMs } = await bench.refused("a");
      assert.ok(waitHintMs <= 5_000 + 1, `waitHintMs ${waitHintMs}`);
    },
  },
];

async function everyReason(open: Open): Promise<void> {
  const bench = await open({
    sources: [
      sourceConfig("full", { maxConcurrency: 1 }),
      sourceConfig("requests", { rpm: 1, limitRule: "window" }),
      sourceConfig("tokens", { tpm: 150, limitRule: "window" }),
      sourceConfig("broken"),
      sourceConfig("cooling"),
      sourceConfig("dead"),
    ],
    breaker: { failThreshold: 1, cooldownMs: 4_000 },
  });
  await bench.alignToMinute();
  await bench.advance(10_000);
  for (const name of ["full", "requests", "tokens"]) await bench.granted(name);
  await bench.attempt("broken", "failure");
  await bench.attempt("cooling", "alive", { rateLimited: "unknown", retryAfterMs: 5_000 });
  await bench.attempt("dead", "dead");
  const refusal = await bench.refused(["full", "requests", "tokens", "broken", "cooling", "dead"]);
  const reasons = Object.fromEntries(refusal.passedOver.map(({ source, reason }) => [source, reason]));
  assert.deepEqual(reasons, {
    full: "concurrency",
    requests: "rpm",
    tokens: "tpm",
    broken: "breaker_open",
    cooling: "cooling",
    dead: "dead",
  });
  const waits = refusal.passedOver.map(({ waitMs }) => waitMs);
  for (const waitMs of waits) assert.ok(Number.isFinite(waitMs) && waitMs > 0, `waitMs ${waitMs}`);
  near(refusal.waitHintMs, Math.min(...waits), 1e-6, "waitHintMs");
  near(refusal.waitHintMs, (await bench.source("broken")).openForMs, 1, "waitHintMs");
  assert.equal(refusal.kind, "breaker");
  assert.equal((await bench.refused(["requests", "cooling"])).kind, "cooldown");
  assert.equal((await bench.refused(["requests", "dead"])).gate, "rpm");
}

export const gateTests: readonly ContractTest[] = [...eachGateAlone, ...order, ...limits];
