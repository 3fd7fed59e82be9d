import type { Fault } from "./fault.js";
import type { Finding } from "./finding.js";
import type { Tally } from "./messages.js";

type Ends = Omit<Tally, "rows">;

export interface FiredFault {
  readonly fault: Fault;
  readonly injected: number;
  /** Requests that met it; null where only the injection can be counted. */
  readonly met: number | null;
}

export interface Score {
  readonly seed: number;
  readonly seconds: number;
  readonly processes: number;
  readonly admissions: number;
  readonly tally: Ends;
  /** The most that a limit of concurrency was exceeded by, with permits that were lost. */
  readonly overshoot: number;
  /** Requests that outlived their permit. */
  readonly lostPermits: number;
  /** Rows told as lost, by processes whose queue is too small. */
  readonly toldLost: number;
  /** Requests of processes that were killed with rows in hand while their store was away. */
  readonly diedInHand: number;
  /** Of the process that judges. */
  readonly longestStandstillMs: number;
  /** On Redis, faults and all. */
  readonly scripts: { readonly perAdmission: number; readonly meanUs: number };
  readonly findings: readonly Finding[];
  readonly faults: readonly FiredFault[];
}

export const timesFired = ({ injected, met }: FiredFault): number => met ?? injected;

/** A fault that never happened, or an invariant that was never looked at, proves nothing. */
export function isGood({ findings, faults }: Score): boolean {
  return findings.every(({ checks, violations }) => checks > 0 && violations === 0) && faults.every(timesFired);
}

export function scoreboard(score: Score): string {
  const { findings, faults } = score;
  const width = Math.max(
    ...findings.map(({ name }) => name.length),
    ...faults.map(({ fault }) => fault.what.length + 6),
  );
  const lines = [
    `${"invariant".padEnd(width)}     checks  violations`,
    ...findings.flatMap((finding) => findingLines(finding, width)),
    "",
    `${"fault".padEnd(width)}   injected    requests`,
    ...faults.map((fired) => faultLine(fired, width)),
    "",
    `${score.admissions} admissions in ${score.seconds.toFixed(0)} s by ${score.processes} processes, seed ${score.seed}`,
    `calls: ${score.tally.answered} answered${failures(score.tally)}`,
    `${score.lostPermits} requests outlived permits lost to a freeze or a restart: concurrency exceeded by ${score.overshoot} at most`,
    `${score.toldLost} rows told as lost by a process whose queue is too small; ${score.diedInHand} requests whose rows died with a killed process while PostgreSQL was away`,
    `${score.scripts.perAdmission.toFixed(2)} scripts an admission, ${score.scripts.meanUs.toFixed(0)} µs each on average`,
    `the judge itself was held up for ${score.longestStandstillMs} ms at most`,
    verdict(score),
  ];
  return lines.join("\n");
}

function findingLines({ name, checks, violations, examples }: Finding, width: number): string[] {
  const mark = violations > 0 ? "  BROKEN" : checks === 0 ? "  NEVER LOOKED AT" : "";
  const line = `${name.padEnd(width)} ${String(checks).padStart(10)} ${String(violations).padStart(11)}${mark}`;
  return [line, ...examples.map((example) => `    ${example}`)];
}

function faultLine(fired: FiredFault, width: number): string {
  const { fault, injected, met } = fired;
  const name = `${fault.id.padEnd(5)} ${fault.what}`.padEnd(width);
  const times = fault.always ? "all along" : String(injected);
  const mark = timesFired(fired) === 0 ? "  NEVER FIRED" : "";
  return `${name} ${times.padStart(10)} ${String(met ?? "").padStart(11)}${mark}`;
}

function failures({ failed }: Ends): string {
  const parts = Object.entries(failed).map(([name, count]) => `, ${count} ${name}`);
  return parts.join("");
}

function verdict(score: Score): string {
  const violations = score.findings.reduce((sum, finding) => sum + finding.violations, 0);
  const fired = score.faults.reduce((sum, { injected }) => sum + injected, 0);
  const silent = score.faults.filter((fault) => timesFired(fault) === 0).map(({ fault }) => fault.id);
  const blind = score.findings.filter(({ checks }) => checks === 0).length;
  if (isGood(score)) return `0 violations; ${fired} faults injected, every kind fired.`;
  return [
    `${violations} violations`,
    ...(silent.length > 0 ? [`never fired: ${silent.join(", ")}`] : []),
    ...(blind > 0 ? [`${blind} invariants were never looked at`] : []),
  ].join("; ");
}
