import type { StoredRow } from "../../src/telemetry/columns.js";
import type { NotedGrant } from "./crew.js";
import { Finding } from "./finding.js";
import type { Witnessed } from "./limits-judge.js";
import type { RowLosses } from "./row-losses.js";

type RowColumns =
  | "call_id"
  | "request_id"
  | "source_name"
  | "outcome"
  | "attempt"
  | "final"
  | "usage_source"
  | "prompt_tokens"
  | "completion_tokens";

/** A telemetry row as far as it is judged. */
export type JudgedRow = Pick<StoredRow, RowColumns>;

/** How an attempt may have ended of which its provider saw nothing: its process died, or its connection did, before. */
const MAY_BE_UNSEEN: ReadonlySet<unknown> = new Set(["abandoned", "cancelled", "transient", "stale_socket"]);

/** Telemetry, held against the ledgers: what was sent has one row, and a row tells what was sent. */
export class BooksJudge {
  readonly permitted = new Finding("every request had a permit of its source");
  readonly once = new Finding("no permit was used twice");
  readonly rows = new Finding("exactly one row for each request a provider saw, but for rows that are lost");
  readonly seen = new Finding("every row that tells of an answer was seen by its provider");
  readonly ends = new Finding("exactly one final row for each call");
  readonly tokens = new Finding("tokens of answers equal the provider's");

  constructor(
    witnessed: readonly Witnessed[],
    private readonly grants: ReadonlyMap<string, NotedGrant>,
    rows: readonly JudgedRow[],
    losses: RowLosses,
  ) {
    const attempts = this.#attemptsOf(rows);
    const seen = new Set<string>();
    for (const { source, entries } of witnessed) {
      for (const entry of entries) {
        const id = entry.requestId ?? "";
        this.once.check(!seen.has(id), () => `${source}: ${id} arrived twice`);
        seen.add(id);
        const grant = this.grants.get(id);
        this.permitted.check(grant?.source === source, () => `${source}: ${id || "a request without id"} has none`);
        const row = attempts.get(id);
        const isAccounted = row === undefined && losses.mayMiss(grant?.pid, id);
        this.rows.check(
          isAccounted || row?.source_name === source,
          () => `${source}: ${id} (${entry.outcome}) of process ${grant?.pid} has no row`,
        );
        if (row?.outcome !== "success" || row.usage_source !== "measured") continue;
        const told = Number(row.prompt_tokens) + Number(row.completion_tokens);
        this.tokens.check(told === entry.billedTokens, () => `${id}: ${told}, and the provider ${entry.billedTokens}`);
      }
    }
    for (const [id, { outcome }] of attempts)
      this.seen.check(seen.has(id) || MAY_BE_UNSEEN.has(outcome), () => `${id} (${outcome}) was seen by nobody`);
    this.#judgeEnds(rows);
  }

  #attemptsOf(rows: readonly JudgedRow[]): Map<string, JudgedRow> {
    const attempts = new Map<string, JudgedRow>();
    for (const row of rows) {
      if (row.source_name === null) continue;
      const id = String(row.call_id);
      if (attempts.has(id)) this.rows.broken(`${id} has more than one row`);
      attempts.set(id, row);
    }
    return attempts;
  }

  #judgeEnds(rows: readonly JudgedRow[]): void {
    const ends = new Map<unknown, number>();
    for (const { request_id, final } of rows) ends.set(request_id, (ends.get(request_id) ?? 0) + (final === 1 ? 1 : 0));
    for (const [call, count] of ends) this.ends.check(count === 1, () => `call ${call} has ${count} final rows`);
  }
}
