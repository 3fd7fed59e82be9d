import fc from "fast-check";
import type { SourceOptions } from "../../src/config/options.js";
import type { ScriptedReply } from "../../src/testing/scripted-transport.js";

/** One random life of a client: what is configured, who calls when, what providers and the store do. */
export interface Scenario {
  readonly seed: number;
  readonly sources: readonly Partial<SourceOptions>[];
  readonly globalConcurrency: number;
  readonly retry: { readonly maxAttempts: number; readonly maxRateLimited: number };
  readonly breakerThreshold: number;
  readonly quotaFull: "wait" | "fail_fast";
  readonly whenOpen: "wait" | "fail";
  readonly failover: "on" | "off";
  readonly backendGraceMs: number;
  readonly userSelector: boolean;
  readonly journal: "async" | "before_send" | "off";
  readonly durability: "async" | "sync";
  readonly commitMs: number;
  /** null = the governor answers in the same turn. */
  readonly wire: { readonly thereMs: number; readonly backMs: number } | null;
  /** Which ticks fail, by their number; over after a while. */
  readonly storeFaults: readonly StoreFault[];
  readonly calls: readonly PlannedCall[];
  readonly replies: readonly ReplyKind[];
}

export interface StoreFault {
  readonly tick: number;
  readonly kind: "backend" | "not_configured" | "plain" | "lost";
}

export interface PlannedCall {
  readonly startMs: number;
  readonly stream: boolean;
  readonly model: "a" | "b" | undefined;
  readonly priority: number;
  readonly maxTokens: number;
  readonly deadlineMs: number | undefined;
  /** When its caller leaves, from the start of the call. */
  readonly abortMs: number | undefined;
  /** A reader of a stream that leaves after so many events; undefined = reads to the end. */
  readonly leavesAfter: number | undefined;
}

export type ReplyKind =
  | { readonly kind: "ok"; readonly afterMs: number; readonly firstTokenMs: number | undefined }
  | { readonly kind: "hang" }
  | { readonly kind: "cut"; readonly afterMs: number }
  | { readonly kind: "limited"; readonly afterMs: number; readonly retryAfterMs: number | undefined }
  | { readonly kind: "dead"; readonly afterMs: number }
  | {
      readonly kind:
        | "server_error"
        | "rejected"
        | "invalid"
        | "stale_socket"
        | "param_dropped"
        | "context_length"
        | "plain_error";
      readonly afterMs: number;
    };

const ms = (max: number) => fc.integer({ min: 0, max });
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 });

const reply: fc.Arbitrary<ReplyKind> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant("ok" as const), afterMs: ms(8_000), firstTokenMs: maybe(ms(500)) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("hang" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("cut" as const), afterMs: fc.integer({ min: 20, max: 3_000 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("limited" as const), afterMs: ms(2_000), retryAfterMs: maybe(ms(9_000)) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("dead" as const), afterMs: ms(100) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom(
        "server_error" as const,
        "server_error" as const,
        "rejected" as const,
        "invalid" as const,
        "stale_socket" as const,
        "param_dropped" as const,
        "context_length" as const,
        "plain_error" as const,
      ),
      afterMs: ms(1_000),
    }),
  },
);

const source: fc.Arbitrary<Partial<SourceOptions>> = fc.record({
  model: fc.constantFrom("a", "b"),
  maxConcurrency: fc.constantFrom(0, 0, 1, 2, 3),
  rpm: fc.constantFrom(0, 0, 5, 60, 600),
  tpm: fc.constantFrom(0, 0, 3_000, 100_000),
  limitRule: fc.constantFrom("smooth" as const, "window" as const),
  priority: fc.constantFrom(0, 0, 1),
  weight: fc.constantFrom(1, 1, 3),
  tpmCharge: fc.constantFrom("actual" as const, "max" as const),
  contextTokens: fc.constantFrom(undefined, 8_000, 128_000),
});

const call: fc.Arbitrary<PlannedCall> = fc.record({
  startMs: ms(20_000),
  stream: fc.boolean(),
  model: fc.constantFrom(undefined, undefined, "a" as const, "b" as const),
  priority: fc.constantFrom(0, 0, 1),
  maxTokens: fc.constantFrom(10, 200, 2_500),
  deadlineMs: maybe(ms(40_000)),
  abortMs: maybe(ms(15_000)),
  leavesAfter: maybe(fc.integer({ min: 0, max: 2 })),
});

