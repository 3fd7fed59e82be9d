import type { ChatRequest, Sampling } from "../../domain/chat.js";
import type { SourceConfig } from "../../domain/source.js";
import { RequestRejectedError } from "../../errors.js";
import type { ProviderProfile } from "./profiles.js";

/** Builds the wire body. The caller's objects are read, never changed. */

type Fields = Record<string, unknown>;

const WIRE_NAMES: Readonly<Record<keyof Sampling, string>> = {
  temperature: "temperature",
  topP: "top_p",
  topK: "top_k",
  minP: "min_p",
  maxTokens: "max_tokens",
  stop: "stop",
  seed: "seed",
  presencePenalty: "presence_penalty",
  frequencyPenalty: "frequency_penalty",
  logitBias: "logit_bias",
  logprobs: "logprobs",
  topLogprobs: "top_logprobs",
  n: "n",
};

/** Fields that the gateway itself decides; in `extraBody` they would contradict it. */
const RESERVED = ["model", "messages", "stream"] as const;
/** Deeper values are an attack on the serialiser, not a setting. */
const MAX_DEPTH = 64;

export interface WireBody {
  readonly json: string;
  /** Names of the fields that WE added, which a source may refuse. */
  readonly added: readonly string[];
}

function isPlainObject(value: unknown): value is Fields {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Lays `over` on `target`, objects deeply, everything else replaced; `__proto__` is left out. `target` must be our own. */
function layOver(target: Fields, over: Readonly<Fields>, depth = 0): void {
  if (depth > MAX_DEPTH) throw new RangeError("nested too deeply");
  for (const key of Object.keys(over)) {
    if (key === "__proto__" || over[key] === undefined) continue;
    const value = over[key];
    if (!isPlainObject(value)) {
      target[key] = value;
      continue;
    }
    const merged: Fields = {};
    const below = Object.hasOwn(target, key) ? target[key] : undefined;
    if (isPlainObject(below)) layOver(merged, below, depth + 1);
    layOver(merged, value, depth + 1);
    target[key] = merged;
  }
}

function layCallFields(fields: Fields, request: ChatRequest, profile: ProviderProfile): void {
  const { sampling } = request;
  if (sampling !== undefined) {
    for (const name of Object.keys(WIRE_NAMES) as (keyof Sampling)[]) {
      const value = sampling[name];
      if (value !== undefined) fields[profile.parameterNames[name] ?? WIRE_NAMES[name]] = value;
    }
  }
  if (request.tools !== undefined && request.tools.length > 0) fields.tools = request.tools;
  if (request.toolChoice !== undefined) fields.tool_choice = request.toolChoice;
  if (request.responseFormat !== undefined) fields.response_format = request.responseFormat;
}

function refuseReserved(extraBody: Readonly<Fields>, whose: string): void {
  const reserved = RESERVED.find((name) => Object.hasOwn(extraBody, name));
  if (reserved === undefined) return;
  throw new RequestRejectedError(
    `${whose} must not hold "${reserved}": the gateway sets it. Use the option of that name instead.`,
    { code: "bad_request", details: { param: reserved } },
  );
}

/** A response format may carry our own switch, which no provider knows. */
function withoutOwnSwitches(fields: Fields): void {
  const format = fields.response_format;
  if (!isPlainObject(format) || !("validate" in format)) return;
  const { validate: _validate, ...wire } = format;
  fields.response_format = wire;
}

function wireFields(request: ChatRequest, source: SourceConfig, profile: ProviderProfile): Fields {
  const fields: Fields = {};
  refuseReserved(source.extraBody, `EXTRA_BODY of ${source.name}`);
  layOver(fields, source.extraBody);
  layCallFields(fields, request, profile);
  if (request.extraBody !== undefined) {
    refuseReserved(request.extraBody, "extraBody");
    layOver(fields, request.extraBody);
  }
  withoutOwnSwitches(fields);
  return fields;
}

/**
 * The body of one attempt. `messagesJson` is used as it is, so that the messages are serialised once per call.
 * Precedence: call > source EXTRA_BODY. `dropped` = fields of ours that this source has refused before.
 * Throws RequestRejectedError when the call's fields can't be serialised.
 */
export function buildWireBody(
  request: ChatRequest,
  messagesJson: string,
  stream: boolean,
  source: SourceConfig,
  profile: ProviderProfile,
  dropped: ReadonlySet<string>,
): WireBody {
  const added: string[] = [];
  let rest: string;
  try {
    const fields = wireFields(request, source, profile);
    if (stream) {
      fields.stream = true;
      if (profile.streamOptions && fields.stream_options === undefined && !dropped.has("stream_options")) {
        fields.stream_options = { include_usage: true };
        added.push("stream_options");
      }
    }
    rest = JSON.stringify(fields);
  } catch (error) {
    if (RequestRejectedError.isInstance(error)) throw error;
    throw new RequestRejectedError(`the request can't be written as JSON: ${(error as Error).message}`, {
      code: "bad_request",
      cause: error,
    });
  }
  const head = `{"model":${JSON.stringify(source.model)},"messages":${messagesJson}`;
  return { json: rest === "{}" ? `${head}}` : `${head},${rest.slice(1)}`, added };
}
