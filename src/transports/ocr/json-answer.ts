import type { PolyGatewayError } from "../../errors.js";
import type { Runtime } from "../../ports/runtime.js";
import type { AttemptContext } from "../../ports/transport.js";
import { parsedBytes } from "../json-weight.js";
import type { Refusal } from "../openai/classify.js";
import { parseAnswer } from "../openai/failures.js";
import { type Fault, findEmbeddedFault } from "../openai/fault.js";
import { transientEnd } from "../openai/judge.js";
import { type Fields, isFields } from "../openai/message-fields.js";
import type { WholeBody } from "../openai/whole-answer.js";

/** Decoded bytes of one answer: pages of text, and cut-out pictures where a server can't be kept from sending them. */
export const MAX_OCR_JSON_BYTES = 64 * 1_024 * 1_024;
/** Heap that its values may take: such an answer is mostly long texts. */
const MAX_PARSED_OCR_BYTES = 192 * 1_024 * 1_024;

/** An object that is no list. */
export function isObject(value: unknown): value is Fields {
  return isFields(value) && !Array.isArray(value);
}

/** The JSON object of a 2xx answer. Throws the typed error that it tells, or the transient one of an answer that is none. */
export function readJsonAnswer(
  answer: WholeBody,
  { runtime }: AttemptContext,
  refused: (refusal: Refusal) => PolyGatewayError,
): Fields {
  const { text, statusCode } = answer;
  if (parsedBytes(text) > MAX_PARSED_OCR_BYTES) {
    throw transientEnd(answer, "malformed", "the JSON answer holds too many values");
  }
  const parsed = parseAnswer(answer, text);
  const fault = findEmbeddedFault(parsed);
  if (fault !== undefined) throw refused(embeddedRefusal(answer, fault, runtime));
  if (!isObject(parsed)) throw transientEnd(answer, "malformed", `${statusCode} with JSON that is no object`);
  return parsed;
}

/** An error that a 2xx answer tells. */
export function embeddedRefusal(answer: WholeBody, fault: Fault, runtime: Runtime): Refusal {
  const { text, statusCode, headers } = answer;
  const header = (name: string) => headers.get(name);
  return { statusCode, embedded: true, text, fault, header, limits: headers.limits(runtime) };
}

/** The objects of a list; `others` = how many entries are none. */
export function objectsOf(value: unknown): { readonly objects: Fields[]; readonly others: number } {
  if (!Array.isArray(value)) return { objects: [], others: 0 };
  const objects = value.filter(isObject);
  return { objects, others: value.length - objects.length };
}
