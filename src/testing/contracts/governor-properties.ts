import fc from "fast-check";
import type { LimitConfig, SourceConfig } from "../../domain/source.js";
import { GovernorBench } from "./governor/bench.js";
import { playScript, type Script, type SettleStep, type Step, setupOf, type WantStep } from "./governor/script.js";
import type { GovernorContractOptions } from "./governor.js";

const MAX_LEASE_TTL_MS = 30_000;
/** A failure found by then is reported as far as it is shrunk. */
const TIME_LIMIT_MS = 40_000;

const wantStep: fc.Arbitrary<WantStep> = fc.record({
  candidates: fc.nat(7),
  failedHere: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.nat(7)),
  limitedHere: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.nat(7)),
  ordered: fc.boolean(),
  estTokens: fc.oneof(fc.constantFrom(0, 1, 100, 400), fc.nat(1_200)),
});

const NEUTRAL_WANT = {
  candidates: fc.constant(7),
  failedHere: fc.constant(0),
  limitedHere: fc.constant(0),
  ordered: fc.constant(false),
};

const settleStep: fc.Arbitrary<SettleStep> = fc.record({
  pick: fc.nat(),
  outcome: fc.oneof(
    { weight: 3, arbitrary: fc.constant("success" as const) },
    { weight: 3, arbitrary: fc.constant("failure" as const) },
    fc.constantFrom("alive" as const, "dead" as const, "cancelled" as const),
  ),
  sent: fc.oneof({ weight: 3, arbitrary: fc.constant(true) }, fc.constant(false)),
  actualPercent: fc.constantFrom(null, 0, 30, 100, 250),
  rateLimited: fc.boolean(),
  retryAfterMs: fc.constantFrom(undefined, undefined, 100, 5_000, 120_000),
});

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      type: fc.constant("tick" as const),
      wants: fc.array(wantStep, { maxLength: 6 }),
      settles: fc.oneof(fc.array(settleStep, { maxLength: 1 }), fc.array(settleStep, { maxLength: 4 })),
      renew: fc.oneof(fc.constant(0), fc.nat(255)),
      firstToken: fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, fc.nat()),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant("tick" as const),
      wants: fc.array(wantStep, { minLength: 1, maxLength: 12 }),
      settles: fc.constant([]),
      renew: fc.constant(0),
      firstToken: fc.constant(null),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("settle_again" as const), pick: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("ask_again" as const), pick: fc.nat() }) },
  {
    weight: 3,
    arbitrary: fc.record({ type: fc.constant("advance" as const), ms: fc.oneof(fc.nat(300), fc.nat(8_000)) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("advance" as const),
      ms: fc.constantFrom(10_000, MAX_LEASE_TTL_MS, 59_999, 60_000, 65_000, 1_800_000),
    }),
  },
  { weight: 3, arbitrary: fc.constant({ type: "advance_to_hint" as const }) },
);

/** Nothing that stops a source for a while: only its limits hold a greedy caller back. */
const harmlessSettle: fc.Arbitrary<SettleStep> = fc.record({
  pick: fc.nat(),
  outcome: fc.constant("success" as const),
  sent: fc.oneof({ weight: 3, arbitrary: fc.constant(true) }, fc.constant(false)),
  actualPercent: fc.constantFrom(null, 0, 30, 100),
  rateLimited: fc.constant(false),
  retryAfterMs: fc.constant(undefined),
});

/** Wants as soon as the governor allows, attempts that end soon and are often returned unsent: the hardest on a rate. */
const greedyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant("tick" as const),
      wants: fc.array(fc.record({ ...NEUTRAL_WANT, estTokens: fc.constantFrom(1, 20, 300) }), { maxLength: 4 }),
      settles: fc.array(harmlessSettle, { maxLength: 3 }),
      renew: fc.constant(255),
      firstToken: fc.constant(null),
    }),
  },
  { weight: 3, arbitrary: fc.constant({ type: "advance_to_hint" as const }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("advance" as const), ms: fc.nat(20) }) },
);

const limits = fc.record({
  maxConcurrency: fc.constantFrom(0, 0, 1, 2, 5),
  rpm: fc.constantFrom(0, 0, 1, 3, 10, 25, 60, 600),
  tpm: fc.constantFrom(0, 0, 500, 1_000, 60_000),
  limitRule: fc.constantFrom("smooth" as const, "window" as const),
}) satisfies fc.Arbitrary<Partial<LimitConfig>>;

