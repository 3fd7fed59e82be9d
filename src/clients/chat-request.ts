import { checkThinking, THINKING_ACCEPTED } from "../config/thinking-value.js";
import { type ChatRequest, SAMPLING_KEYS, type Sampling, type Thinking } from "../domain/chat.js";
import { RequestRejectedError } from "../errors.js";
import type { Cancellation } from "../governance/cancellation.js";
import type { Ledger } from "../governance/operation.js";
import { isSignal, isTextOrAbsent, optionTrouble } from "./call-options.js";

/**
 * One call as it was when it was made: every field read once and checked, in one fixed shape, so that whatever the
 * caller builds or changes later neither slows nor alters the call.
 */
export interface CheckedRequest extends ChatRequest {
  readonly cancellation: Cancellation | undefined;
  /** The messages as JSON, made once and shared by the body, the estimate and the telemetry row. */
  readonly messagesJson: string;
  /** Some message holds a list of parts. */
  readonly hasParts: boolean;
  readonly images: number;
  /** Set by the client where it makes several calls of one request. */
  readonly ledger?: Ledger;
  readonly wholeDeadlineMs?: number;
}

/**
 * What a caller can get wrong before anything is sent. Throws RequestRejectedError that names the field.
 * With a `cancellation`, that stands for the caller's signal too.
 */
export function checkRequest(request: ChatRequest, operation: string, cancellation?: Cancellation): CheckedRequest {
  checkSignal(request, operation);
  refuseUnknown(request, operation);
  const { messages, model, sampling, tools, toolChoice, responseFormat, extraBody } = request;
  const { sessionId, parentCallId, tag, priority, failover, deadlineMs, stream, hedge } = request;
  const { cache, cacheSalt, cacheNamespace, onBreak, thinkingFallback } = request;
  const thinking = request.thinking === undefined ? undefined : checkedThinking(request.thinking, operation);
  if (thinkingFallback !== undefined && thinkingFallback !== "nearest") {
    reject(operation, 'thinkingFallback must be "nearest", or left out');
  }
  const hasParts = checkMessages(messages, operation);
  const parameters = sampling === undefined ? undefined : checkedSampling(sampling, operation);
  const trouble = optionTrouble({ sessionId, parentCallId, tag, priority, failover, deadlineMs });
  if (trouble !== undefined) reject(operation, trouble);
  if (!isTextOrAbsent(model)) reject(operation, "model must be a text");
  if (hedge !== undefined && typeof hedge !== "boolean") reject(operation, "hedge must be true or false");
  if (!isTextOrAbsent(cacheSalt)) reject(operation, "cacheSalt must be a text");
  if (!isTextOrAbsent(cacheNamespace)) reject(operation, "cacheNamespace must be a text");
  if (cache !== undefined && !CACHE_MODES.has(cache)) reject(operation, "cache must be use, bypass or refresh");
  if (onBreak !== undefined && !BREAK_MODES.has(onBreak)) reject(operation, "onBreak must be throw or restart");
  if (tools !== undefined && !Array.isArray(tools)) reject(operation, "tools must be an array");
  if (tools?.includes(undefined)) reject(operation, "tools has an empty place");
  if (extraBody !== undefined && (!isObject(extraBody) || Array.isArray(extraBody))) {
    reject(operation, "extraBody must be an object");
  }
  // The rest of the body must be JSON too; finding that out in an attempt would blame the source.
  if (tools !== undefined) stringify(tools, "tools", operation);
  if (extraBody !== undefined) stringify(extraBody, "extraBody", operation);
  if (responseFormat !== undefined) stringify(responseFormat, "responseFormat", operation);
  if (toolChoice !== undefined) stringify(toolChoice, "toolChoice", operation);
  return {
    messages,
    model,
    sampling: parameters,
    thinking,
    thinkingFallback,
    tools,
    toolChoice,
    responseFormat,
    extraBody,
    sessionId,
    parentCallId,
    tag,
    priority,
    failover,
    deadlineMs,
    signal: cancellation === undefined ? request.signal : undefined,
    cancellation,
    stream,
    hedge,
    cache,
    cacheSalt,
    cacheNamespace,
    onBreak,
    messagesJson: stringify(messages, "messages", operation),
    hasParts,
    images: hasParts ? imagesIn(messages) : 0,
  };
}

const IMAGE_PARTS: ReadonlySet<unknown> = new Set(["image_url", "input_image", "image"]);

function imagesIn(messages: ChatRequest["messages"]): number {
  let images = 0;
  for (const { content } of messages) {
    if (!Array.isArray(content)) continue;
    for (const part of content as readonly unknown[]) {
      if (isObject(part) && IMAGE_PARTS.has(part.type)) images += 1;
    }
  }
  return images;
}

function checkedThinking(given: unknown, operation: string): Thinking {
  const checked = checkThinking(given);
  if ("value" in checked) return checked.value;
  return reject(operation, `thinking ${checked.problem}; accepted: ${THINKING_ACCEPTED.ms}`);
}