export const scenario: fc.Arbitrary<Scenario> = fc.record({
  seed: fc.nat(1_000_000),
  sources: fc.array(source, { minLength: 1, maxLength: 5 }),
  globalConcurrency: fc.constantFrom(0, 0, 2, 5),
  retry: fc.record({ maxAttempts: fc.integer({ min: 1, max: 4 }), maxRateLimited: fc.integer({ min: 1, max: 6 }) }),
  breakerThreshold: fc.constantFrom(1, 3, 1_000),
  quotaFull: fc.constantFrom("wait" as const, "wait" as const, "fail_fast" as const),
  whenOpen: fc.constantFrom("wait" as const, "fail" as const),
  failover: fc.constantFrom("on" as const, "on" as const, "off" as const),
  backendGraceMs: fc.constantFrom(0, 10_000),
  userSelector: fc.constantFrom(false, false, true),
  journal: fc.constantFrom("async" as const, "before_send" as const, "off" as const),
  durability: fc.constantFrom("async" as const, "sync" as const),
  commitMs: ms(150),
  wire: fc.option(fc.record({ thereMs: ms(100), backMs: ms(100) }), { freq: 2 }),
  storeFaults: fc.oneof(
    { weight: 2, arbitrary: fc.constant([]) },
    {
      weight: 1,
      arbitrary: fc.array(
        fc.record({
          tick: fc.nat(60),
          kind: fc.constantFrom("backend" as const, "not_configured" as const, "plain" as const, "lost" as const),
        }),
        { maxLength: 12 },
      ),
    },
  ),
  calls: fc.array(call, { minLength: 1, maxLength: 40 }),
  replies: fc.array(reply, { minLength: 1, maxLength: 12 }),
});

/** Random lives that once broke a rule, as small as they could be made. */
export const BROKE_A_RULE: readonly Scenario[] = [evacuatedBetweenTwoFailures()];

/** A counted failure, an attempt sent away when its source tripped, a failed probe, and a second counted failure. */
function evacuatedBetweenTwoFailures(): Scenario {
  const source = {
    model: "a",
    maxConcurrency: 0,
    rpm: 0,
    tpm: 0,
    limitRule: "smooth",
    priority: 0,
    weight: 1,
  } as const;
  const call = { startMs: 0, stream: false, model: undefined, priority: 0, maxTokens: 10, leavesAfter: undefined };
  return {
    seed: 0,
    sources: [source, source],
    globalConcurrency: 0,
    retry: { maxAttempts: 2, maxRateLimited: 1 },
    breakerThreshold: 1,
    quotaFull: "wait",
    whenOpen: "wait",
    failover: "on",
    backendGraceMs: 0,
    userSelector: false,
    journal: "async",
    durability: "async",
    commitMs: 0,
    wire: null,
    storeFaults: [],
    calls: [undefined, undefined, undefined, 0].map((abortMs) => ({ ...call, deadlineMs: undefined, abortMs })),
    replies: [{ kind: "server_error", afterMs: 0 }, { kind: "invalid", afterMs: 0 }, { kind: "hang" }],
  };
}

export type ErrorOf = (kind: ReplyKind["kind"], retryAfterMs?: number) => Error;

/** What the scripted provider does with a send of this kind. */
export function scriptedReply(planned: ReplyKind, errorOf: ErrorOf): ScriptedReply {
  switch (planned.kind) {
    case "ok":
      return {
        afterMs: planned.afterMs,
        ...(planned.firstTokenMs === undefined || planned.firstTokenMs > planned.afterMs
          ? {}
          : { firstTokenMs: planned.firstTokenMs }),
      };
    case "hang":
      return {};
    case "cut":
      return { firstTokenMs: planned.afterMs / 2, afterMs: planned.afterMs, error: errorOf("cut") };
    case "limited":
      return { afterMs: planned.afterMs, error: errorOf("limited", planned.retryAfterMs) };
    default:
      return { afterMs: planned.afterMs, error: errorOf(planned.kind) };
  }
}
