import type { Life } from "./crew.js";
import { Finding } from "./finding.js";

/** A time in which the telemetry store could not be relied on (epoch ms). */
export interface Outage {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface LossEvidence {
  readonly lives: readonly Life[];
  readonly outages: readonly Outage[];
  /** By process: rows in the store, before anybody repaired anything. */
  readonly stored: ReadonlyMap<number, number>;
  /** Processes whose queue is too small for an outage. */
  readonly smallQueues: ReadonlySet<number>;
}

/** The recorder tries again within as long as the outage lasted, or this; a statement that hangs is given up in between. */
const LONGEST_RETRY_MS = 10_000;
const CATCH_UP_MS = 3_000;

/** Which rows may be missing (spec 05): those told as lost, and those that died with their process while it could not write. */
export class RowLosses {
  readonly told = new Finding("every row given is written or told as lost, and none is lost within the queue's bound");
  readonly written = new Finding("every row told as written is in the store");
  /** Requests of processes that were killed with rows in hand while the store was away. */
  diedInHand = 0;
  /** Rows told as lost, by processes whose queue is too small. */
  toldLost = 0;
  readonly #lives: ReadonlyMap<number, Life>;
  readonly #missing = new Map<number, number>();

  readonly #outages: readonly Outage[];

  constructor(private readonly evidence: LossEvidence) {
    this.#outages = joined(evidence.outages);
    this.#lives = new Map(evidence.lives.map((life) => [life.pid, life]));
    for (const life of evidence.lives) this.#judgeLife(life);
  }

  #judgeLife({ pid, killedAtMs, rows }: Life): void {
    const { smallQueues, stored } = this.evidence;
    const { given, written, dropped } = rows;
    const who = `process ${pid}`;
    if (smallQueues.has(pid)) this.toldLost += dropped;
    else this.told.check(dropped === 0, () => `${who} lost ${dropped} rows`);
    const found = stored.get(pid) ?? 0;
    // Of one that was killed only what it had told by then is known.
    if (killedAtMs !== null) {
      this.written.check(found >= written, () => `${who} has told ${written} rows, and ${found} are there`);
      return;
    }
    const lost = given - written;
    this.told.check(lost >= 0 && lost <= dropped, () => `${who}: ${given} given, ${written} written, ${dropped} lost`);
    this.written.check(found === written, () => `${who} has told ${written} rows, and ${found} are there`);
  }

  /** A request that its provider saw at that moment, sent by that process, has no row. false: it should have one. */
  mayMiss(pid: number | undefined, arrivedAtMs: number): boolean {
    const life = pid === undefined ? undefined : this.#lives.get(pid);
    if (life === undefined) return false;
    if (this.#diedInHand(life, arrivedAtMs)) {
      this.diedInHand += 1;
      return true;
    }
    const missing = (this.#missing.get(life.pid) ?? 0) + 1;
    this.#missing.set(life.pid, missing);
    return missing <= life.rows.dropped;
  }

  #diedInHand({ killedAtMs }: Life, arrivedAtMs: number): boolean {
    if (killedAtMs === null) return false;
    return this.#outages.some(
      (outage) => arrivedAtMs >= outage.fromMs && killedAtMs >= outage.fromMs && killedAtMs <= caughtUpMs(outage),
    );
  }
}

function caughtUpMs({ fromMs, toMs }: Outage): number {
  return toMs + Math.min(LONGEST_RETRY_MS, toMs - fromMs) + CATCH_UP_MS;
}

/** Who has not caught up when the next one begins carries the rows of both. */
function joined(outages: readonly Outage[]): Outage[] {
  const whole: Outage[] = [];
  for (const next of [...outages].sort((a, b) => a.fromMs - b.fromMs)) {
    const last = whole.at(-1);
    if (last === undefined || next.fromMs > caughtUpMs(last)) whole.push(next);
    else whole[whole.length - 1] = { fromMs: last.fromMs, toMs: Math.max(last.toMs, next.toMs) };
  }
  return whole;
}
