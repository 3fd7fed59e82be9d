import type { LimitOptions } from "../config/options.js";
import { type JudgedEntry, judgeLimits } from "../testing/provider/judge.js";
import { plural } from "./format.js";

/** One thing the demo promises, and what was found. */
export interface Check {
  readonly ok: boolean;
  readonly promise: string;
  /** The numbers behind it; on a miss, what is wrong. */
  readonly found: string;
}

export interface DemoQuestion {
  readonly id: string;
  readonly answer: string;
}

export interface OutLine {
  readonly custom_id: string;
  readonly error: { readonly message: string } | null;
  readonly response: {
    readonly body: { readonly choices?: readonly { readonly message: { readonly content: string } }[] };
  } | null;
}

export interface WitnessedSource {
  readonly name: string;
  readonly limits: LimitOptions;
  /** What the provider itself wrote down. */
  readonly ledger: readonly (JudgedEntry & { readonly requestId: string | null })[];
}

/** An attempt's telemetry row. */
export interface AttemptRow {
  readonly callId: string;
  readonly sourceName: string;
}

function few(items: readonly string[]): string {
  return items.length > 3 ? `${items.slice(0, 3).join("; ")}; and ${items.length - 3} more` : items.join("; ");
}

/** Each question once in OUT, with the answer to that very question. */
export function checkAnswers(questions: readonly DemoQuestion[], lines: readonly OutLine[]): Check {
  const byId = new Map<string, OutLine[]>();
  for (const line of lines) byId.set(line.custom_id, [...(byId.get(line.custom_id) ?? []), line]);
  const problems = questions.flatMap(({ id, answer }) => {
    const [line, ...more] = byId.get(id) ?? [];
    if (line === undefined) return [`${id} has no line`];
    if (more.length > 0) return [`${id} has ${more.length + 1} lines`];
    if (line.error !== null) return [`${id} failed: ${line.error.message}`];
    const content = line.response?.body.choices?.[0]?.message.content;
    return content === answer ? [] : [`${id} holds another answer`];
  });
  if (lines.length > questions.length)
    problems.push(`${plural(lines.length, "line")} for ${plural(questions.length, "question")}`);
  const found = `${plural(questions.length, "question")}, ${plural(lines.length, "line")}, each with its own answer`;
  return {
    ok: problems.length === 0,
    promise: "every question answered exactly once",
    found: problems.length === 0 ? found : few(problems),
  };
}

/** Spec 02 §3: requests in any half-open 60 s, concurrency by overlap over 250 ms. */
export function checkLimits(sources: readonly WitnessedSource[]): Check {
  const verdicts = sources.flatMap(({ name, limits, ledger }) =>
    judgeLimits(ledger, limits).verdicts.map((verdict) => ({ name, ...verdict })),
  );
  const broken = verdicts.filter(({ ok }) => !ok);
  const words = { rpm: "requests in 60 s", tpm: "tokens in 60 s", concurrency: "at once" };
  const found = verdicts.map(({ name, gate, observed, limit }) => `${name} ${observed} of ${limit} ${words[gate]}`);
  return {
    ok: broken.length === 0,
    promise: "no provider saw more requests than its limit",
    found: broken.length === 0 ? found.join(", ") : few(broken.map(({ name, message }) => `${name}: ${message}`)),
  };
}

/** What arrived at a provider has exactly one row, and what has a row arrived. */
export function checkRows(sources: readonly WitnessedSource[], rows: readonly AttemptRow[]): Check {
  const problems = sources.flatMap(({ name, ledger }) => {
    const rowIds = rows.filter((row) => row.sourceName === name).map((row) => row.callId);
    if (rowIds.length !== ledger.length)
      return [`${name}: ${plural(ledger.length, "request")} arrived, ${plural(rowIds.length, "row")}`];
    const arrived = new Set(ledger.map((entry) => entry.requestId));
    const unknown = rowIds.filter((id) => !arrived.has(id)).length;
    return arrived.has(null) || unknown === 0
      ? []
      : [`${name}: ${plural(unknown, "row")} of requests that never arrived`];
  });
  const parts = sources.map(({ name, ledger }) => `${name} ${ledger.length}`);
  return {
    ok: problems.length === 0,
    promise: "one row for every request that reached a provider",
    found: problems.length === 0 ? `${plural(rows.length, "row")}: ${parts.join(", ")}` : few(problems),
  };
}

export function checkBooks(differences: readonly string[], closed: string): Check {
  return {
    ok: differences.length === 0,
    promise: "the books balance",
    found: differences.length === 0 ? closed : few(differences),
  };
}
