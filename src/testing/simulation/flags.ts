import { parseArgs } from "node:util";
import { FlagError, timeLengthMs, wholeNumber } from "./flag-values.js";
import { MIXED_ID, SCENARIOS, WORST_ID } from "./scenarios.js";

export interface SimFlags {
  readonly scenarios: readonly string[];
  readonly seeds: readonly number[];
  readonly baselines: boolean;
  readonly worst: boolean;
  readonly trace: boolean;
  /** Put the tables into docs/benchmarks.md. */
  readonly write: boolean;
  /** No run is begun later than this; null = all are. */
  readonly forMs: number | null;
  /** Runs at a time. */
  readonly jobs: number;
  readonly help: boolean;
}

export const USAGE = `npm run sim -- [options]

Plays the scenarios of the scheduling specification on virtual time with the real
client, loop, dispatcher and governor, and judges their goals.

  --scenario A,B   only these (${SCENARIOS.map(({ id }) => id).join(" ")}); default: all
  --seeds N        seeds 1 to N; default 5 (with --worst: 50)
  --seed N         only this seed
  --baselines      also play what people do without a gateway
  --worst          instead: deaths, freezes, lost replies, store restarts and pauses, and
                   workers, classes, limits and faults in every mixture; only the
                   invariants are judged
  --for 5m         begin no further run after this long (s, m or h); with --worst and
                   no --seeds: go on with further seeds until then
  --trace          print every event and the hash of each run
  --write          also put the tables into docs/benchmarks.md
  --jobs N         runs at a time; default: one for each processor
`;

const DEFAULT_SEEDS = 5;
const DEFAULT_WORST_SEEDS = 50;

export function parseFlags(args: readonly string[], processors: number): SimFlags {
  const values = readValues(args);
  const worst = values.worst === true;
  if (worst && values.baselines === true) throw new FlagError("--worst and --baselines don't go together.");
  if (worst && values.scenario !== undefined)
    throw new FlagError("--worst plays a scenario of its own: leave out --scenario.");
  if (worst && values.write === true) throw new FlagError("--worst has no table to --write.");
  if (values.seed !== undefined && values.seeds !== undefined)
    throw new FlagError("Give --seed for one seed or --seeds for how many, not both.");
  const forMs = values.for === undefined ? null : durationMs(values.for);
  return {
    scenarios: worst ? [WORST_ID, MIXED_ID] : scenarioIds(values.scenario),
    seeds: seedsOf(values, worst, forMs),
    baselines: values.baselines === true,
    worst,
    trace: values.trace === true,
    write: values.write === true,
    forMs,
    jobs: values.jobs === undefined ? processors : wholeNumber("--jobs", values.jobs, 1),
    help: values.help === true,
  };
}

function readValues(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      strict: true,
      allowPositionals: false,
      options: {
        scenario: { type: "string" },
        seeds: { type: "string" },
        seed: { type: "string" },
        baselines: { type: "boolean" },
        worst: { type: "boolean" },
        trace: { type: "boolean" },
        write: { type: "boolean" },
        for: { type: "string" },
        jobs: { type: "string" },
        help: { type: "boolean" },
      },
    }).values;
  } catch (error) {
    throw new FlagError((error as Error).message);
  }
}

function scenarioIds(given: string | undefined): readonly string[] {
  const known = SCENARIOS.map(({ id }) => id);
  if (given === undefined) return known;
  const wanted = given.split(",").map((id) => id.trim());
  for (const id of wanted) {
    if (!known.includes(id)) throw new FlagError(`There is no scenario "${id}"; there are: ${known.join(", ")}.`);
  }
  return known.filter((id) => wanted.includes(id));
}

function seedsOf(
  { seed, seeds }: { readonly seed?: string | undefined; readonly seeds?: string | undefined },
  worst: boolean,
  forMs: number | null,
): readonly number[] {
  if (seed !== undefined) return [wholeNumber("--seed", seed, 0)];
  const isOpenEnded = worst && forMs !== null && seeds === undefined;
  const fallback = worst ? DEFAULT_WORST_SEEDS : DEFAULT_SEEDS;
  const count = seeds === undefined ? fallback : wholeNumber("--seeds", seeds, 1);
  return Array.from({ length: isOpenEnded ? 1_000_000 : count }, (_, index) => index + 1);
}

function durationMs(text: string): number {
  const ms = timeLengthMs(text);
  if (ms === 0) throw new FlagError(`--for must be a length of time such as 90s, 5m or 1h, not "${text}".`);
  return ms;
}
