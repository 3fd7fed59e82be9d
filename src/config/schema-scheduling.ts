import { SCHEDULING_DEFAULTS as DEFAULTS, type SchedulingConfig } from "../domain/scope.js";
import { duration, type Fields, flag, number } from "./field.js";

/** Every adaptive rule by its name (spec 10); see schema.ts. */
export const SCHEDULING_FIELDS: Fields<SchedulingConfig> = {
  pacer: flag(
    "PACER",
    DEFAULTS.pacer,
    "Rate and concurrency of a source follow what it bears: less after a 429, slowly more after that",
  ),
  sizeMatching: flag(
    "SIZE_MATCHING",
    DEFAULTS.sizeMatching,
    "Calls with many tokens go where requests are scarce, calls with few where tokens are",
  ),
  evacuate: flag(
    "EVACUATE",
    DEFAULTS.evacuate,
    "When a breaker opens, attempts there that have no token yet move to another source, once a call",
  ),
  hedge: flag("HEDGE", DEFAULTS.hedge, "A second attempt elsewhere beside one whose first token is late"),
  affinity: flag("AFFINITY", DEFAULTS.affinity, "Calls of one session prefer the source that served it last"),
  priceWeight: number(
    "PRICE_WEIGHT",
    DEFAULTS.priceWeight,
    "How much a source's price counts against its speed: 0 = not at all, 1 = as much; needs a price table",
    { max: 1_000 },
  ),
  prefetchMs: duration(
    "PREFETCH_S",
    DEFAULTS.prefetchMs,
    "How long before its start a call may be given its permit; 1 by default with limits in Redis",
    {
      max: 10_000,
    },
  ),
  headers: flag(
    "HEADERS",
    DEFAULTS.headers,
    "Limits and remainders that answers tell in their headers hold too, where they are below the configured ones",
  ),
  evidence: flag(
    "EVIDENCE",
    DEFAULTS.evidence,
    "A score of how attempts ended opens the breaker too, sooner than counts alone",
  ),
  overdue: flag(
    "OVERDUE",
    DEFAULTS.overdue,
    "A first token that is overdue counts against its source at once, before any timeout",
  ),
  ramp: flag("RAMP", DEFAULTS.ramp, "A source that came back gets its load again step by step"),
  fairness: flag("FAIRNESS", DEFAULTS.fairness, "Processes that share a scope get even shares of it"),
  retryBudget: flag(
    "RETRY_BUDGET",
    DEFAULTS.retryBudget,
    "Retries of all calls together may not exceed a share of what succeeds",
  ),
  deadlineRefusal: flag(
    "DEADLINE_REFUSAL",
    DEFAULTS.deadlineRefusal,
    "A call that no source would answer before its deadline is refused at once",
  ),
  learnTokens: flag(
    "LEARN_TOKENS",
    DEFAULTS.learnTokens,
    "Reservations follow what calls of the same kind really used",
  ),
};
