import { SAMPLING_KEYS } from "../domain/chat.js";
import { longestText } from "../domain/pattern-risk.js";
import { type ProviderProfile, REFUSAL_CODES } from "../domain/profile.js";
import { didYouMean } from "./did-you-mean.js";
import { isPlainObject } from "./values.js";

/** What is wrong with one place of a profile, as half a sentence. */
export interface ShapeProblem {
  readonly problem: string;
  readonly remedy: string;
}

/** Judges one value; `place` is how the place is called in texts. */
type Shape = (value: unknown, place: string, found: ShapeProblem[]) => void;

function accept(fits: (value: unknown) => boolean, accepted: string): Shape {
  return (value, place, found) => {
    if (!fits(value)) found.push({ problem: `has a wrong value at ${place}`, remedy: `Accepted there: ${accepted}.` });
  };
}

function list(of: Shape): Shape {
  return (value, place, found) => {
    if (!Array.isArray(value)) {
      found.push({ problem: `has no list at ${place}`, remedy: "Give a list there." });
      return;
    }
    for (const [index, entry] of value.entries()) of(entry, `${place}[${index}]`, found);
  };
}

function isPattern(value: unknown): boolean {
  try {
    return typeof value === "string" && value !== "" && new RegExp(value) !== null;
  } catch {
    return false;
  }
}

/** Every name is allowed, or only those of a list. */
function record(of: Shape, names?: readonly string[]): Shape {
  return (value, place, found) => {
    if (!isPlainObject(value)) {
      found.push({ problem: `has no object at ${place}`, remedy: "Give an object there." });
      return;
    }
    for (const [name, entry] of Object.entries(value)) {
      if (name === "__proto__" || (names !== undefined && !names.includes(name)))
        found.push(unknownName(name, place, names ?? []));
      else of(entry, `${place}.${name}`, found);
    }
  };
}

function object(fields: Readonly<Record<string, Shape>>, required: readonly string[] = []): Shape {
  return (value, place, found) => {
    if (!isPlainObject(value)) {
      found.push({ problem: `has no object at ${place}`, remedy: "Give an object there." });
      return;
    }
    for (const [name, entry] of Object.entries(value)) {
      const shape = Object.hasOwn(fields, name) ? fields[name] : undefined;
      if (shape === undefined) found.push(unknownName(name, place, Object.keys(fields)));
      else if (entry !== undefined) shape(entry, place === "" ? name : `${place}.${name}`, found);
    }
    for (const name of required) {
      if (value[name] === undefined) found.push({ problem: `lacks ${place}.${name}`, remedy: "Add it." });
    }
  };
}

function unknownName(name: string, place: string, known: readonly string[]): ShapeProblem {
  const shown = name.slice(0, 60);
  const meant = didYouMean(name, known);
  const remedy = meant === undefined ? `Known there: ${known.join(", ")}.` : `Did you mean ${meant}?`;
  return { problem: `has the unknown field "${place === "" ? shown : `${place}.${shown}`}"`, remedy };
}

const MAX_DEPTH = 16;

/** A value that JSON can carry as it is. */
function isJson(value: unknown, depth = 0): boolean {
  if (value === null || typeof value === "string" || typeof value === "boolean") return true;
  if (typeof value === "number") return Number.isFinite(value);
  if (depth > MAX_DEPTH) return false;
  if (Array.isArray(value)) return value.every((entry) => isJson(entry, depth + 1));
  if (!isPlainObject(value)) return false;
  return Object.entries(value).every(([name, entry]) => name !== "__proto__" && isJson(entry, depth + 1));
}

const text = accept((value) => typeof value === "string" && value !== "", "a text");
const anyText = accept((value) => typeof value === "string", "a text, which may be empty");
const flag = accept((value) => typeof value === "boolean", "true or false");
const anyPattern = accept(isPattern, "a regular expression as a text");

