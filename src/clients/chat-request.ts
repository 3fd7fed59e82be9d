import type { ChatRequest } from "../domain/chat.js";
import { RequestRejectedError } from "../errors.js";

/**
 * What a caller can get wrong before anything is sent. Throws RequestRejectedError that names the field;
 * returns the messages as JSON, made once and shared by the body, the estimate and the telemetry row.
 */
export function checkRequest(request: ChatRequest, operation: string): string {
  const reject = (problem: string): never => {
    throw new RequestRejectedError(problem, { code: "bad_request", operation });
  };
  if (typeof request !== "object" || request === null) reject("the request must be an object with messages");
  refuseUnknown(request, reject);
  const { messages, sampling } = request;
  if (!Array.isArray(messages) || messages.length === 0) reject("messages must be an array with at least one message");
  for (let index = 0; index < messages.length; index += 1) {
    const message: unknown = messages[index];
    const role = typeof message === "object" && message !== null ? (message as { role?: unknown }).role : undefined;
    if (typeof role !== "string" || role === "") reject(`messages[${index}] must be an object with a role`);
  }
  for (const name in sampling) {
    const value: unknown = sampling[name as keyof typeof sampling];
    if (typeof value === "number" && !Number.isFinite(value)) reject(`sampling.${name} must be a finite number`);
  }
  if (!isNumberOrAbsent(request.priority)) reject("priority must be a number");
  if (!isNumberOrAbsent(request.deadlineMs)) reject("deadlineMs must be a number");
  if (request.deadlineMs !== undefined && request.deadlineMs < 0) reject("deadlineMs must not be negative");
  checkSendable(request, reject);
  return stringify(messages, "messages", reject);
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
function refuseUnknown(request: ChatRequest, reject: (problem: string) => never): void {
  for (const field in request) {
    if (KNOWN_FIELDS.has(field) || request[field as keyof ChatRequest] === undefined) continue;
    if (field === "thinking")
      reject('"thinking" is not available in this version; put the provider\'s own field into extraBody');
    reject(
      `unknown field ${JSON.stringify(field)}; parameters of the model go into sampling ` +
        "({ temperature, maxTokens, … }), fields of one provider into extraBody",
    );
  }
}

function isNumberOrAbsent(value: unknown): boolean {
  return value === undefined || (typeof value === "number" && !Number.isNaN(value));
}

/** The rest of the body must be JSON too; finding that out in an attempt would blame the source. */
function checkSendable(request: ChatRequest, reject: (problem: string) => never): void {
  if (request.tools !== undefined) stringify(request.tools, "tools", reject);
  if (request.extraBody !== undefined) stringify(request.extraBody, "extraBody", reject);
  if (request.responseFormat !== undefined) stringify(request.responseFormat, "responseFormat", reject);
  if (request.toolChoice !== undefined) stringify(request.toolChoice, "toolChoice", reject);
}

function stringify(value: unknown, field: string, reject: (problem: string) => never): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    const reason = error instanceof RangeError ? "it is nested too deeply" : (error as Error).message;
    return reject(`${field} can't be written as JSON: ${reason}`);
  }
}
