import type { CallRecord, RecordOutcome } from "../domain/record.js";
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

/** Telemetry rows of the loop (spec 05). Writing never throws; a returned promise is the wait `durability: "sync"` asks for. */

export function recordAnswer(attempt: Attempt, facts: ReplyFacts, costNanos: bigint | null): Promise<void> | undefined {
  const { usage } = facts;
  return write(attempt.call, {
    ...attemptColumns(attempt),
    response: facts.response,
    thinking: facts.thinking,
    ...usageColumns(usage),
    latencyMs: facts.latencyMs,
    ttftMs: facts.ttftMs,
    costNanos,
    error: null,
    modelReported: facts.modelReported,
    outcome: "success",
    statusCode: facts.statusCode,
    finishReason: facts.finishReason,
    final: true,
  });
}

export function recordFailure(
  attempt: Attempt,
  error: unknown,
  outcome: RecordOutcome,
  partial: PartialFacts | null,
  final: boolean,
): Promise<void> | undefined {
  const { call } = attempt;
  const known = PolyGatewayError.isInstance(error) ? error : null;
  return write(call, {
    ...attemptColumns(attempt),
    response: partial?.response ?? null,
    thinking: partial?.thinking ?? null,
    ...usageColumns(partial?.usage ?? null),
    latencyMs: call.environment.runtime.now() - attempt.startedMs,
    ttftMs: attempt.firstTokenMs,
    costNanos: partial === null ? null : costOf(attempt, partial.usage),
    error: outcome === "cancelled" ? `cancelled: ${textOf(error)}` : textOf(error),
    modelReported: null,
    outcome,
    statusCode: known?.statusCode ?? null,
    finishReason: null,
    final,
    ...(known === null ? {} : { errorCode: known.code }),
  });
}

/** The row of a call that ends without, or after, its attempts. */
export function recordTerminal(call: Call, error: unknown): Promise<void> | undefined {
  const known = PolyGatewayError.isInstance(error) ? error : null;
  return write(call, {
    ...callColumns(call),
    callId: call.environment.runtime.uuid(),
    ...call.operation.describeRequest(null),
    provider: null,
    sourceName: null,
    model: null,
    response: null,
    thinking: null,
    ...usageColumns(null),
    latencyMs: call.environment.runtime.now() - call.startedMs,
    ttftMs: null,
    costNanos: null,
    error: textOf(error),
    modelReported: null,
    outcome: terminalOutcome(error),
    attempt: null,
    statusCode: known?.statusCode ?? null,
    finishReason: null,
    waitedMs: null,
    route: GatewayUnavailableError.isInstance(error) ? routeOf(Object.entries(error.perSourceReasons)) : null,
    final: true,
    ...(known === null ? {} : { errorCode: known.code }),
  });
}

function terminalOutcome(error: unknown): RecordOutcome {
  if (GatewayUnavailableError.isInstance(error)) return "unavailable";
  if (SourceNotConfiguredError.isInstance(error)) return "misconfigured";
  if (RequestRejectedError.isInstance(error)) return "rejected";
  if (ResultInvalidError.isInstance(error)) return "invalid";
  return PolyGatewayError.isInstance(error) ? "unavailable" : "cancelled";
}

export function costOf(attempt: Attempt, usage: ReplyFacts["usage"]): bigint | null {
  return attempt.call.environment.pricing?.costNanos(attempt.source.model, usage) ?? null;
}

function write(call: Call, record: CallRecord): Promise<void> | undefined {
  if (record.final) call.finalRowWritten = true;
  return call.environment.telemetry?.record(record);
}

function callColumns(call: Call) {
  return {
    sessionId: call.options.sessionId ?? null,
    parentCallId: call.options.parentCallId ?? null,
    scope: call.environment.config.scope,
    operation: call.kind,
    requestId: call.requestId,
    worker: call.environment.telemetry?.worker ?? "",
  };
}

function attemptColumns(attempt: Attempt) {
  const { call, source, grant } = attempt;
  return {
    ...callColumns(call),
    callId: attempt.callId,
    provider: source.provider,
    sourceName: source.name,
    model: source.model,
    ...call.operation.describeRequest(source),
    attempt: attempt.number,
    waitedMs: attempt.waitedMs,
    route:
      grant.passedOver.length === 0
        ? null
        : routeOf(grant.passedOver.map((passed) => [passed.source, { reason: passed.reason, waitMs: passed.waitMs }])),
  };
}

function routeOf(entries: readonly (readonly [string, { reason: string; waitMs: number }])[]): string | null {
  if (entries.length === 0) return null;
  return JSON.stringify(entries.map(([source, { reason, waitMs }]) => ({ source, reason, waitMs: Math.ceil(waitMs) })));
}

function usageColumns(usage: ReplyFacts["usage"] | null) {
  return {
    promptTokens: usage?.promptTokens ?? null,
    completionTokens: usage?.completionTokens ?? null,
    usageSource: usage?.source ?? null,
    cachedPromptTokens: usage?.cachedPromptTokens ?? null,
    reasoningTokens: usage?.reasoningTokens ?? null,
  };
}
