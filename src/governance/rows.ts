import type { CallRecord, RecordOutcome } from "../domain/record.js";
import type { SourceConfig } from "../domain/source.js";
import type { BilledUsage, Usage } from "../domain/usage.js";
import {
  GatewayUnavailableError,
  PolyGatewayError,
  RequestRejectedError,
  ResultInvalidError,
  SourceNotConfiguredError,
} from "../errors.js";
import type { Attempt } from "./attempt.js";
import { textOf } from "./backend-errors.js";
import type { Call } from "./call.js";
import type { PartialFacts, ReplyFacts } from "./operation.js";
import { attemptRoute, terminalRoute } from "./route.js";

/**
 * Telemetry rows of the loop (spec 05). Writing never throws; a returned promise is the wait `durability: "sync"` asks
 * for. A row is one literal that is filled in: on the hot path, joining parts costs more than the whole admission.
 */
type Row = { -readonly [Column in keyof CallRecord]: CallRecord[Column] };

export function recordAnswer(attempt: Attempt, facts: ReplyFacts, costNanos: bigint | null): Promise<void> | undefined {
  const row = attemptRow(attempt, "success");
  setUsage(row, facts.usage);
  row.response = facts.response;
  row.thinking = facts.thinking;
  row.latencyMs = facts.latencyMs;
  row.ttftMs = facts.ttftMs;
  row.costNanos = costNanos;
  row.modelReported = facts.modelReported;
  row.statusCode = facts.statusCode;
  row.finishReason = facts.finishReason;
  row.final = true;
  attempt.call.options.ledger?.book(facts.usage, costNanos);
  return write(attempt.call, row);
}

export function recordFailure(
  attempt: Attempt,
  error: unknown,
  outcome: RecordOutcome,
  partial: PartialFacts | null,
  final: boolean,
): Promise<void> | undefined {
  const row = attemptRow(attempt, outcome);
  if (partial !== null) {
    setUsage(row, partial.usage);
    row.response = partial.response;
    row.thinking = partial.thinking;
    row.costNanos = costOf(attempt, partial.usage);
    attempt.call.options.ledger?.book(partial.usage, row.costNanos);
  }
  row.latencyMs = attempt.runtime.now() - attempt.startedMs;
  row.ttftMs = attempt.firstTokenMs;
  row.error = outcome === "cancelled" ? `cancelled: ${textOf(error)}` : textOf(error);
  row.final = final;
  if (outcome !== "cancelled") setCode(row, error);
  return write(attempt.call, row);
}

/** The row of a call that ends without, or after, its attempts. */
export function recordTerminal(call: Call, error: unknown, isCallersReason: boolean): Promise<void> | undefined {
  const { runtime } = call.environment;
  const row = emptyRow(call, runtime.uuid(), isCallersReason ? "cancelled" : terminalOutcome(error), null);
  row.latencyMs = runtime.now() - call.startedMs;
  row.error = isCallersReason ? `cancelled: ${textOf(error)}` : textOf(error);
  row.final = true;
  row.route = terminalRoute(call, error, isCallersReason);
  if (!isCallersReason) setCode(row, error);
  return write(call, row);
}

/** What is told of an answer that this call didn't send for. */
type HitColumns = Pick<
  CallRecord,
  "model" | "provider" | "modelReported" | "finishReason" | "response" | "thinking" | "route"
>;

/** The row of a call that was answered without a send of its own: it has no tokens, and it cost nothing. */
export function recordHit(
  call: Call,
  callId: string,
  answer: HitColumns,
  latencyMs: number,
): Promise<void> | undefined {
  const row = emptyRow(call, callId, "cache_hit", null);
  row.provider = answer.provider;
  row.model = answer.model;
  row.response = answer.response;
  row.thinking = answer.thinking;
  row.route = answer.route;
  row.latencyMs = latencyMs;
  row.costNanos = 0n;
  row.modelReported = answer.modelReported;
  row.finishReason = answer.finishReason;
  row.final = true;
  return write(call, row);
}

function terminalOutcome(error: unknown): RecordOutcome {
  if (GatewayUnavailableError.isInstance(error)) return "unavailable";
  if (SourceNotConfiguredError.isInstance(error)) return "misconfigured";
  if (RequestRejectedError.isInstance(error)) return "rejected";
  if (ResultInvalidError.isInstance(error)) return "invalid";
  return PolyGatewayError.isInstance(error) ? "unavailable" : "cancelled";
}

export function costOf(attempt: Attempt, usage: BilledUsage): bigint | null {
  const { pricing, warn } = attempt.call.environment;
  if (pricing === null) return null;
  try {
    const { images = 0 } = attempt.call.operation;
    const billed = images === 0 ? usage : { ...usage, images };
    return pricing.costNanos(attempt.source.model, billed, attempt.source.provider);
  } catch (error) {
    warn(
      "pricing",
      "failure",
      `the price table failed for ${attempt.source.model} (${textOf(error)}); its cost stays unknown`,
    );
    return null;
  }
}

function write(call: Call, row: CallRecord): Promise<void> | undefined {
  if (row.final) call.finalRowWritten = true;
  return call.environment.telemetry?.record(row);
}

function emptyRow(call: Call, callId: string, outcome: RecordOutcome, source: SourceConfig | null): Row {
  const { messages, sampling } = call.operation.describeRequest(source);
  return {
    callId,
    sessionId: call.options.sessionId ?? null,
    parentCallId: call.options.parentCallId ?? null,
    scope: call.environment.config.scope,
    operation: call.kind,
    provider: source === null ? null : source.provider,
    sourceName: source === null ? null : source.name,
    model: source === null ? null : source.model,
    messages,
    response: null,
    thinking: null,
    promptTokens: null,
    completionTokens: null,
    usageSource: null,
    latencyMs: null,
    ttftMs: null,
    costNanos: null,
    error: null,
    cachedPromptTokens: null,
    modelReported: null,
    sampling,
    reasoningTokens: null,
    outcome,
    attempt: null,
    requestId: call.requestId,
    statusCode: null,
    finishReason: null,
    worker: call.environment.telemetry?.worker ?? "",
    waitedMs: null,
    route: null,
    final: false,
    errorCode: undefined,
  };
}

function attemptRow(attempt: Attempt, outcome: RecordOutcome): Row {
  const { call, grant } = attempt;
  const row = emptyRow(call, attempt.callId, outcome, attempt.source);
  row.attempt = attempt.number;
  row.waitedMs = attempt.waitedMs;
  const isPlain = grant.passedOver.length === 0 && attempt.waits.length === 0 && attempt.beside === null;
  if (!isPlain || call.deadHere !== null) row.route = attemptRoute(attempt);
  return row;
}

function setUsage(row: Row, usage: Usage): void {
  row.promptTokens = usage.promptTokens;
  row.completionTokens = usage.completionTokens;
  row.usageSource = usage.source;
  row.cachedPromptTokens = usage.cachedPromptTokens;
  row.reasoningTokens = usage.reasoningTokens;
}

function setCode(row: Row, error: unknown): void {
  if (!PolyGatewayError.isInstance(error)) return;
  row.statusCode = error.statusCode ?? null;
  row.errorCode = error.code;
}
