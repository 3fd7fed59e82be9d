import type { ChatRequest, Sampling } from "../../domain/chat.js";
import type { ParameterNames } from "../../domain/profile.js";
import type { SourceConfig } from "../../domain/source.js";
import { removeThinking } from "../../domain/vendor-thinking.js";
import { RequestRejectedError } from "../../errors.js";
import { thinkingFields } from "./thinking-fields.js";

/** Builds the wire body. The caller's objects are read, never changed. */

type Fields = Record<string, unknown>;

const WIRE_NAMES: ReadonlyMap<string, string> = new Map<keyof Sampling, string>([
  ["temperature", "temperature"],
  ["topP", "top_p"],
  ["topK", "top_k"],
  ["minP", "min_p"],
  ["maxTokens", "max_tokens"],
  ["stop", "stop"],
  ["seed", "seed"],
  ["presencePenalty", "presence_penalty"],
  ["frequencyPenalty", "frequency_penalty"],
  ["logitBias", "logit_bias"],
  ["logprobs", "logprobs"],
  ["topLogprobs", "top_logprobs"],
  ["n", "n"],
]);

/** Fields that the gateway itself decides; in `extraBody` they would contradict it. */
const RESERVED = ["model", "messages", "stream"] as const;
/** Deeper values are an attack on the serialiser, not a setting. */
const MAX_DEPTH = 64;

export interface WireBody {
  readonly json: string;
  /** Names of the fields that WE added, which a source may refuse. */
  readonly added: readonly string[];
  readonly streamed: boolean;
  /** The name that `sampling.maxTokens` went by; undefined without one. */
  readonly limitName: string | undefined;
  /** Top-level fields that ask for thinking as the call wishes it. */
  readonly thinking: readonly string[];
}

/** What is known of a source beyond its configuration. */
export interface WireMemory {
  /** Fields of ours that it has refused. */
  readonly dropped: ReadonlySet<string>;
  /** Wire names by its profile and by what it has said. */
  readonly names: ParameterNames;
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

function layCallFields(fields: Fields, request: ChatRequest, names: ParameterNames): void {
  const { sampling } = request;
  if (sampling !== undefined) {
    for (const [name, usual] of WIRE_NAMES as ReadonlyMap<keyof Sampling, string>) {
      const value = sampling[name];
      if (value !== undefined) fields[names[name] ?? usual] = value;
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

function wireFields(
  request: ChatRequest,
  source: SourceConfig,
  names: ParameterNames,
  thinking: Readonly<Fields> | undefined,
): Fields {
  const fields: Fields = {};
  refuseReserved(source.extraBody, `EXTRA_BODY of ${source.name}`);
  layOver(fields, source.extraBody);
  if (thinking !== undefined) {
    removeThinking(fields);
    layOver(fields, thinking);
  }
  layCallFields(fields, request, names);
  if (request.extraBody !== undefined) {
    refuseReserved(request.extraBody, "extraBody");
    layOver(fields, request.extraBody);
  }
  withoutOwnSwitches(fields);
  return fields;
}

function hasFields(fields: Readonly<Fields>): boolean {
  for (const _ in fields) return true;
  return false;
}

/** Nearly every call has nothing but messages and sampling; its body needs no object to be laid out and serialised. */
function isPlain(request: ChatRequest, source: SourceConfig): boolean {
  const { tools, toolChoice, responseFormat, extraBody, thinking } = request;
  if (thinking !== undefined || source.thinking !== undefined) return false;
  if (toolChoice !== undefined || responseFormat !== undefined || extraBody !== undefined) return false;
  return (tools === undefined || tools.length === 0) && !hasFields(source.extraBody);
}

let usual: Sampling | undefined;
let usualNames: ParameterNames | undefined;
let usualText = "";

/** Nearly every call of a program has the parameters of the one before; they are the same object then, which never changes. */
function samplingText(sampling: Sampling | undefined, names: ParameterNames): string {
  if (sampling === undefined) return "";
  if (sampling === usual && names === usualNames) return usualText;
  const text = writtenSampling(sampling, names);
  if (Object.isFrozen(sampling)) {
    usual = sampling;
    usualNames = names;
    usualText = text;
  }
  return text;
}

function writtenSampling(sampling: Sampling, names: ParameterNames): string {
  let text = "";
  for (const name in sampling) {
    const usual = WIRE_NAMES.get(name);
    const value = sampling[name as keyof Sampling];
    if (usual === undefined || value === undefined) continue;
    const json = typeof value === "number" ? String(value) : JSON.stringify(value);
    text += `,"${names[name as keyof Sampling] ?? usual}":${json}`;
  }
  return text;
}

const modelTexts = new Map<string, string>();

/** Models come from the configuration: they are few. */
function modelText(model: string): string {
  let text = modelTexts.get(model);
  if (text === undefined) {
    text = JSON.stringify(model);
    modelTexts.set(model, text);
  }
  return text;
}

const NONE_ADDED: readonly string[] = [];
const USAGE_ADDED: readonly string[] = ["stream_options"];

/**
 * The body of one attempt. `messagesJson` is used as it is, so that the messages are serialised once per call.
 * Precedence: call > source EXTRA_BODY > the source's default of thinking.
 * Throws RequestRejectedError when the call's fields can't be serialised or its thinking can't be translated.
 */
export function buildWireBody(
  request: ChatRequest,
  messagesJson: string,
  stream: boolean,
  source: SourceConfig,
  { dropped, names }: WireMemory,
): WireBody {
  const ownUsage = request.extraBody?.stream_options ?? source.extraBody.stream_options;
  const asksUsage = stream && source.profile.streamOptions && ownUsage === undefined && !dropped.has("stream_options");
  const added = asksUsage ? USAGE_ADDED : NONE_ADDED;
  const limitName = request.sampling?.maxTokens === undefined ? undefined : (names.maxTokens ?? "max_tokens");
  const head = `{"model":${modelText(source.model)},"messages":${messagesJson}`;
  if (isPlain(request, source)) {
    const text = samplingText(request.sampling, names);
    const streaming = asksUsage ? ',"stream":true,"stream_options":{"include_usage":true}}' : ',"stream":true}';
    return {
      json: `${head}${text}${stream ? streaming : "}"}`,
      added,
      streamed: stream,
      limitName,
      thinking: NONE_ADDED,
    };
  }
  try {
    const thinking = thinkingFields(request, source);
    const fields = wireFields(request, source, names, thinking);
    if (stream) fields.stream = true;
    if (asksUsage) fields.stream_options ??= { include_usage: true };
    const json = JSON.stringify(fields);
    const rest = json === "{}" ? "" : `,${json.slice(1, -1)}`;
    const asked = thinking === undefined ? NONE_ADDED : Object.keys(thinking);
    return { json: `${head}${rest}}`, added, streamed: stream, limitName, thinking: asked };
  } catch (error) {
    if (RequestRejectedError.isInstance(error)) throw error;
    throw new RequestRejectedError(`the request can't be written as JSON: ${(error as Error).message}`, {
      code: "bad_request",
      cause: error,
    });
  }
}