/** It is tried on texts of a provider, which must not keep the process busy. */
function pattern(value: unknown, place: string, found: ShapeProblem[]): void {
  anyPattern(value, place, found);
  if (!isPattern(value) || longestText(value as string, "i") !== undefined) return;
  found.push({
    problem: `has a pattern at ${place} that may take for ever: ${JSON.stringify(value)}`,
    remedy:
      "A repetition in it can read the same text in many ways; write it so that there is only one, as a+ instead of (a+)+.",
  });
}
const number = accept((value) => typeof value === "number" && Number.isFinite(value), "a number");
const count = accept((value) => Number.isSafeInteger(value) && (value as number) >= 1, "a whole number above 0");
const wire = accept(
  (value) => isPlainObject(value) && isJson(value),
  "an object with fields of the request, as in JSON",
);
const header = accept((value) => typeof value === "string" && /^[\w!#$%&'*+.^`|~-]+$/.test(value), "a header name");
const scheme = accept(
  (value) => typeof value === "string" && /^[\w-]*$/.test(value),
  "a word like Bearer, or an empty text",
);
const path = accept(
  (value) => typeof value === "string" && /^\/[^?#\s]*$/.test(value),
  "a path like /chat/completions",
);
const clock = accept((value) => typeof value === "string" && /^[+-]\d\d:\d\d$/.test(value), "an offset like +08:00");
const tagPair = accept(
  (value) => Array.isArray(value) && value.length === 2 && value.every((tag) => typeof tag === "string" && tag !== ""),
  'two texts like ["<think>", "</think>"]',
);

function oneOf(...words: readonly string[]): Shape {
  return accept((value) => typeof value === "string" && words.includes(value), words.join(", "));
}

const errorCode = oneOf(...REFUSAL_CODES);
const parameterNames = record(text, SAMPLING_KEYS);

const BUDGET = object({ min: count, max: count, belowMaxTokens: flag, usual: count, fields: wire }, ["min", "fields"]);

const FIELDS: Readonly<Record<keyof ProviderProfile, Shape>> = {
  name: text,
  aliases: list(text),
  address: text,
  hosts: list(text),
  auth: object({ header, scheme }),
  chatPath: path,
  query: record(anyText),
  thinking: list(
    object({
      models: pattern,
      off: wire,
      on: wire,
      levels: record(wire),
      budget: BUDGET,
      streams: oneOf("when_on", "unless_off"),
    }),
  ),
  parameterNames,
  parameters: list(
    object({
      models: pattern,
      when: oneOf("thinking"),
      names: parameterNames,
      refused: list(oneOf(...SAMPLING_KEYS)),
      only: record(number, SAMPLING_KEYS),
      most: record(number, SAMPLING_KEYS),
    }),
  ),
  modalities: list(oneOf("image", "audio", "file")),
  streamOptions: flag,
  doneIsProof: flag,
  reasoningTags: list(tagPair),
  reasoningFields: list(text),
  usage: object({
    reasoning: oneOf("inside", "beside", "only_in_total"),
    cache: oneOf("inside", "beside"),
    fields: record(list(text), ["prompt", "completion", "reasoning", "cached"]),
  }),
  errorCodes: record(errorCode),
  errorRules: list(
    object({ statuses: list(number), codes: list(text), words: pattern, retryAfter: flag, becomes: errorCode }, [
      "becomes",
    ]),
  ),
  resetClock: clock,
  structuredOutput: list(oneOf("json_schema", "json_object")),
  embeddingBase64: flag,
  embeddingBatchMax: count,
  notes: list(text),
  unconfirmed: list(text),
};

const OPTIONAL: readonly string[] = ["modalities", "resetClock", "embeddingBatchMax"];

const SHAPE = object({ ...FIELDS, extends: text });

/** Everything that is wrong with the shape of a profile that a person wrote; fields may be missing. */
export function profileProblems(given: unknown): readonly ShapeProblem[] {
  const found: ShapeProblem[] = [];
  SHAPE(given, "", found);
  return found;
}

/** Does it say everything by itself, so that nothing has to lie below? */
export function isWholeProfile(given: Readonly<Record<string, unknown>>): boolean {
  if (given.extends !== undefined) return false;
  return Object.keys(FIELDS).every((field) => OPTIONAL.includes(field) || given[field] !== undefined);
}
