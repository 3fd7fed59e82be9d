import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { SCHEDULING_FIELDS } from "../src/config/schema-scheduling.js";
import { BREAKER_DEFAULTS, REMOTE_PREFETCH_MS, SCHEDULING_DEFAULTS } from "../src/domain/scope.js";

/** The figures of docs/guide/scheduling.md, held against the constants of the rules. */

const read = (path: string): string => readFileSync(join(import.meta.dirname, "..", path), "utf8");
const PAGE = read("docs/guide/scheduling.md");

/** A constant of a rule, exported or not: a document is no reason to export it. */
function constant(file: string, name: string): number {
  const text = new RegExp(`^(?:export )?const ${name} = ([^;]+);`, "m").exec(read(`src/domain/${file}.ts`))?.[1];
  const value = (text ?? "").replaceAll("_", "").split(/([*/])/);
  const [first, operator, second] = [Number(value[0]), value[1], Number(value[2])];
  const number = operator === "*" ? first * second : operator === "/" ? first / second : first;
  if (text === undefined || !Number.isFinite(number)) throw new Error(`src/domain/${file}.ts has no ${name}`);
  return number;
}

const rule = (name: string) => (constantName: string) => constant(`scheduling/${name}`, constantName);
const percent = (share: number): string => `${Math.round(share * 100)} %`;
const seconds = (ms: number): string => `${ms / 1_000} s`;

/** The figures of one row, by its first cell. */
function figuresOf(row: string): string {
  const cells = new RegExp(`^\\| ${row} \\| .* \\| (.*) \\| .* \\|$`, "m").exec(PAGE);
  if (cells === null) throw new Error(`the page has no row ${row}`);
  return cells[1] ?? "";
}

const pacer = rule("pacer");
const cubic = rule("cubic");
const goodput = rule("goodput");
const noise = rule("noise");
const evidence = rule("evidence");
const budgets = rule("budgets");
const due = rule("first-token");
const cooldown = (name: string) => constant("cooldown", name);
const breaker = (name: string) => constant("breaker", name);
const selection = (name: string) => constant("selection", name);
const failureWeight = Math.log(evidence("BROKEN_SHARE") / evidence("GOOD_SHARE"));
const successWeight = Math.log((1 - evidence("BROKEN_SHARE")) / (1 - evidence("GOOD_SHARE")));

