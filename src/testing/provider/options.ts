import type { ConfigProblem } from "../../errors.js";
import type { Answer, ReceivedRequest } from "./answer.js";
import type { ProviderClock } from "./clock.js";
import type { LedgerOptions } from "./ledger.js";
import type { ProviderLimits } from "./limits.js";
import { checkNames } from "./option-names.js";
import { checkNumbers, number, type Range, valueAt, whole } from "./option-numbers.js";
import type { FaultOptions, LatencyOptions, OutputOptions } from "./plan.js";

/** One simulated provider. Everything is optional: the default is a healthy, instant, unlimited one. */
export interface SimulatedProviderOptions {
  /** Name in the ledger. Default `sim`. */
  readonly name?: string;
  /** Default `127.0.0.1`. */
  readonly host?: string;
  /** 0 (default) = any free port. */
  readonly port?: number;
  /** Same seed and same order of arrival = same faults, latencies and lengths. Integer, default 1. */
  readonly seed?: number;
  /** Keys that are accepted; empty or absent = every key, also none. */
  readonly apiKeys?: readonly string[];
  /** Models told by GET /v1/models; requests may name any model. Default `sim-model`. */
  readonly models?: readonly string[];
  readonly limits?: ProviderLimits;
  readonly latency?: LatencyOptions;
  readonly output?: OutputOptions;
  readonly faults?: FaultOptions;
  /** Says what a request is answered. Default: `echoAnswer` of its question. A throw is answered with 400. */
  readonly answer?: (request: ReceivedRequest) => Answer | string;
  readonly ledger?: LedgerOptions;
  /** Default: the system's. */
  readonly clock?: ProviderClock;
}

type Names<T> = Readonly<Record<keyof T, true>>;

/** Every option there is. */
export const PROVIDER_OPTION_NAMES = {
  name: true,
  host: true,
  port: true,
  seed: true,
  apiKeys: true,
  models: true,
  limits: {
    rpm: true,
    tpm: true,
    maxConcurrency: true,
    rule: true,
    bucketSeconds: true,
    announce: true,
  } satisfies Names<ProviderLimits>,
  latency: { ttftMedianMs: true, ttftSigma: true, tokenMs: true } satisfies Names<LatencyOptions>,
  output: { medianTokens: true, sigma: true, maxTokens: true } satisfies Names<OutputOptions>,
  faults: {
    errorRate: true,
    rateLimitRate: true,
    cutRate: true,
    hangRate: true,
    hangAt: true,
    resetRate: true,
    rateLimitRetryAfterMs: true,
    slowStartMs: true,
    deadKey: true,
  } satisfies Names<FaultOptions>,
  answer: true,
  ledger: { keep: true, file: true } satisfies Names<LedgerOptions>,
  clock: true,
} satisfies Readonly<Record<keyof SimulatedProviderOptions, true | Readonly<Record<string, true>>>>;

const NUMBERS: readonly [path: string, range: Range][] = [
  ["port", whole(0, 65_535)],
  ["seed", whole(0)],
  ["limits.rpm", number(0)],
  ["limits.tpm", number(0)],
  ["limits.maxConcurrency", whole(0)],
  ["limits.bucketSeconds", number(0)],
  ["latency.ttftMedianMs", number(0)],
  ["latency.ttftSigma", number(0, 5)],
  ["latency.tokenMs", number(0)],
  ["output.medianTokens", number(1)],
  ["output.sigma", number(0, 5)],
  ["output.maxTokens", whole(1)],
  ["faults.errorRate", number(0, 1)],
  ["faults.rateLimitRate", number(0, 1)],
  ["faults.cutRate", number(0, 1)],
  ["faults.hangRate", number(0, 1)],
  ["faults.resetRate", number(0, 1)],
  ["faults.rateLimitRetryAfterMs", number(0)],
  ["faults.slowStartMs", number(0)],
  ["ledger.keep", whole(0)],
];

const RATES = ["errorRate", "rateLimitRate", "cutRate", "hangRate", "resetRate"] as const;

function checkRateSum(faults: FaultOptions): ConfigProblem | null {
  const sum = RATES.reduce((total, name) => total + (faults[name] ?? 0), 0);
  // A rate that is wrong by itself is told by its own line.
  if (!(sum > 1 + 1e-9) || RATES.some((name) => (faults[name] ?? 0) > 1)) return null;
  const names = RATES.filter((name) => (faults[name] ?? 0) > 0);
  return {
    key: names.map((name) => `faults.${name}`).join(" + "),
    value: String(sum),
    problem: "the fault rates together are above 1",
    remedy: "A request meets at most one fault: lower the rates so that they add up to 1 or less",
  };
}

function checkChoice(
  options: SimulatedProviderOptions,
  path: string,
  accepted: readonly string[],
): ConfigProblem | null {
  const value = valueAt(options, path);
  if (value === undefined || accepted.includes(value as string)) return null;
  return { key: path, value: String(value), problem: "unknown value", remedy: `Use ${accepted.join(" or ")}` };
}

/** Every problem at once; an empty list = the options are good. */
export function checkProviderOptions(options: SimulatedProviderOptions): ConfigProblem[] {
  const names = checkNames(options, PROVIDER_OPTION_NAMES);
  // What is no object where one belongs would be judged field by field.
  if (names.some(({ problem }) => problem.includes("no object"))) return names;
  return [
    ...names,
    ...checkNumbers(options, NUMBERS),
    checkRateSum(options.faults ?? {}),
    checkChoice(options, "limits.rule", ["bucket", "window"]),
    checkChoice(options, "faults.hangAt", ["start", "middle", "either"]),
  ].filter((problem): problem is ConfigProblem => problem !== null);
}
