import fc from "fast-check";
import {
  type BreakerConfig,
  SCHEDULING_DEFAULTS,
  SCHEDULING_OFF,
  type SchedulingConfig,
  type SelectorName,
} from "../../src/domain/scope.js";
import type { LimitConfig, SourceConfig } from "../../src/domain/source.js";
import type { Outcome, Settle, Verdict, Want } from "../../src/ports/governor.js";

/** Random verbs of several workers on a random scope. Sources and leases are meant by position: any numbers are valid. */
export interface DifferentialScript {
  readonly sources: readonly Partial<SourceConfig>[];
  readonly global: Partial<LimitConfig>;
  readonly breaker: Partial<BreakerConfig>;
  readonly selector: SelectorName;
  readonly scheduling: SchedulingConfig;
  readonly prices: Readonly<Record<string, number>>;
  readonly leaseTtlMs: number;
  readonly steps: readonly RandomStep[];
}

export type RandomStep =
  | {
      readonly type: "tick";
      readonly worker: number;
      readonly wants: readonly RandomWant[];
      readonly askAgain: number | null;
      readonly settles: readonly RandomSettle[];
      readonly verdicts: readonly RandomVerdict[];
      readonly renew: number;
    }
  | { readonly type: "advance"; readonly ms: number }
  | { readonly type: "advance_to_hint" }
  | { readonly type: "look" };

export type RandomWant = Omit<Want, "leaseId" | "callId" | "candidates" | "failedHere" | "limitedHere" | "affinity"> & {
  readonly candidates: number;
  readonly failedHere: number;
  readonly limitedHere: number;
  readonly affinity?: number;
};

export type RandomSettle = Omit<
  Settle,
  "leaseId" | "source" | "epoch" | "probe" | "windowId" | "reservedTokens" | "actualTokens"
> & {
  readonly pick: number;
  /** One that was sent before. */
  readonly repeat: boolean;
  readonly actualPercent: number | null;
};

export type RandomVerdict = Pick<Verdict, "kind" | "ttftMs"> & { readonly pick: number };

const often = <T>(usual: T, other: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(usual) }, other);
/** A field that is often absent. */
const perhaps = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined });
const fraction = (max: number): fc.Arbitrary<number> => fc.nat(max * 8).map((eighths) => eighths / 8);

/** Fields that are undefined are left out, as messages have them. */
function tidy<T extends object>(record: fc.Arbitrary<{ [Field in keyof T]: T[Field] | undefined }>): fc.Arbitrary<T> {
  return record.map(
    (fields) => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T,
  );
}

const want: fc.Arbitrary<RandomWant> = tidy<RandomWant>(
  fc.record({
    candidates: often(15, fc.nat(15)),
    failedHere: often(0, fc.nat(15)),
    limitedHere: often(0, fc.nat(15)),
    ordered: fc.constantFrom(undefined, undefined, true, false),
    estTokens: fc.oneof(fc.constantFrom(0, 1, 100, 400), fc.nat(1_200)),
    priority: fc.constantFrom(1, 1, 0, 2),
    waitedMs: often(0, fraction(20_000)),
    affinity: perhaps(fc.nat(3)),
    promptTokens: perhaps(fc.nat(2_000)),
    maxTokens: perhaps(fc.integer({ min: 1, max: 4_000 })),
    tag: perhaps(fc.constantFrom("chat", "sum", "ü{}:\n")),
    retry: fc.constantFrom(undefined, undefined, true),
    hedge: fc.constantFrom(undefined, undefined, undefined, true),
    remainingMs: perhaps(fraction(30_000)),
    skips: fc.constantFrom(undefined, undefined, 0, 23, 24),
  }),
);

const outcome: fc.Arbitrary<Outcome> = fc.constantFrom(
  "success",
  "success",
  "success",
  "failure",
  "failure",
  "alive",
  "dead",
  "cancelled",
);

const settle: fc.Arbitrary<RandomSettle> = tidy<RandomSettle>(
  fc.record({
    pick: fc.nat(),
    repeat: often(false, fc.boolean()),
    outcome,
    sent: often(true, fc.constant(false)),
    actualPercent: fc.constantFrom(null, 0, 30, 100, 250),
    retryAfterMs: perhaps(fc.constantFrom(0, 100, 5_000.5, 120_000)),
    rateLimited: fc.constantFrom(
      undefined,
      undefined,
      "requests" as const,
      "tokens" as const,
      "concurrency" as const,
      "unknown" as const,
    ),
    durationMs: fraction(60_000),
    ttftMs: perhaps(fraction(8_000)),
    tpotMs: perhaps(fraction(80)),
    inTokens: perhaps(fc.nat(3_000)),
    outTokens: perhaps(fc.nat(3_000)),
    limits: perhaps(
      tidy<NonNullable<Settle["limits"]>>(
        fc.record({
          limitRequests: perhaps(fc.constantFrom(0, 5, 60, 1_000)),
          limitTokens: perhaps(fc.constantFrom(0, 500, 60_000)),
          remainingRequests: perhaps(fc.nat(20)),
          remainingTokens: perhaps(fc.nat(2_000)),
        }),
      ),
    ),
    lastError: perhaps(
      fc.constantFrom(
        { code: "upstream_error", message: 'it said "no" 负载\n' },
        { code: "ttft_timeout", message: "" },
        { code: "timeout", message: "late" },
      ),
    ),
  }),
);