const CACHE_MODES: ReadonlySet<string> = new Set(["use", "bypass", "refresh"]);
const BREAK_MODES: ReadonlySet<string> = new Set(["throw", "restart"]);

/** The request as a whole and its signal: what has to hold before anything else can be told. */
export function checkSignal(request: ChatRequest, operation: string): void {
  if (!isObject(request)) reject(operation, "the request must be an object with messages");
  if (request.signal !== undefined && !isSignal(request.signal)) reject(operation, "signal must be an AbortSignal");
}

function reject(operation: string, problem: string): never {
  throw new RequestRejectedError(problem, { code: "bad_request", operation });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

const KNOWN_FIELDS: ReadonlySet<string> = new Set<keyof ChatRequest>([
  "messages",
  "model",
  "sampling",
  "thinking",
  "thinkingFallback",
  "tools",
  "toolChoice",
  "responseFormat",
  "extraBody",
  "sessionId",
  "parentCallId",
  "tag",
  "priority",
  "failover",
  "deadlineMs",
  "signal",
  "stream",
  "hedge",
  "cache",
  "cacheSalt",
  "cacheNamespace",
  "onBreak",
]);

/** A misspelt field would be ignored without a word, and the answer would not be what was asked for. */
function refuseUnknown(request: ChatRequest, operation: string): void {
  for (const field in request) {
    if (KNOWN_FIELDS.has(field) || request[field as keyof ChatRequest] === undefined) continue;
    reject(
      operation,
      `unknown field ${JSON.stringify(field)}; parameters of the model go into sampling ` +
        "({ temperature, maxTokens, … }), fields of one provider into extraBody",
    );
  }
}

/** Returns whether some message holds a list of parts. */
function checkMessages(messages: unknown, operation: string): boolean {
  if (!Array.isArray(messages) || messages.length === 0)
    reject(operation, "messages must be an array with at least one message");
  const list = messages as unknown[];
  let hasParts = false;
  for (let index = 0; index < list.length; index += 1) {
    const message = list[index];
    if (!isObject(message) || typeof message.role !== "string" || message.role === "") {
      reject(operation, `messages[${index}] must be an object with a role`);
    }
    const { content } = message as Record<string, unknown>;
    if (!Array.isArray(content)) continue;
    // every() would leave out holes, and go through all of them.
    const isWrong = content.findIndex((part) => !isObject(part)) >= 0;
    if (isWrong) reject(operation, `messages[${index}].content must be a text or a list of parts`);
    hasParts = true;
  }
  return hasParts;
}

const PARAMETERS: ReadonlySet<string> = new Set(SAMPLING_KEYS);

let usual: Sampling = Object.freeze({});

/**
 * A copy, since the caller may change theirs. Parameters that equal those of the call before are given as the same
 * object, which nobody can change: they need no second check, and what is made of them is made once.
 */
function checkedSampling(sampling: Sampling, operation: string): Sampling {
  if (areUsual(sampling)) return usual;
  checkSampling(sampling, operation);
  const copy = { ...sampling };
  if (!Object.values(copy).every(isPlainValue)) return copy;
  usual = Object.freeze(copy);
  return copy;
}

function areUsual(sampling: unknown): boolean {
  if (!isObject(sampling) || Array.isArray(sampling)) return false;
  let more = 0;
  for (const name in sampling) {
    const value = sampling[name];
    if (!isPlainValue(value) || value !== usual[name as keyof Sampling]) return false;
    more += 1;
  }
  for (const _ in usual) more -= 1;
  return more === 0;
}

function isPlainValue(value: unknown): boolean {
  return typeof value === "number" || typeof value === "boolean" || typeof value === "string";
}

function checkSampling(sampling: unknown, operation: string): void {
  if (!isObject(sampling) || Array.isArray(sampling)) reject(operation, "sampling must be an object");
  for (const name in sampling as Record<string, unknown>) {
    const value = (sampling as Record<string, unknown>)[name];
    if (value !== undefined && !PARAMETERS.has(name)) {
      reject(
        operation,
        `unknown parameter sampling.${name}; known: ${[...PARAMETERS].join(", ")}; others go into extraBody`,
      );
    }
    if (typeof value === "number") {
      if (!Number.isFinite(value)) reject(operation, `sampling.${name} must be a finite number`);
    } else if (value !== undefined && typeof value !== "boolean") {
      stringify(value, `sampling.${name}`, operation);
    }
  }
  for (const name of ["maxTokens", "n"] as const) {
    const value = (sampling as Record<string, unknown>)[name];
    if (value !== undefined && !(typeof value === "number" && value > 0)) {
      reject(operation, `sampling.${name} must be a number above 0`);
    }
  }
}

function stringify(value: unknown, field: string, operation: string): string {
  let json: unknown;
  try {
    json = JSON.stringify(value);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const reason = error instanceof RangeError ? "it is nested too deeply" : text.split("\n", 1)[0];
    return reject(operation, `${field} can't be written as JSON: ${reason}`);
  }
  return typeof json === "string" ? json : reject(operation, `${field} can't be written as JSON`);
}