const source: fc.Arbitrary<Partial<SourceConfig>> = fc
  .tuple(limits, fc.constantFrom(undefined, undefined, 50), fc.constantFrom(1, 1, 3), fc.constantFrom(0, 0, 1))
  .map(([limit, estTokens, weight, priority]) => ({ ...limit, estTokens, weight, priority }));

/** Random verbs on a random scope; the same numbers always mean the same script. */
export const scriptArbitrary: fc.Arbitrary<Script> = fc.record({
  sources: fc.array(source, { minLength: 1, maxLength: 3 }),
  global: fc.oneof(fc.constant({}), limits),
  failThreshold: fc.constantFrom(1, 2, 5),
  cooldownMs: fc.constantFrom(0, 4_000, 4_000),
  selector: fc.constantFrom("least_inflight" as const, "round_robin" as const),
  leaseTtlMs: fc.constantFrom(3_000, 9_000, MAX_LEASE_TTL_MS),
  steps: fc.array(step, { maxLength: 60, size: "max" }),
});

export interface GovernorPropertyOptions {
  readonly test: GovernorContractOptions["test"];
  readonly makeBackend: GovernorContractOptions["makeBackend"];
  /** Random scripts a property. Default 300; a store behind a network needs its time for each. */
  readonly runs?: number;
  /** Fixed seed, for repeating a run. */
  readonly seed?: number;
}

let scopes = 0;

async function withBench<T>(
  makeBackend: GovernorPropertyOptions["makeBackend"],
  script: Script,
  use: (bench: GovernorBench) => Promise<T>,
): Promise<T> {
  const bench = new GovernorBench(await makeBackend({ scope: `properties-${++scopes}`, ...setupOf(script) }));
  try {
    return await use(bench);
  } finally {
    await bench.close();
  }
}

function focused(steps: Partial<Script>): fc.Arbitrary<Script> {
  return scriptArbitrary.map((script) => ({ ...script, ...steps }));
}

const greedy: fc.Arbitrary<Script> = fc
  .record({
    script: scriptArbitrary,
    rpm: fc.constantFrom(0, 1, 3, 10, 25, 60, 120),
    tpm: fc.constantFrom(0, 0, 600, 6_000),
    limitRule: fc.constantFrom("smooth" as const, "smooth" as const, "window" as const),
    overScope: fc.boolean(),
    steps: fc.array(greedyStep, { minLength: 40, maxLength: 150, size: "max" }),
  })
  .map(({ script, steps, overScope, ...gates }) => ({
    ...script,
    ...(overScope ? { sources: [{}, {}], global: gates } : { sources: [gates], global: {} }),
    failThreshold: 1_000,
    leaseTtlMs: MAX_LEASE_TTL_MS,
    steps,
  }));

/**
 * Random verb sequences against a second, plain bookkeeping of spec 02 §§3–4: permits, probes, epochs, both limit rules
 * over every minute, settled sums, "a refusal changes nothing", leases that end, sources that stay usable.
 */
export function governorProperties({ test, makeBackend, runs = 300, seed }: GovernorPropertyOptions): void {
  const parameters = { numRuns: runs, interruptAfterTimeLimit: TIME_LIMIT_MS, ...(seed === undefined ? {} : { seed }) };
  const holds = (name: string, scripts: fc.Arbitrary<Script>) =>
    test(name, async () => {
      const body = (script: Script) =>
        withBench(makeBackend, script, async (bench) => void (await playScript(bench, script)));
      await fc.assert(fc.asyncProperty(scripts, body), parameters);
    });

  holds("property: every promise holds over random verbs on random scopes", scriptArbitrary);
  holds(
    "property: no gate is exceeded on one tightly limited source (smooth)",
    focused({ sources: [{ maxConcurrency: 3, rpm: 25, tpm: 1_000 }], failThreshold: 1_000, global: {} }),
  );
  holds(
    "property: no gate is exceeded on one tightly limited source (window)",
    focused({
      sources: [{ maxConcurrency: 3, rpm: 6, tpm: 1_000, limitRule: "window" }],
      failThreshold: 1_000,
      global: {},
    }),
  );
  holds("property: a greedy caller exceeds no request or token limit in any minute", greedy);
  holds(
    "property: no global gate is exceeded over three sources",
    focused({ sources: [{}, {}, {}], global: { maxConcurrency: 4, rpm: 60, tpm: 60_000 }, failThreshold: 1_000 }),
  );
  holds(
    "property: one probe, and epochs that never repeat, on an unlimited source",
    focused({ sources: [{}], failThreshold: 1, global: {} }),
  );
}
