import { existsSync } from "node:fs";
import { readLines } from "./json-lines.js";

/** One answer of a batch's OUT file, as far as telemetry is concerned. */
export interface OutAnswer {
  readonly callId: string;
  /** null = the line says nothing about money. */
  readonly cost: number | null;
  /** Columns of the row this answer should have. */
  readonly columns: Readonly<Record<string, unknown>>;
}

const ID_PREFIX = "batch_req_";
const HTTP_OK = 200;

/** Answers of an OUT file (spec 08), one at a time; failure lines and torn lines are passed over. */
export async function* readOutAnswers(path: string): AsyncGenerator<OutAnswer> {
  if (!existsSync(path)) return;
  for await (const line of readLines(path)) {
    const answer = parseOutAnswer(line);
    if (answer !== null) yield answer;
  }
}

type Json = Record<string, unknown>;

export function parseOutAnswer(line: string): OutAnswer | null {
  const parsed = parse(line);
  const response = objectIn(parsed, "response");
  if (typeof parsed?.id !== "string" || !parsed.id.startsWith(ID_PREFIX)) return null;
  if (response?.status_code !== HTTP_OK) return null;
  const pgw = objectIn(parsed, "pgw");
  const cost = typeof pgw?.cost === "number" ? pgw.cost : null;
  const callId = parsed.id.slice(ID_PREFIX.length);
  const lineId = typeof parsed.custom_id === "string" ? parsed.custom_id : undefined;
  const columns = {
    ...bodyColumns(objectIn(response, "body")),
    parent_call_id: lineId,
    latency_ms: pgw?.latencyMs,
    cost,
  };
  return { callId, cost, columns };
}

function bodyColumns(body: Json | undefined): Json {
  const usage = objectIn(body, "usage");
  const choice = Array.isArray(body?.choices) ? (body.choices[0] as Json | undefined) : undefined;
  const message = objectIn(choice, "message");
  return {
    response: message?.content,
    thinking: message?.reasoning_content,
    prompt_tokens: usage?.prompt_tokens,
    completion_tokens: usage?.completion_tokens,
    cached_prompt_tokens: objectIn(usage, "prompt_tokens_details")?.cached_tokens,
    reasoning_tokens: objectIn(usage, "completion_tokens_details")?.reasoning_tokens,
    model_reported: body?.model,
    finish_reason: choice?.finish_reason,
  };
}

function parse(line: string): Json | undefined {
  try {
    const parsed: unknown = JSON.parse(line);
    return typeof parsed === "object" && parsed !== null ? (parsed as Json) : undefined;
  } catch {
    return undefined;
  }
}

function objectIn(parent: Json | undefined, key: string): Json | undefined {
  const value = parent?.[key];
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : undefined;
}
