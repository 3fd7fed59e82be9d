import { existsSync, readFileSync } from "node:fs";

/** A line of OUT, as far as the tests look at it. */
export interface OutLine {
  readonly id: string;
  readonly custom_id: string;
  readonly response: {
    readonly status_code: number;
    readonly body: { readonly choices: { readonly message: { readonly content: string } }[] };
  } | null;
  readonly error: { readonly code: string; readonly message: string; readonly class: string } | null;
  readonly pgw?: { readonly source: string; readonly attempts: number; readonly cost: number | null };
}

/** Every line of OUT; a torn last line is an error here. */
export function readOut(path: string): OutLine[] {
  const lines = readFileSync(path, "utf8").split("\n");
  if (lines.pop() !== "") throw new Error(`${path} ends within a line`);
  return lines.map((line) => JSON.parse(line) as OutLine);
}

/** Ids of the whole lines of an OUT whose writer may have been killed. */
export function idsOfTornOut(path: string): Set<string> {
  if (!existsSync(path)) return new Set();
  const whole = readFileSync(path, "utf8").split("\n").slice(0, -1);
  return new Set(whole.map((line) => (JSON.parse(line) as OutLine).custom_id));
}

/** What was answered by line id; fails on an id that stands there twice, and gives null for a failure line. */
export function answersById(lines: readonly OutLine[]): Map<string, string | null> {
  const answers = new Map<string, string | null>();
  for (const { custom_id: id, response, error } of lines) {
    if (answers.has(id)) throw new Error(`${id} stands in OUT twice`);
    answers.set(id, error === null ? (response?.body.choices[0]?.message.content ?? null) : null);
  }
  return answers;
}
