/** The package `pg` is missing, or no pool can be made of the address. */
export class PoolError extends Error {}

/** It can certainly not be written: the table is missing and can't be made, or it is something else. */
export class HopelessError extends Error {}

/** A step took longer than it may; its connection is given up. */
export class LateError extends Error {}

/** The five characters PostgreSQL names an error by; null = it didn't come from the server. */
export function sqlState(error: unknown): string | null {
  const code: unknown = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) && !code.startsWith("E") ? code : null;
}

const RACE = new Set(["23505", "42P07", "42710", "42701"]);

/** Somebody else made the same thing at the same moment. */
export function isRace(error: unknown): boolean {
  return RACE.has(sqlState(error) ?? "");
}

export function isDenied(error: unknown): boolean {
  return sqlState(error) === "42501";
}

/** Access rules and names (42), no schema to put it into (3F): trying again changes nothing. */
export function isStructural(error: unknown): boolean {
  return /^(?:42|3F)/.test(sqlState(error) ?? "");
}

/** What is wrong is in a row, not in the database: data, constraints, limits of an index entry, a trigger's refusal. */
export function isRowFault(error: unknown): boolean {
  return /^(?:22|23|54|44|P0)/.test(sqlState(error) ?? "");
}

const ENDED_BY_SERVER = /^(?:08|57P0)/;

/** The connection is gone, whether the server said so or not. */
export function isConnectionFault(error: unknown): boolean {
  if (error instanceof LateError || error instanceof PoolError || error instanceof HopelessError) return false;
  const state = sqlState(error);
  return state === null || ENDED_BY_SERVER.test(state);
}

const LONGEST_TEXT = 300;

export function textOf(error: unknown): string {
  // What several addresses of a host said comes as one error without a text of its own.
  const inner = error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  const text = inner instanceof Error ? inner.message : String(inner);
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text;
}
