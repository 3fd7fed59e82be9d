import { type EmbedOptions, type FailedText, textName } from "../domain/embedding.js";
import { RequestRejectedError } from "../errors.js";
import { COMMON_OPTIONS, optionTrouble } from "./call-options.js";

/** The texts and wishes of one call as they were when it was made, checked. */
export interface CheckedEmbed extends EmbedOptions {
  /** A copy: what the caller does with the list later changes nothing. */
  readonly texts: readonly string[];
  /** Those that can't be sent; none unless bad texts are to be skipped. */
  readonly unsendable: readonly FailedText[];
}

const KNOWN_OPTIONS: ReadonlySet<string> = new Set<keyof EmbedOptions>([
  "model",
  "dimensions",
  "expectedDim",
  "vectors",
  "onBadItem",
  ...COMMON_OPTIONS,
]);

/** Their vectors would fill the memory of most machines; a list can be empty and longer than any machine can copy. */
const MOST_TEXTS = 1_000_000;

/** Servers refuse half a character, or embed something else in its place. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** What a caller can get wrong before anything is sent. Throws RequestRejectedError that names the text or the option. */
export function checkEmbed(texts: unknown, options: unknown, expectedDim: number | undefined): CheckedEmbed {
  const given = checkOptions(options);
  const { dimensions, expectedDim: expected = expectedDim } = given;
  if (expected !== expectedDim && expectedDim !== undefined) {
    reject(`expectedDim ${expected} contradicts expectedDim ${expectedDim} of this client`);
  }
  if (dimensions !== undefined && expected !== undefined && dimensions !== expected) {
    reject(
      `dimensions ${dimensions} contradicts expectedDim ${expected} of this ${expectedDim === undefined ? "call" : "client"}`,
    );
  }
  return { ...given, ...checkTexts(texts, given.onBadItem === "skip") };
}

function checkTexts(texts: unknown, skips: boolean): Pick<CheckedEmbed, "texts" | "unsendable"> {
  if (typeof texts === "string") reject("texts must be a list; put a single text into one: embed([text])");
  if (!Array.isArray(texts)) reject("texts must be a list of strings");
  const { length } = texts as readonly unknown[];
  if (length > MOST_TEXTS) reject(`texts has ${length} entries, and a call takes at most ${MOST_TEXTS}: cut the list`);
  const copy = [...(texts as readonly unknown[])];
  const unsendable: FailedText[] = [];
  for (const [index, text] of copy.entries()) {
    const problem = textProblem(text);
    if (problem === undefined) continue;
    const error = rejection(`${textName(index)} ${problem}`, { index });
    if (!skips) throw error;
    unsendable.push({ index, error });
  }
  return { texts: copy as string[], unsendable };
}

function textProblem(text: unknown): string | undefined {
  if (typeof text !== "string") return `is ${kindOf(text)}; every text must be a string`;
  if (text === "") return "is empty, and an empty text has no embedding; leave it out";
  return LONE_SURROGATE.test(text) ? "holds half of a surrogate pair; call toWellFormed() on it first" : undefined;
}

function kindOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  return Array.isArray(value) ? "a list" : `of type ${typeof value}`;
}

function checkOptions(options: unknown): EmbedOptions {
  if (options === undefined) return {};
  if (typeof options !== "object" || options === null || Array.isArray(options)) reject("options must be an object");
  const given = options as EmbedOptions;
  for (const name in given) {
    if (KNOWN_OPTIONS.has(name) || given[name as keyof EmbedOptions] === undefined) continue;
    reject(`unknown option ${JSON.stringify(name)}; known: ${[...KNOWN_OPTIONS].join(", ")}`);
  }
  const { vectors, onBadItem } = given;
  if (given.model !== undefined && typeof given.model !== "string") reject("model must be a text");
  for (const name of ["dimensions", "expectedDim"] as const) {
    const width = given[name];
    if (width === undefined || (Number.isSafeInteger(width) && width >= 1)) continue;
    reject(`${name} must be a whole number of at least 1`);
  }
  if (vectors !== undefined && vectors !== "number" && vectors !== "float32")
    reject("vectors must be number or float32");
  if (onBadItem !== undefined && onBadItem !== "fail" && onBadItem !== "skip") {
    reject("onBadItem must be fail or skip");
  }
  const trouble = optionTrouble(given);
  if (trouble !== undefined) reject(trouble);
  return given;
}

function reject(problem: string): never {
  throw rejection(problem);
}

function rejection(problem: string, details?: Record<string, unknown>): RequestRejectedError {
  return new RequestRejectedError(problem, {
    code: "bad_request",
    operation: "embedding",
    ...(details === undefined ? {} : { details }),
  });
}
