import type { Fault } from "./faults.js";
import { mixedScenario } from "./mixed.js";
import type { Scenario, SourceSpec, UpstreamSpec } from "./scenario.js";
import { broken, FIVE, known, smaller, told } from "./sources.js";
import { worstScenario } from "./worst.js";

const EIGHT_BY_FORTY: readonly number[] = Array<number>(8).fill(40);
const [ALPHA, BRAVO, CHARLIE, DELTA, ECHO] = FIVE as readonly [
  UpstreamSpec,
  UpstreamSpec,
  UpstreamSpec,
  UpstreamSpec,
  UpstreamSpec,
];
const HEALTHY: readonly SourceSpec[] = FIVE.map(known);
const A: Scenario = {
  id: "A",
  title: "healthy, known limits",
  sources: HEALTHY,
  calls: 9_000,
  callers: EIGHT_BY_FORTY,
};

const CHARGED: readonly SourceSpec[] = FIVE.map((upstream) => known({ ...upstream, chargesRejected: true }));

/**
 * B: every account really has three quarters of the limits. Two are configured with the old ones, one only with its
 * concurrency, one not at all, one with twice the requests.
 */
const B_CONFIGURED: readonly SourceSpec["configured"][] = [
  { rpm: ALPHA.rpm, tpm: ALPHA.tpm, maxConcurrency: ALPHA.concurrency },
  { rpm: BRAVO.rpm, tpm: BRAVO.tpm, maxConcurrency: BRAVO.concurrency },
  {},
  { maxConcurrency: DELTA.concurrency },
  { rpm: ECHO.rpm * 2 },
];
const misjudged = (headers: boolean): readonly SourceSpec[] =>
  FIVE.map((upstream, index) => told({ ...smaller(upstream, 0.75), headers }, B_CONFIGURED[index]!));

/** C, F and S: the first source, at 5 requests a second the one spec 10's isolation goal counts with. */
const halfDead = (fromMs: number, toMs: number): Fault => ({ kind: "half_dead", fromMs, toMs, hangShare: 0.7 });
/** D: a quarter of every minute is long enough to trip and short enough to be back before the next probe. */
const FLAPPING: Fault = { kind: "flapping", fromMs: 60_000, toMs: Infinity, periodMs: 60_000, brokenMs: 15_000 };
const DEAD_KEY: Fault = { kind: "dead_key", fromMs: 0, toMs: Infinity };
const NO_QUOTA: Fault = { kind: "quota", fromMs: 120_000, toMs: Infinity };
/** E: what has begun is answered. The spec's figures tell: were it cut, every way to trip would be equally fast. */
const OUTAGE: Fault = { kind: "outage", fromMs: 200_000, toMs: 320_000, cutsAnswers: false };

const C_WATCHED = { source: ALPHA.name, fromMs: 120_000, toMs: 480_000 };
const F_SOURCES: readonly SourceSpec[] = FIVE.map((upstream, index) => {
  const slow = { ...upstream, slowStart: { share: 0.03, factor: 12 } };
  return known(index === 0 ? broken(slow, halfDead(120_000, 300_000)) : slow);
});
const F: Scenario = {
  id: "F",
  title: "open loop at 65 %, deadline 90 s, half-dead 120-300 s",
  sources: F_SOURCES,
  calls: 7_000,
  callers: EIGHT_BY_FORTY,
  offeredLoad: 0.65,
  deadlineMs: 90_000,
  watched: { source: ALPHA.name, fromMs: 120_000, toMs: 300_000 },
};

/** G: every limit begins at a quarter and is whole after 150 s; worker n of 16 has 20 + 8·n callers. */
const SLOW_START: readonly SourceSpec[] = FIVE.map((upstream) =>
  known({ ...upstream, ramp: { fromShare: 0.25, overMs: 150_000 } }),
);
const SKEWED: readonly number[] = Array.from({ length: 16 }, (_, index) => 20 + 8 * index);

/**
 * H: five servers that do 74 calls at full speed together and get slower with every further one. So uneven, the
 * baselines of spec 10 §9 come out as they do there: least-inflight 94 %, a weighted shuffle 72 % and 13 % wasted.
 */
const SELF_HOSTED: readonly SourceSpec[] = [20, 18, 14, 12, 10].map((knee, index) =>
  told({ ...FIVE[index]!, name: `server_${index + 1}`, rpm: 0, tpm: 0, concurrency: 0, knee }, {}),
);