test.each([
  ["classes", `${rule("line")("UPPER_GRANTS")} of ${rule("line")("UPPER_GRANTS") + 1}`],
  [
    "size matching",
    `${rule("size-match")("LOOK_AHEAD")} looked at; ${percent(rule("size-match")("LEAST_GAIN") - 1)} better at least; passed over ${rule("size-match")("MOST_SKIPS")} times, a call goes first`,
  ],
  [
    "fairness",
    `${rule("fairness")("LEAD")} grants ahead; a process silent for ${seconds(rule("fairness")("SILENT_MS"))} holds nobody up`,
  ],
  [
    "learned reservations",
    `from ${rule("token-learning")("LEAST_SAMPLES")} samples on; each new one weighs ${percent(rule("token-learning")("ALPHA"))}`,
  ],
  [
    "headers",
    `less than ${pacer("EARLY_REQUESTS_S")} s of the request rate or ${pacer("EARLY_TOKENS_S")} s of the token rate left`,
  ],
  [
    "cooldown",
    `${cooldown("BASE_MS")} ms, at most ${seconds(cooldown("MAX_MS"))}, ± ${percent(cooldown("JITTER"))}; calls ${cooldown("REOPEN_GAP_MS")} ms apart until one succeeds`,
  ],
  [
    "pacer, rate",
    `cut to ${percent(cubic("BETA"))}, never below ${percent(goodput("FLOOR_SHARE"))} of the best rate of answers over ${seconds(goodput("LEAST_SPAN_MS"))}, unless ${percent(goodput("CHANGED_SHARE"))} are refused; back after ${seconds(cubic("K_MIN_MS"))}, up to ${seconds(cubic("K_MAX_MS"))} where the limit proves stable; never below one request in ${1 / pacer("MIN_RATE_PER_S")} s`,
  ],
  [
    "pacer, concurrency",
    `starts with ${pacer("START_WINDOW")}, at most ${pacer("MAX_WINDOW")}; grows no faster than ${cubic("NEWS_PER_K")} attempts take`,
  ],
  [
    "noise",
    `after ${noise("MOST_VAIN_CUTS")} cuts in vain, or at ${percent(noise("LEAST_SHARE"))} of the level before, with at most one 429 in ${noise("LEAST_GAP")} attempts; where 429s are rare, after ${noise("MOST_RARE_CUTS")} that come soon after a cut and yet after ${noise("RARE_GAP")} attempts; ended by ${noise("LEAST_REFUSALS")} that come ${1 / noise("WORSE_SHARE")} times as often as at the low level, or by none for ${noise("CALM_MS") / 60_000} min`,
  ],
  [
    "gradient",
    `median of ${rule("gradient")("SAMPLES")} answers, ${rule("gradient")("TOO_SLOW")} times the best; at least ${percent(rule("gradient")("LEAST_SHARE"))} stays`,
  ],
  ["permits ahead", `${SCHEDULING_DEFAULTS.prefetchMs} in memory, ${seconds(REMOTE_PREFETCH_MS)} with Redis`],
  [
    "breaker",
    `${BREAKER_DEFAULTS.failThreshold}, or ${percent(BREAKER_DEFAULTS.failRate)} of at least ${BREAKER_DEFAULTS.minSamples} in ${seconds(BREAKER_DEFAULTS.windowMs)}`,
  ],
  [
    "evidence",
    `failure + ${failureWeight.toFixed(2)}, success − ${(-successWeight).toFixed(2)}, slow success + ${(evidence("SLOW_SHARE") * failureWeight).toFixed(2)}; opens at ${evidence("TRIPS_AT")}; halves in ${seconds(evidence("HALF_LIFE_MS"))}`,
  ],
  ["overdue first token", `${due("DUE_FACTOR")} times the usual time, at least ${seconds(due("LEAST_DUE_MS"))}`],
  [
    "open time",
    `${seconds(BREAKER_DEFAULTS.cooldownMs)} × ${breaker("OPEN_GROWTH")} a trip, at most ${seconds(BREAKER_DEFAULTS.cooldownMaxMs)}; one trip back per ${seconds(breaker("TRIP_PAYBACK_MS"))}; dead: ${seconds(breaker("DEAD_BASE_MS"))} doubling up to ${breaker("DEAD_MAX_MS") / 60_000} min`,
  ],
  ["probes", `at most ${rule("evidence-flow")("MOST_PROBES")}`],
  [
    "ramp",
    `${seconds(rule("in-force")("RAMP_MS"))}, from ${percent(rule("in-force")("LEAST_RAMP_SHARE"))} and at least ${rule("in-force")("LEAST_RAMP_WINDOW")} places; evidence starts at ${evidence("TRIPS_AT") / 2}`,
  ],
  [
    "learned speed",
    `${percent(rule("health")("ALPHA"))}, ${percent(rule("health")("ALPHA_RISE"))} when slower; outcomes halve in ${seconds(rule("health")("HALF_LIFE_MS"))}`,
  ],
  ["failed in this call", `within ${seconds(selection("FAILED_HERE_PATIENCE_MS"))}`],
  ["affinity", `while its score is within ${selection("AFFINITY_TOLERANCE")} times the best`],
  [
    "retry budget",
    `${budgets("RETRY_PER_SUCCESS")} a success, at most ${budgets("MOST_TOKENS")}; ${budgets("FREE_RETRIES")} at a time are always free`,
  ],
  [
    "hedging",
    `after ${due("HEDGE_FACTOR")} times the usual time, at least ${seconds(due("LEAST_HEDGE_MS"))}; ${budgets("HEDGE_PER_SUCCESS")} a success, at most ${budgets("MOST_TOKENS")}; only where at most ${percent(constant("admission", "HEDGE_USED_SHARE"))} is in use and the start is within ${constant("admission", "HEDGE_WAIT_MS")} ms`,
  ],
  [
    "deadline refusal",
    `measured by ${rule("expected-time")("LEAST_SAMPLES")} samples at least, the last success within ${seconds(rule("expected-time")("FRESH_MS"))}`,
  ],
])("the figures of %s are those of the code", (row, figures) => {
  expect(figuresOf(row)).toBe(figures);
});

test("the score is told as it is", () => {
  expect(PAGE).toContain(
    `times ${selection("LIMITED_HERE_FACTOR")} if it rate-limited this call, ± ${percent(selection("NOISE"))} by chance`,
  );
});

test("every rule that can be switched off is named with its key", () => {
  const keys = Object.values(SCHEDULING_FIELDS).map(({ env }) => env ?? "");
  expect(keys.filter((key) => !new RegExp(`\\| \`${key}\``).test(PAGE))).toEqual([]);
});
