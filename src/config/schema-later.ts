import { duration, type Field, flag, number, optional } from "./field.js";

/** A known key whose feature is not in this version: refused, or accepted without effect and said so. */
export interface LaterField {
  readonly field: Field;
  readonly treatment: "refused" | "no_effect";
  /** What a person is told. */
  readonly today: string;
}

function without(today: string, ...fields: Field[]): readonly LaterField[] {
  return fields.map((field) => ({ field, treatment: "no_effect", today }));
}

const SCHEDULING_TODAY = "the scheduling options come with a later version and act as off today";
const REDIS_TODAY = "the Redis backends come with a later version";

export const SOURCE_LATER: readonly LaterField[] = [];

/** By group. */
export const SCOPE_LATER: Readonly<Record<string, readonly LaterField[]>> = {
  SCHEDULING: without(
    SCHEDULING_TODAY,
    flag("PACER", true, "Adaptive pace per source"),
    flag("SIZE_MATCHING", true, "Big calls where big budgets are"),
    flag("EVACUATE", true, "Move hanging calls away"),
    flag("HEDGE", false, "Second try beside a slow first one"),
    flag("AFFINITY", false, "Keep a session on its source"),
    number("PRICE_WEIGHT", 0, "How much the price counts", { max: 1_000 }),
  ),
  BREAKER: without(
    "is ignored: a probe ends with its lease",
    optional(duration("PROBE_TTL_S", 0, "Accepted for old configurations; ignored"), "–"),
  ),
};

export const PROCESS_LATER: readonly LaterField[] = [
  ...without(REDIS_TODAY, duration("PGW_REDIS_TIMEOUT_S", 250, "Longest wait for Redis", { above: 0 })),
  ...without("PostgreSQL telemetry comes with a later version", {
    kind: "text",
    env: "PGW_TELEMETRY_PG_DSN",
    fallback: undefined,
    defaultText: "–",
    secret: true,
    text: "Address of the PostgreSQL telemetry database",
  }),
];
