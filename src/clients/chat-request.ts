import type { ChatRequest } from "../domain/chat.js";
import { RequestRejectedError } from "../errors.js";

type Reject = (problem: string) => never;

/**
 * What a caller can get wrong before anything is sent. Throws RequestRejectedError that names the field;
 * returns the messages as JSON, made once and shared by the body, the estimate and the telemetry row.
 */
export function checkRequest(request: ChatRequest, operation: string): string {
  const reject = rejector(operation);
  checkSignal(request, operation);
  refuseUnknown(request, reject);
  checkMessages(request.messages, reject);
  if (request.sampling !== undefined) checkSampling(request.sampling, reject);
  if (!isNumberOrAbsent(request.priority)) reject("priority must be a number");
  if (!isNumberOrAbsent(request.deadlineMs)) reject("deadlineMs must be a number");
  if (request.deadlineMs !== undefined && request.deadlineMs < 0) reject("deadlineMs must not be negative");
  checkTexts(request, reject);
  checkSendable(request, reject);
  return stringify(request.messages, "messages", reject);
}

/** The request as a whole and its signal: what has to hold before anything else can be told. */
export function checkSignal(request: ChatRequest, operation: string): void {
  const reject = rejector(operation);
  if (!isObject(request)) reject("the request must be an object with messages");
  const signal: unknown = request.signal;
  if (signal === undefined) return;
  const isSignal =
    isObject(signal) && typeof signal.aborted === "boolean" && typeof signal.addEventListener === "function";
  if (!isSignal) reject("signal must be an AbortSignal");
}

function rejector(operation: string): Reject {
  return (problem) => {
    throw new RequestRejectedError(problem, { code: "bad_request", operation });
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

const KNOWN_FIELDS: ReadonlySet<string> = new Set<keyof ChatRequest | "cache" | "cacheSalt" | "cacheNamespace">([
  "messages",
  "model",
  "sampling",
  "tools",
  "toolChoice",
  "responseFormat",
  "extraBody",
  "sessionId",
  "parentCallId",
  "priority",
  "failover",
  "deadlineMs",
  "signal",
  "stream",
  // Nothing is cached yet, so every wish about the cache is fulfilled.
  "cache",
  "cacheSalt",
  "cacheNamespace",
]);

/** A misspelt field would be ignored without a word, and the answer would not be what was asked for. */
function refuseUnknown(request: ChatRequest, reject: Reject): void {
  for (const field in request) {
    if (KNOWN_FIELDS.has(field) || request[field as keyof ChatRequest] === undefined) continue;
    if (field === "thinking") {
      reject('"thinking" is not available in this version; put the provider\'s own field into extraBody');
    }
    reject(
      `unknown field ${JSON.stringify(field)}; parameters of the model go into sampling ` +
        "({ temperature, maxTokens, … }), fields of one provider into extraBody",
    );
  }
}

function checkMessages(messages: unknown, reject: Reject): void {
  if (!Array.isArray(messages) || messages.length === 0) reject("messages must be an array with at least one message");
  const list = messages as unknown[];
  for (let index = 0; index < list.length; index += 1) {
    const message = list[index];
    if (!isObject(message) || typeof message.role !== "string" || message.role === "") {
      reject(`messages[${index}] must be an object with a role`);
    }
    const { content } = message as Record<string, unknown>;
    if (Array.isArray(content) && !content.every(isObject)) {
      reject(`messages[${index}].content must be a text or a list of parts`);
    }
  }
}

function checkSampling(sampling: unknown, reject: Reject): void {
  if (!isObject(sampling) || Array.isArray(sampling)) reject("sampling must be an object");
  for (const name in sampling as Record<string, unknown>) {
    const value = (sampling as Record<string, unknown>)[name];
    if (typeof value === "number") {
      if (!Number.isFinite(value)) reject(`sampling.${name} must be a finite number`);
    } else if (value !== undefined && typeof value !== "boolean") {
      stringify(value, `sampling.${name}`, reject);
    }
  }
  for (const name of ["maxTokens", "n"] as const) {
    const value = (sampling as Record<string, unknown>)[name];
    if (value !== undefined && !(typeof value === "number" && value > 0)) {
      reject(`sampling.${name} must be a number above 0`);
    }
  }
}

function checkTexts(request: ChatRequest, reject: Reject): void {
  for (const name of ["model", "sessionId", "parentCallId"] as const) {
    const value: unknown = request[name];
    if (value !== undefined && typeof value !== "string") reject(`${name} must be a text`);
  }
  if (request.tools !== undefined && !Array.isArray(request.tools)) reject("tools must be an array");
  const extra: unknown = request.extraBody;
  if (extra !== undefined && (!isObject(extra) || Array.isArray(extra))) reject("extraBody must be an object");
}

function isNumberOrAbsent(value: unknown): boolean {
  return value === undefined || (typeof value === "number" && !Number.isNaN(value));
}

/** The rest of the body must be JSON too; finding that out in an attempt would blame the source. */
function checkSendable(request: ChatRequest, reject: Reject): void {
  if (request.tools !== undefined) stringify(request.tools, "tools", reject);
  if (request.extraBody !== undefined) stringify(request.extraBody, "extraBody", reject);
  if (request.responseFormat !== undefined) stringify(request.responseFormat, "responseFormat", reject);
  if (request.toolChoice !== undefined) stringify(request.toolChoice, "toolChoice", reject);
}

function stringify(value: unknown, field: string, reject: Reject): string {
  let json: unknown;
  try {
    json = JSON.stringify(value);
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const reason = error instanceof RangeError ? "it is nested too deeply" : text.split("\n", 1)[0];
    return reject(`${field} can't be written as JSON: ${reason}`);
  }
  return typeof json === "string" ? json : reject(`${field} can't be written as JSON`);
}
