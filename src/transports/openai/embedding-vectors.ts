import { endianness } from "node:os";
import { countOf } from "../../domain/count-of.js";
import { textName, type Vector } from "../../domain/embedding.js";
import type { ErrorCode } from "../../errors.js";
import type { Spans } from "./embedding-spans.js";

/**
 * The vectors of an embedding answer, by the index of each item (spec 06). Nothing is guessed, cut or filled up: an
 * answer that doesn't hold exactly one good vector per text is a problem with the place named.
 */

export interface VectorProblem {
  readonly code: Extract<ErrorCode, "bad_index" | "count_mismatch" | "bad_vector" | "dimension_mismatch">;
  /** For people. */
  readonly what: string;
  readonly details: Readonly<Record<string, unknown>>;
}

export interface WantedVectors {
  readonly count: number;
  /** Where the first text stands in the caller's list. */
  readonly firstIndex: number;
  /** The width that was asked for. */
  readonly dimensions: number | undefined;
}

type Item = { readonly index?: unknown; readonly embedding?: unknown } | null | undefined;

export function readVectors(data: readonly unknown[], wanted: WantedVectors): Vector[] | VectorProblem {
  const { count, firstIndex } = wanted;
  if (data.length !== count) {
    const what = `${countOf(data.length, "vector")} for ${countOf(count, "text")}`;
    return { code: "count_mismatch", what, details: { expected: count, received: data.length } };
  }
  const ordered = inOrder(data as readonly Item[]);
  if (!Array.isArray(ordered)) return ordered;
  const vectors: Vector[] = [];
  for (const [at, item] of ordered.entries()) {
    const vector = readVector(item?.embedding);
    const index = firstIndex + at;
    if (typeof vector === "string") {
      return { code: "bad_vector", what: `the vector of ${textName(index)} ${vector}`, details: { index } };
    }
    const mismatch = widthProblem(vector, index, vectors[0], wanted.dimensions);
    if (mismatch !== undefined) return mismatch;
    vectors.push(vector);
  }
  return vectors;
}

/** Items by their index; a place that is claimed twice, by nobody or from outside says nothing about the order. */
function inOrder(items: readonly Item[]): Item[] | VectorProblem {
  const ordered = new Array<Item>(items.length);
  const isTaken = new Uint8Array(items.length);
  for (const [position, item] of items.entries()) {
    const index = wholeNumber(item?.index);
    const given = typeof item?.index === "number" ? String(item.index) : JSON.stringify(item?.index)?.slice(0, 40);
    const details = { position };
    if (index === undefined) {
      const what = given === undefined ? "has no index" : `has the index ${given}`;
      return { code: "bad_index", what: `item ${position} of the answer ${what}`, details };
    }
    if (index >= items.length) {
      return { code: "bad_index", what: `index ${index} in an answer of ${items.length}`, details };
    }
    if (isTaken[index] === 1) return { code: "bad_index", what: `index ${index} stands in the answer twice`, details };
    isTaken[index] = 1;
    ordered[index] = item;
  }
  return ordered;
}

/** A text of digits means the same number as without its quotes; everything else is no index. */
function wholeNumber(value: unknown): number | undefined {
  const number = typeof value === "string" && /^(0|[1-9]\d{0,8})$/.test(value) ? Number(value) : value;
  return typeof number === "number" && Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}

function widthProblem(
  vector: Vector,
  index: number,
  first: Vector | undefined,
  dimensions: number | undefined,
): VectorProblem | undefined {
  const width = vector.length;
  const expected = dimensions ?? first?.length ?? width;
  if (width === expected) return undefined;
  const against = dimensions === undefined ? `the first one has ${expected}` : `${expected} were asked for`;
  const what = `the vector of ${textName(index)} has ${width} dimensions, ${against}`;
  return { code: "dimension_mismatch", what, details: { index, dim: width, expected } };
}

/** Vectors of an answer whose long texts were taken out; undefined = one of them is not what it seems. */
export function readSpans(data: readonly unknown[], spans: Spans, wanted: WantedVectors): Vector[] | undefined {
  if (spans.count !== data.length) return undefined;
  const filled = data.map((item) => {
    const embedding = spans.vectorOf((item as Item)?.embedding);
    return embedding === undefined ? undefined : { index: (item as Item)?.index, embedding };
  });
  if (filled.includes(undefined)) return undefined;
  const vectors = readVectors(filled, wanted);
  return Array.isArray(vectors) ? vectors : undefined;
}

/** The value's own type decides, not what was asked for. A string = what is wrong with it. */
function readVector(value: unknown): Vector | string {
  if (typeof value === "string") return decodeBase64(value);
  // No JSON has one: it was taken out of the bytes.
  if (value instanceof Float32Array) return value;
  if (!Array.isArray(value)) return value === undefined || value === null ? "is missing" : "is no list of numbers";
  if (value.length === 0) return "is empty";
  for (const number of value as readonly unknown[]) {
    if (typeof number !== "number") return "holds something that is no number";
    if (!Number.isFinite(number)) return "holds a number that is not finite";
  }
  return value as number[];
}

const BYTES_PER_FLOAT = 4;
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const IS_BIG_ENDIAN = endianness() === "BE";

/**
 * Little-endian float32 (spec 06). Node's own decoder skips what it doesn't know, and then writes fewer bytes than the
 * length of the text promises: that tells a broken text without reading it twice.
 */
export function decodeBase64(text: string): Float32Array | string {
  if (text.length === 0) return "is empty";
  if (text.length % 4 !== 0) return "is no valid base64";
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = (text.length / 4) * 3 - padding;
  if (bytes % BYTES_PER_FLOAT !== 0) {
    return BASE64.test(text) ? `is ${bytes} bytes of base64, which are no whole float32 numbers` : "is no valid base64";
  }
  // Memory of its own that nobody has emptied: it is filled to its end, or thrown away.
  const target = Buffer.allocUnsafeSlow(bytes);
  // The letters of base64url would be taken too.
  if (target.write(text, "base64") !== bytes || text.includes("-") || text.includes("_")) return "is no valid base64";
  if (IS_BIG_ENDIAN) target.swap32();
  const floats = new Float32Array(target.buffer, 0, bytes / BYTES_PER_FLOAT);
  return areFinite(floats) ? floats : "holds a number that is not finite";
}

/**
 * The sum of so many float32 is finite in double precision, but for NaN and Infinity. Four sums at once: each addition
 * waits for the one before it.
 */
function areFinite(floats: Float32Array): boolean {
  const inFours = floats.length - (floats.length % 4);
  let [a, b, c, d] = [0, 0, 0, 0];
  for (let at = 0; at < inFours; at += 4) {
    a += floats[at]!;
    b += floats[at + 1]!;
    c += floats[at + 2]!;
    d += floats[at + 3]!;
  }
  for (let at = inFours; at < floats.length; at += 1) a += floats[at]!;
  return Number.isFinite(a + b + c + d);
}