/** T: so few tokens a minute that nothing else binds. */
const TOKEN_BOUND: readonly SourceSpec[] = [300_000, 200_000, 150_000, 110_000, 150_000].map((tpm, index) =>
  known({ ...FIVE[index]!, rpm: 600, tpm, concurrency: 60 }),
);
const T: Scenario = { id: "T", title: "token-bound", sources: TOKEN_BOUND, calls: 5_000, callers: EIGHT_BY_FORTY };

/** S: the five, five times; one of the 25 is half-dead, one has a dead key, one flaps. */
const S_SOURCES: readonly SourceSpec[] = Array.from({ length: 5 }, (_, group) =>
  FIVE.map((upstream, index) => {
    const named = { ...upstream, name: upstream.name.replace("_1", `_${group + 1}`) };
    if (group === 0 && index === 0) return known(broken(named, halfDead(60_000, 300_000)));
    if (group === 1 && index === 3) return known(broken(named, DEAD_KEY));
    if (group === 2 && index === 1) return known(broken(named, FLAPPING));
    return known(named);
  }),
).flat();

export const SCENARIOS: readonly Scenario[] = [
  A,
  { ...A, id: "A1", title: "A without size matching", scheduling: { sizeMatching: false } },
  { ...A, id: "Ap", title: "A, rejected requests are charged", sources: CHARGED },
  { ...A, id: "B", title: "limits wrong or unknown", sources: misjudged(false), calls: 6_000 },
  { ...A, id: "Bh", title: "B with x-ratelimit headers", sources: misjudged(true), calls: 6_000 },
  {
    ...A,
    id: "C",
    title: "one source half-dead 120-480 s",
    sources: [known(broken(ALPHA, halfDead(120_000, 480_000))), ...HEALTHY.slice(1)],
    watched: C_WATCHED,
    comparesWith: ["A"],
  },
  {
    ...A,
    id: "D",
    title: "dead key, quota used up at 120 s, one flapping",
    sources: [
      known(ALPHA),
      known(broken(BRAVO, FLAPPING)),
      known(CHARLIE),
      known(broken(DELTA, DEAD_KEY)),
      known(broken(ECHO, NO_QUOTA)),
    ],
    calls: 7_000,
    deadSource: DELTA.name,
  },
  {
    ...A,
    id: "E",
    title: "total outage 200-320 s",
    sources: FIVE.map((upstream) => known(broken(upstream, OUTAGE))),
    calls: 8_000,
    watched: { source: "*", fromMs: OUTAGE.fromMs, toMs: OUTAGE.toMs },
  },
  F,
  { ...F, id: "Fh", title: "F with hedging", scheduling: { hedge: true }, comparesWith: ["F"] },
  { ...A, id: "G", title: "slow start, 16 skewed workers", sources: SLOW_START, calls: 7_000, callers: SKEWED },
  { ...A, id: "H", title: "self-hosted: no 429, no limits", sources: SELF_HOSTED, calls: 5_000 },
  T,
  {
    ...T,
    id: "T1",
    title: "T without strict limits",
    sources: TOKEN_BOUND.map(({ upstream, configured }) => told(upstream, { ...configured, strict: false })),
  },
  {
    ...A,
    id: "S",
    title: "25 sources, 32 workers",
    sources: S_SOURCES,
    calls: 30_000,
    callers: Array<number>(32).fill(40),
    watched: { source: "alpha_1", fromMs: 60_000, toMs: 300_000 },
    deadSource: "delta_2",
  },
  {
    ...A,
    id: "fair",
    title: "one greedy worker with 300 callers and five times the work",
    calls: 7_200,
    callers: [300, ...Array<number>(7).fill(40)],
    shares: [5, ...Array<number>(7).fill(1)],
  },
  {
    ...A,
    id: "prio",
    title: "open loop at 120 %, a quarter goes first",
    calls: 5_000,
    offeredLoad: 1.2,
    highShare: 0.25,
  },
];

export const WORST_ID = "worst";
export const MIXED_ID = "mixed";

/** The scenario of that name; `worst` and `mixed` are another one for each seed. Throws for a name that isn't known. */
export function scenarioOf(id: string, seed: number): Scenario {
  if (id === WORST_ID) return worstScenario(seed);
  if (id === MIXED_ID) return mixedScenario(seed);
  const scenario = SCENARIOS.find((candidate) => candidate.id === id);
  if (scenario === undefined) throw new Error(`there is no scenario ${id}`);
  return scenario;
}