const verdict: fc.Arbitrary<RandomVerdict> = tidy<RandomVerdict>(
  fc.record({
    pick: fc.nat(),
    kind: fc.constantFrom(
      "first_token" as const,
      "first_token" as const,
      "overdue" as const,
      "overdue_reversed" as const,
    ),
    ttftMs: perhaps(fraction(8_000)),
  }),
);

const tickStep = fc.record({
  type: fc.constant("tick" as const),
  worker: fc.constantFrom(0, 0, 1, 2),
  wants: fc.oneof(fc.array(want, { maxLength: 3 }), fc.array(want, { maxLength: 12 })),
  askAgain: fc.oneof({ weight: 6, arbitrary: fc.constant(null) }, fc.nat()),
  settles: fc.oneof(fc.array(settle, { maxLength: 1 }), fc.array(settle, { maxLength: 5 })),
  verdicts: fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, fc.array(verdict, { maxLength: 3 })),
  renew: often(0, fc.nat(2 ** 24 - 1)),
});

const step: fc.Arbitrary<RandomStep> = fc.oneof(
  { weight: 12, arbitrary: tickStep },
  { weight: 4, arbitrary: fc.record({ type: fc.constant("advance" as const), ms: fraction(2_000) }) },
  { weight: 3, arbitrary: fc.constant({ type: "advance_to_hint" as const }) },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant("advance" as const),
      ms: fc.constantFrom(1, 8_000, 10_000, 15_001, 30_000, 59_999, 60_000, 65_000, 1_800_000, 90_000_000),
    }),
  },
  { weight: 3, arbitrary: fc.constant({ type: "look" as const }) },
);

const limits = tidy<Partial<LimitConfig>>(
  fc.record({
    maxConcurrency: fc.constantFrom(0, 0, 1, 2, 5),
    rpm: fc.constantFrom(0, 0, 1, 3, 10, 25, 60, 600),
    tpm: fc.constantFrom(0, 0, 500, 1_000, 60_000),
    limitRule: fc.constantFrom("smooth" as const, "smooth" as const, "window" as const),
    strict: often(true, fc.constant(false)),
  }),
);

const source: fc.Arbitrary<Partial<SourceConfig>> = fc
  .record({
    limit: limits,
    model: fc.constantFrom("m1", "m1", "m2"),
    estTokens: fc.constantFrom(undefined, undefined, 50),
    weight: fc.constantFrom(1, 1, 3),
    priority: fc.constantFrom(0, 0, 1),
    tpmCharge: fc.constantFrom("actual" as const, "actual" as const, "max" as const),
  })
  .map(({ limit, ...rest }) => ({ ...limit, ...rest }));

const flags = Object.keys(SCHEDULING_DEFAULTS).filter((name) => name !== "prefetchMs" && name !== "priceWeight");

const scheduling: fc.Arbitrary<SchedulingConfig> = fc
  .record({
    base: fc.constantFrom("defaults", "defaults", "off", "mixed"),
    mixed: fc.array(fc.boolean(), { minLength: flags.length, maxLength: flags.length }),
    prefetchMs: fc.constantFrom(0, 1_000, 1_000),
    priceWeight: fc.constantFrom(0, 0, 0.5, 1),
    hedge: fc.boolean(),
    affinity: fc.boolean(),
  })
  .map(({ base, mixed, hedge, affinity, ...numbers }) => {
    if (base === "off") return SCHEDULING_OFF;
    const chosen = Object.fromEntries(flags.map((name, at) => [name, mixed[at]]));
    return { ...SCHEDULING_DEFAULTS, hedge, affinity, ...(base === "mixed" ? chosen : {}), ...numbers };
  });

export const differentialScript: fc.Arbitrary<DifferentialScript> = fc.record({
  sources: fc.array(source, { minLength: 1, maxLength: 4 }),
  global: fc.oneof(fc.constant({}), limits),
  breaker: fc.record({
    failThreshold: fc.constantFrom(1, 2, 5),
    failRate: fc.constantFrom(0.3, 0.5, 1),
    minSamples: fc.constantFrom(4, 20),
    windowMs: fc.constantFrom(7_000, 60_000),
    cooldownMs: fc.constantFrom(0, 4_000, 4_000),
    cooldownMaxMs: fc.constantFrom(5_000, 30_000),
  }),
  selector: fc.constantFrom(
    "health_aware" as const,
    "health_aware" as const,
    "least_inflight" as const,
    "round_robin" as const,
  ),
  scheduling,
  prices: fc.record({ s0: fc.constantFrom(1, 2.5), s1: fc.constantFrom(0.3, 7) }),
  leaseTtlMs: fc.constantFrom(3_000, 9_000, 30_000),
  steps: fc.array(step, { minLength: 5, maxLength: 60, size: "max" }),
});
