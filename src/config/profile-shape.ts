import { SAMPLING_KEYS } from "../domain/chat.js";
import { longestText } from "../domain/pattern-risk.js";
import { type ProviderProfile, REFUSAL_CODES } from "../domain/profile.js";
import { showWord } from "../domain/secret.js";
import { canCarryKey } from "./header-names.js";
import { accept, list, object, oneOf, record, type Shape, type ShapeProblem } from "./shape.js";
import { isPlainObject } from "./values.js";

function isPattern(value: unknown): boolean {
  try {
    return typeof value === "string" && value !== "" && new RegExp(value) !== null;
  } catch {
    return false;
  }
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
const flag: Shape = {
  accepted: "true or false",
  judge: (value, place, found) => {
    if (typeof value === "boolean") return;
    const remedy = "Accepted there: true or false.";
    found.push({ place, isFlag: true, problem: `has a wrong value at ${place}`, remedy });
  },
};
const anyPattern = accept(isPattern, "a regular expression as a text");

/** It is tried on texts of a provider, which must not keep the process busy. */
const pattern: Shape = {
  accepted: anyPattern.accepted,
  judge: (value, place, found) => {
    anyPattern.judge(value, place, found);
    if (!isPattern(value) || longestText(value as string, "i") !== undefined) return;
    found.push({
      place,
      problem: `has a pattern at ${place} that may take for ever: ${JSON.stringify(value)}`,
      remedy:
        "A repetition in it can read the same text in many ways; write it so that there is only one, as a+ instead of (a+)+.",
    });
  },
};
const number = accept((value) => typeof value === "number" && Number.isFinite(value), "a number");
const count = accept((value) => Number.isSafeInteger(value) && (value as number) >= 1, "a whole number above 0");
const wire = accept(
  (value) => isPlainObject(value) && isJson(value),
  "an object with fields of the request, as in JSON",
);
const headerName = accept((value) => typeof value === "string" && /^[\w!#$%&'*+.^`|~-]+$/.test(value), "a header name");
const header: Shape = {
  accepted: headerName.accepted,
  judge: (value, place, found) => {
    if (typeof value !== "string" || canCarryKey(value)) return headerName.judge(value, place, found);
    const remedy = "Name the header in which the provider expects the key, like authorization or x-api-key.";
    const problem = `has the header "${showWord(value)}" at ${place}, which can't carry a key`;
    found.push({ place, problem, remedy });
  },
};
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

/** Short in the documentation, which lists them once; a wrong value is told all of them. */
const errorCode: Shape = { ...oneOf(...REFUSAL_CODES), accepted: "an error code" };
const parameter: Shape = { ...oneOf(...SAMPLING_KEYS), accepted: "a parameter" };
const byParameter = (of: Shape): Shape => record(of, SAMPLING_KEYS, parameter.accepted);
const parameterNames = byParameter(text);

const BUDGET = object({ min: count, max: count, belowMaxTokens: flag, usual: count, fields: wire }, ["min", "fields"]);

/** docs/providers.md is made from this table, with the texts of src/domain/profile.ts. */
export const PROFILE_FIELDS: Readonly<Record<keyof ProviderProfile, Shape>> = {
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
      refused: list(parameter),
      only: byParameter(number),
      most: byParameter(number),
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
  limitCodes: record(oneOf("requests", "tokens", "concurrency"), undefined, "a code or a status"),
  resetClock: clock,
  structuredOutput: list(oneOf("json_schema", "json_object")),
  embeddingBase64: flag,
  embeddingBatchMax: count,
  notes: list(text),
  unconfirmed: list(text),
};

export const OPTIONAL_FIELDS: readonly string[] = ["modalities", "limitCodes", "resetClock", "embeddingBatchMax"];

const SHAPE = object({ ...PROFILE_FIELDS, extends: text });

/** Everything that is wrong with the shape of a profile that a person wrote; fields may be missing. */
export function profileProblems(given: unknown): readonly ShapeProblem[] {
  const found: ShapeProblem[] = [];
  SHAPE.judge(given, "", found);
  return found;
}

/** Puts what `read` makes of it in the place of every text where a flag belongs; undefined leaves the text. Changes `given`. */
export function readFlags(given: unknown, read: (text: string) => boolean | undefined): void {
  for (const { place, isFlag } of profileProblems(given)) {
    if (isFlag !== true) continue;
    const steps = place.split(/[.[\]]+/).filter((step) => step !== "");
    const last = steps.pop() ?? "";
    const owner = steps.reduce<unknown>((value, step) => (value as Record<string, unknown>)[step], given);
    const fact = (owner as Record<string, unknown>)[last];
    const meant = typeof fact === "string" ? read(fact) : undefined;
    if (meant !== undefined) (owner as Record<string, unknown>)[last] = meant;
  }
}

/** Does it say everything by itself, so that nothing has to lie below? */
export function isWholeProfile(given: Readonly<Record<string, unknown>>): boolean {
  if (given.extends !== undefined) return false;
  return Object.keys(PROFILE_FIELDS).every((field) => OPTIONAL_FIELDS.includes(field) || given[field] !== undefined);
}
