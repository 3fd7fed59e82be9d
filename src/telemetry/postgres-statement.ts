import { CALL_COLUMNS, type Column, type ColumnValue, OPEN_COLUMNS } from "./columns.js";
import type { TableColumns, TableNames } from "./postgres-tables.js";

/** One column that is written: where its value stands in a row, and how it gets into the table's type. */
interface TargetColumn {
  readonly index: number;
  readonly name: string;
  /** Type of the array parameter. */
  readonly sent: string;
  /** Cast to the column's own type; "" = it is what is sent. */
  readonly cast: string;
  readonly adapt: (value: ColumnValue) => ColumnValue;
}

export type Target = readonly TargetColumn[];

/** Rows of one statement, each in the order of CALL_COLUMNS or OPEN_COLUMNS. */
export interface StatementRows {
  readonly calls: readonly (readonly ColumnValue[])[];
  readonly opens: readonly (readonly ColumnValue[])[];
  /** Attempts whose journal rows go. */
  readonly closed: readonly ColumnValue[];
}

export interface Statement {
  readonly text: string;
  readonly values: readonly unknown[];
}

const SENT = { TEXT: "text", INTEGER: "bigint", REAL: "double precision" } as const;
const asIs = (value: ColumnValue): ColumnValue => value;

/** Largest value of the integer types; what is beyond it is unknown, not a lost row. */
const INTEGER_LIMITS: Readonly<Record<string, number>> = {
  smallint: 2 ** 15 - 1,
  integer: 2 ** 31 - 1,
  bigint: Number.MAX_SAFE_INTEGER,
};

/** How values go into the columns a table has, whatever types its maker gave them. */
export function targetOf(columns: TableColumns, wanted: readonly Column[]): Target {
  return wanted.flatMap(({ name, type }, index) => {
    const own = columns.get(name);
    if (own === undefined) return [];
    if (own === SENT[type]) return [{ index, name, sent: own, cast: "", adapt: asIs }];
    const limit = INTEGER_LIMITS[own];
    if (limit !== undefined && type !== "TEXT") {
      return [{ index, name, sent: own, cast: "", adapt: (value) => integerWithin(value, limit) }];
    }
    // By way of its text, every type can be cast to.
    const adapt = own === "json" || own === "jsonb" ? jsonText : asIs;
    return [{ index, name, sent: "text", cast: `::${own}`, adapt }];
  });
}

export const callTarget = (columns: TableColumns): Target => targetOf(columns, CALL_COLUMNS);
export const openTarget = (columns: TableColumns): Target => targetOf(columns, OPEN_COLUMNS);

function integerWithin(value: ColumnValue, limit: number): ColumnValue {
  if (typeof value !== "number") return value;
  const rounded = Math.round(value);
  return Math.abs(rounded) <= limit ? rounded : null;
}

/** A text that was cut is no JSON any more. */
function jsonText(value: ColumnValue): ColumnValue {
  if (typeof value !== "string") return value;
  try {
    JSON.parse(value);
    return value;
  } catch {
    return JSON.stringify(value);
  }
}

/**
 * All of a batch in one statement, which is one transaction and one way to the server: records are inserted, their
 * journal rows deleted, new journal rows inserted. ON CONFLICT has no target, because a target needs the right to
 * SELECT (spec 05); it makes a statement whose answer was lost harmless to repeat.
 */
export function writeStatement(
  names: TableNames,
  targets: { readonly calls: Target; readonly opens: Target | null },
  rows: StatementRows,
): Statement {
  const values: unknown[] = [];
  const parts: string[] = [];
  if (targets.opens !== null && rows.opens.length > 0) {
    parts.push(insertText(names.open, targets.opens, rows.opens, values));
  }
  if (targets.opens !== null && rows.closed.length > 0) {
    values.push(rows.closed);
    parts.push(`DELETE FROM ${names.open} WHERE call_id = ANY($${values.length}${closedType(targets.opens)})`);
  }
  if (rows.calls.length > 0) parts.push(insertText(names.calls, targets.calls, rows.calls, values));
  const main = parts.pop() ?? "SELECT 1";
  const before = parts.map((part, index) => `w${index} AS (${part})`).join(", ");
  return { text: before === "" ? main : `WITH ${before} ${main}`, values };
}

function closedType(opens: Target): string {
  const { sent, cast } = opens.find(({ name }) => name === "call_id") as TargetColumn;
  return cast === "" ? `::${sent}[]` : `${cast}[]`;
}

function insertText(
  table: string,
  target: Target,
  rows: readonly (readonly ColumnValue[])[],
  values: unknown[],
): string {
  const parameters: string[] = [];
  for (const { index, sent, adapt } of target) {
    values.push(rows.map((row) => adapt(row[index] ?? null)));
    parameters.push(`$${values.length}::${sent}[]`);
  }
  const names = target.map(({ name }) => `"${name}"`).join(", ");
  const fields = target.map((_, position) => `c${position}`);
  const selected = target.map(({ cast }, position) => `u.c${position}${cast}`).join(", ");
  return `INSERT INTO ${table} (${names}) SELECT ${selected} FROM unnest(${parameters.join(", ")}) AS u(${fields.join(", ")}) ON CONFLICT DO NOTHING`;
}
