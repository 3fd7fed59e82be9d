import { parseArgs } from "node:util";
import { FlagError, timeLengthMs, wholeNumber } from "../../src/testing/simulation/flag-values.js";

import { REAL_SCENARIOS } from "./scenario/options.js";

export interface FleetFlags {
  /** Instead of faults: this scenario of the simulator. */
  readonly scenario: string | null;
  /** How many times faster than simulated time it is played. */
  readonly scale: number;
  readonly forMs: number;
  readonly workers: number;
  /** Of each worker. */
  readonly callers: number;
  readonly seed: number;
  /** Admissions a second that the limits of all sources together allow. */
  readonly rate: number;
  readonly telemetry: "postgres" | "sqlite";
  readonly help: boolean;
}

export const USAGE = `npm run fleet -- [options]

Real processes, each with many callers, on one Redis and one telemetry store, against
simulated providers that keep ledgers of their own. Processes are killed and frozen,
connections cut, Redis is paused and restarted, providers fail. Afterwards ledgers,
telemetry and Redis are joined and every invariant is judged.

  --for 3m          how long (s, m or h); at least 12s; default 3m
  --workers N       processes; default 8
  --callers N       callers in each; default 50
  --seed N          of the schedule of faults and of the providers; default 1
  --rate N          admissions a second that all limits together allow; default 100
                    (the callers ask for three times as much)
  --telemetry sqlite   a file in place of a private PostgreSQL

  --scenario A      instead: this scenario of npm run sim (${REAL_SCENARIOS.join(" or ")}), played by real
                    processes on a real Redis against providers over HTTP, and compared
                    with the simulation of the same --seed
  --scale N         that many times faster than simulated time; default 2
`;

const WITHOUT_SCENARIO = ["for", "workers", "callers", "rate", "telemetry"] as const;

/** Less has no room for every fault and for the calm after them. */
const LEAST_MS = 12_000;

export function parseFlags(args: readonly string[]): FleetFlags {
  const values = readValues(args);
  const { telemetry = "postgres" } = values;
  if (telemetry !== "postgres" && telemetry !== "sqlite")
    throw new FlagError(`--telemetry must be postgres or sqlite, not "${telemetry}".`);
  const { scenario = null } = values;
  checkScenario(scenario, values);
  return {
    scenario,
    scale: wholeNumber("--scale", values.scale ?? "2", 1),
    forMs: durationMs(values.for ?? "3m"),
    workers: wholeNumber("--workers", values.workers ?? "8", 2),
    callers: wholeNumber("--callers", values.callers ?? "50", 1),
    seed: wholeNumber("--seed", values.seed ?? "1", 0),
    rate: wholeNumber("--rate", values.rate ?? "100", 10),
    telemetry,
    help: values.help === true,
  };
}

function checkScenario(scenario: string | null, values: ReturnType<typeof readValues>): void {
  if (scenario === null) {
    if (values.scale !== undefined) throw new FlagError("--scale goes with --scenario.");
    return;
  }
  if (!REAL_SCENARIOS.some((known) => known === scenario))
    throw new FlagError(`--scenario must be ${REAL_SCENARIOS.join(" or ")}, not "${scenario}".`);
  const foreign = WITHOUT_SCENARIO.find((name) => values[name] !== undefined);
  if (foreign !== undefined) throw new FlagError(`--${foreign} doesn't go with --scenario: leave it out.`);
}

function readValues(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      strict: true,
      allowPositionals: false,
      options: {
        for: { type: "string" },
        workers: { type: "string" },
        callers: { type: "string" },
        seed: { type: "string" },
        rate: { type: "string" },
        telemetry: { type: "string" },
        scenario: { type: "string" },
        scale: { type: "string" },
        help: { type: "boolean" },
      },
    }).values;
  } catch (error) {
    throw new FlagError((error as Error).message);
  }
}

function durationMs(text: string): number {
  const ms = timeLengthMs(text);
  if (ms >= LEAST_MS) return ms;
  throw new FlagError(`--for must be a length of time from ${LEAST_MS / 1_000}s, such as 60s or 5m, not "${text}".`);
}
