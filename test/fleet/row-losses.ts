import type { Life } from "./crew.js";
import { Finding } from "./finding.js";

export interface LossEvidence {
  readonly lives: readonly Life[];
  /** Attempts that may have been sent although their row was not committed, told before they were. */
  readonly unwritten: ReadonlySet<string>;
  /** By process: rows in the store, before anybody repaired anything. */
  readonly stored: ReadonlyMap<number, number>;
  /** Processes whose queue is too small for an outage. */
  readonly smallQueues: ReadonlySet<number>;
}

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

  constructor(private readonly evidence: LossEvidence) {
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
    // One that was lost because its answer was, and the queue was full then, is there all the same.
    const isThere = found >= written && found <= written + dropped;
    this.written.check(isThere, () => `${who} has told ${written} rows, and ${found} are there`);
  }

  /** A request of that process, which its provider saw, has no row. false: it should have one. */
  mayMiss(pid: number | undefined, id: string): boolean {
    const life = pid === undefined ? undefined : this.#lives.get(pid);
    if (life === undefined) return false;
    if (life.killedAtMs !== null && this.evidence.unwritten.has(id)) {
      this.diedInHand += 1;
      return true;
    }
    const missing = (this.#missing.get(life.pid) ?? 0) + 1;
    this.#missing.set(life.pid, missing);
    return missing <= life.rows.dropped;
  }
}
