/** One setting: what it is called, what it accepts and what it means (spec 07). */
export type FieldKind =
  | "name"
  | "text"
  | "prompt"
  | "url"
  | "secret"
  | "dsn"
  | "redis_url"
  | "duration"
  | "number"
  | "integer"
  | "flag"
  | "choice"
  | "list"
  | "object"
  | "headers"
  | "transient400"
  | "profile"
  | "thinking";

export interface Field<T = unknown> {
  readonly kind: FieldKind;
  /** Last part of the environment name; absent = only in code. */
  readonly env?: string;
  /** Used when nothing is given. A duration is kept in ms and written in seconds in the environment. */
  readonly fallback: T;
  /** Nothing is assumed: it must be given. */
  readonly required?: boolean;
  readonly min?: number;
  /** Exclusive lower bound. */
  readonly above?: number;
  readonly max?: number;
  /** Accepted words; for a `text` field only a list for the documentation. */
  readonly choices?: readonly string[];
  /** The choices that this version has; the others are known but refused. */
  readonly available?: readonly string[];
  /** Never shown unmasked; may also be given as the path of a file in `<KEY>_FILE`. */
  readonly secret?: boolean;
  /** An empty value means something. */
  readonly mayBeEmpty?: boolean;
  /** What a number counts, as a word. */
  readonly unit?: string;
  /** What the documentation shows as default when `fallback` doesn't say it. */
  readonly defaultText?: string;
  /** One sentence for people. */
  readonly text: string;
}

/** A table with one field per key of the resolved type. */
export type Fields<T> = { readonly [K in keyof T]-?: Field<T[K]> };

type Rest<T> = Partial<Omit<Field<T>, "kind" | "env" | "fallback" | "text">>;

const YEAR_MS = 366 * 24 * 3_600_000;

export function duration(env: string, fallback: number, text: string, rest: Rest<number> = {}): Field<number> {
  return { kind: "duration", env, fallback, text, min: 0, max: YEAR_MS, ...rest };
}

export function integer(env: string, fallback: number, text: string, rest: Rest<number> = {}): Field<number> {
  return { kind: "integer", env, fallback, text, min: 0, max: 1_000_000_000, ...rest };
}

export function number(env: string, fallback: number, text: string, rest: Rest<number> = {}): Field<number> {
  return { kind: "number", env, fallback, text, min: 0, max: 1_000_000, ...rest };
}

export function flag(env: string, fallback: boolean, text: string): Field<boolean> {
  return { kind: "flag", env, fallback, text };
}

export function choice<T extends string>(
  env: string,
  choices: readonly T[],
  fallback: T,
  text: string,
  rest: Rest<T> = {},
): Field<T> {
  return { kind: "choice", env, choices, fallback, text, ...rest };
}

/** A field of the given type that may stay unset. */
export function optional<T>(field: Field<T>, defaultText: string): Field<T | undefined> {
  return { ...field, fallback: undefined, defaultText };
}
