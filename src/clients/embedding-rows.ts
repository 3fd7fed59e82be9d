import type { Vector } from "../domain/embedding.js";

/** The form in which a caller gets vectors. */
export interface RowForm {
  readonly float32: boolean;
  /** Scale to length 1. */
  readonly normalize: boolean;
}

export type Row = number[] | Float32Array;

/** A vector of all but zeros stays what it is instead of becoming noise (spec 06). */
const SMALLEST_DIVISOR = 1e-12;

/** A vector in the caller's form; null when float32 can't hold one of its numbers. What already has that form is handed on. */
export function rowOf(vector: Vector, { float32, normalize }: RowForm): Row | null {
  if (!normalize && float32 === vector instanceof Float32Array) return vector as Row;
  const divisor = normalize ? Math.max(lengthOf(vector), SMALLEST_DIVISOR) : 1;
  const row = float32 ? new Float32Array(vector.length) : new Array<number>(vector.length);
  for (let at = 0; at < vector.length; at += 1) row[at] = vector[at]! / divisor;
  return row instanceof Float32Array && !row.every(Number.isFinite) ? null : row;
}

/** Euclidean length. Squares of huge numbers overflow, so these are scaled down first. */
function lengthOf(vector: Vector): number {
  const length = Math.sqrt(sumOfSquares(vector, 1));
  if (Number.isFinite(length)) return length;
  let largest = 0;
  for (const number of vector) largest = Math.max(largest, Math.abs(number));
  return largest * Math.sqrt(sumOfSquares(vector, largest));
}

function sumOfSquares(vector: Vector, unit: number): number {
  let sum = 0;
  for (let at = 0; at < vector.length; at += 1) sum += (vector[at]! / unit) ** 2;
  return sum;
}
