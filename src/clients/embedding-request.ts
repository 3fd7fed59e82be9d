import type { EmbedOptions } from "../domain/embedding.js";
import { RequestRejectedError } from "../errors.js";
import { callFieldsProblem, isSignal } from "./call-fields.js";

/** The texts and wishes of one call as they were when it was made, checked. */
export interface CheckedEmbed extends EmbedOptions {
  /** A copy: what the caller does with the list later changes nothing. */
  readonly texts: readonly string[];
}

const KNOWN_OPTIONS: ReadonlySet<string> = new Set<keyof EmbedOptions>([
  "dimensions",
  "vectors",
  "sessionId",
  "parentCallId",
  "tag",
  "signal",
  "priority",
  "failover",
  "deadlineMs",
]);

/** Servers refuse half a character, or embed something else in its place. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** What a caller can get wrong before anything is sent. Throws RequestRejectedError that names the text or the option. */
export function checkEmbed(texts: unknown, options: unknown, expectedDim: number | undefined): CheckedEmbed {
  const given = checkOptions(options);
  const { dimensions } = given;
  if (dimensions !== undefined && expectedDim !== undefined && dimensions !== expectedDim) {
    reject(`dimensions ${dimensions} contradicts expectedDim ${expectedDim} of this client`);
  }
  return { ...given, texts: checkTexts(texts) };
}

function checkTexts(texts: unknown): readonly string[] {
  if (typeof texts === "string") reject("texts must be a list; put a single text into one: embed([text])");
  if (!Array.isArray(texts)) reject("texts must be a list of strings");
  const copy = [...(texts as readonly unknown[])];
  for (const [index, text] of copy.entries()) {
    if (typeof text !== "string") reject(`texts[${index}] is ${kindOf(text)}; every text must be a string`, { index });
    if (text === "") reject(`texts[${index}] is empty, and an empty text has no embedding; leave it out`, { index });
    if (LONE_SURROGATE.test(text)) {
      reject(`texts[${index}] holds half of a surrogate pair; call toWellFormed() on it first`, { index });
    }
  }
  return copy as string[];
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
  const { dimensions, vectors, signal, failover } = given;
  if (dimensions !== undefined && !(Number.isSafeInteger(dimensions) && dimensions >= 1)) {
    reject("dimensions must be a whole number of at least 1");
  }
  if (vectors !== undefined && vectors !== "number" && vectors !== "float32")
    reject("vectors must be number or float32");
  if (failover !== undefined && failover !== "on" && failover !== "off") reject("failover must be on or off");
  const problem = callFieldsProblem(given);
  if (problem !== null) reject(problem);
  if (signal !== undefined && !isSignal(signal)) reject("signal must be an AbortSignal");
  return given;
}

function reject(problem: string, details?: Record<string, unknown>): never {
  throw new RequestRejectedError(problem, {
    code: "bad_request",
    operation: "embedding",
    ...(details === undefined ? {} : { details }),
  });
}
