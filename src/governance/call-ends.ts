import { countOf } from "../domain/count-of.js";
import { msText } from "../domain/ms-text.js";
import type { SourceConfig } from "../domain/source.js";
import type { Passed, Refusal, SourceSnapshot } from "../domain/tick.js";
import {
  AllSourcesExhausted,
  CircuitOpenError,
  type GatewayUnavailableError,
  RequestRejectedError,
  type SourceReasonDetail,
  type UnavailableReason,
} from "../errors.js";
import type { Call } from "./call.js";

/** The scope-level ends of a call (spec 02 §1: reasons and their `retryAfterMs`). */

const STALLED_FLOOR_MS = 1_000;

interface EndDetails {
  readonly retryAfterMs: number;
  readonly sources: Record<string, SourceReasonDetail>;
  readonly text: string;
}

export function exhausted(call: Call, reason: UnavailableReason, details: EndDetails): AllSourcesExhausted {
  const { scope } = call.environment.config;
  return new AllSourcesExhausted(`scope ${scope}: ${details.text}`, {
    scope,
    reason,
    operation: call.kind,
    retryAfterMs: Math.ceil(details.retryAfterMs),
    perSourceReasons: details.sources,
    ...(call.lastFailure === null ? {} : { cause: call.lastFailure }),
  });
}

/** Reasons by source from a refusal, completed by what this call itself saw. */
export function reasonsFrom(call: Call, passed: readonly Passed[]): Record<string, SourceReasonDetail> {
  const reasons: Record<string, SourceReasonDetail> = {};
  for (const { source, reason, waitMs, lastError } of passed) {
    reasons[source] = { reason, waitMs: Math.ceil(waitMs), ...(lastError === undefined ? {} : { lastError }) };
  }
  for (const [name, error] of call.deadHere ?? []) {
    reasons[name] ??= { reason: "dead", waitMs: 0, lastError: lastErrorOf(error) };
  }
  const incapable = call.operation.incapable?.reasons;
  for (const name in incapable) reasons[name] = incapable[name]!;
  return reasons;
}

/** Reasons by source from a snapshot: for ends that no refusal explains. */
export function reasonsFromSnapshot(
  call: Call,
  sources: readonly SourceSnapshot[],
): Record<string, SourceReasonDetail> {
  const passed: Passed[] = [];
  for (const source of sources) {
    if (!call.operation.candidates.includes(source.name)) continue;
    const lastError = source.lastError === null ? {} : { lastError: source.lastError };
    passed.push({ source: source.name, ...standing(call, source), ...lastError });
  }
  return reasonsFrom(call, passed);
}

function standing(call: Call, source: SourceSnapshot): Pick<Passed, "reason" | "waitMs"> {
  if (source.dead) return { reason: "dead", waitMs: source.openForMs };
  if (source.state === "open") return { reason: "breaker_open", waitMs: source.openForMs };
  if (source.state === "half_open") return { reason: "half_open", waitMs: 0 };
  if (source.coolingMs > 0) return { reason: "cooling", waitMs: source.coolingMs };
  if (call.limitedHere.includes(source.name)) return { reason: "rate_limited", waitMs: 0 };
  const code = source.lastError?.code ?? "";
  return { reason: code.includes("timeout") ? "timeout" : "transient", waitMs: 0 };
}

export function lastErrorOf(error: Error): { code: string; message: string } {
  const code = (error as { code?: unknown }).code;
  return { code: typeof code === "string" ? code : "upstream_error", message: error.message };
}

export function smallestWaitMs(reasons: Record<string, SourceReasonDetail>): number {
  const waits = Object.values(reasons).map((reason) => reason.waitMs);
  const positive = waits.filter((waitMs) => waitMs > 0);
  return positive.length === 0 ? 0 : Math.min(...positive);
}

/** Whose turn it is says nothing of the sources, nor does what is left of a deadline. */
const isOfSources = ({ kind }: Refusal): boolean => kind !== "fairness" && kind !== "deadline";

export const isAllDead = (refusal: Refusal): boolean =>
  isOfSources(refusal) && refusal.passedOver.every((passed) => passed.reason === "dead");

const BREAKER_REASONS: ReadonlySet<string> = new Set(["dead", "breaker_open", "half_open"]);

export const isAllOpen = (refusal: Refusal): boolean =>
  isOfSources(refusal) && refusal.passedOver.every((passed) => BREAKER_REASONS.has(passed.reason));

/** The error for a refusal after which the call does not wait. */
export function endByRefusal(call: Call, refusal: Refusal): GatewayUnavailableError | RequestRejectedError {
  const { scope, backpressure } = call.environment.config;
  const sources = reasonsFrom(call, refusal.passedOver);
  if (refusal.kind === "never") return tooLarge(call);
  if (refusal.kind === "deadline") return deadlineTooNear(call, sources);
  if (isAllDead(refusal)) {
    const text = "every source is dead (credential, quota, model or endpoint); see perSourceReasons";
    return exhausted(call, "all_sources_dead", { retryAfterMs: refusal.waitHintMs, sources, text });
  }
  if (isAllOpen(refusal) && backpressure.whenOpen === "fail") {
    if (call.attempts === 0) {
      return new CircuitOpenError(`scope ${scope}: the breaker of every source is open`, {
        scope,
        operation: call.kind,
        retryAfterMs: Math.ceil(refusal.waitHintMs),
        perSourceReasons: sources,
      });
    }
    const text = `no source is left after ${attemptsText(call)}`;
    return exhausted(call, "retry_exhausted", { retryAfterMs: refusal.waitHintMs, sources, text });
  }
  const retryAfterMs = Math.max(refusal.waitHintMs, backpressure.pollIntervalMs);
  const waitMs = Math.ceil(refusal.waitHintMs);
  const text =
    refusal.kind === "fairness"
      ? `it is not this call's turn before ${waitMs} ms: other workers go first, or the scope's retries are used up`
      : `no source is free before ${waitMs} ms (${refusal.gate ?? refusal.kind})`;
  return exhausted(call, "quota_exhausted", { retryAfterMs, sources, text });
}

/** Could this source let the call through within its limits, however long it waits? */
export function fits(call: Call, source: SourceConfig): boolean {
  const { global } = call.environment.config;
  if (source.tpm === 0 && global.tpm === 0) return true;
  const tokens = source.estTokens ?? call.operation.estTokens;
  return (source.tpm === 0 || tokens <= source.tpm) && (global.tpm === 0 || tokens <= global.tpm);
}

export function tooLarge(call: Call): RequestRejectedError {
  const { estTokens } = call.operation;
  return new RequestRejectedError(
    `the call would reserve ${countOf(estTokens, "token")}, more than any source's TPM limit lets through in a minute; ` +
      "shorten the prompt, lower maxTokens or raise TPM",
    { code: "request_too_large_for_tier", operation: call.kind, details: { estTokens } },
  );
}

export function stalled(call: Call, nowMs: number, snapshot: readonly SourceSnapshot[]): AllSourcesExhausted {
  const sources = { ...reasonsFromSnapshot(call, snapshot), ...waitedFor(call) };
  const stalledS = Math.round(call.clock.stalledMs(nowMs) / 1_000);
  return exhausted(call, "stalled", {
    retryAfterMs: Math.max(smallestWaitMs(sources), STALLED_FLOOR_MS),
    sources,
    text: `no progress for ${stalledS} s, neither in this call nor anywhere in the scope`,
  });
}

function deadlineText(call: Call): string {
  const { wholeDeadlineMs, deadlineMs } = call.options;
  return msText((wholeDeadlineMs ?? deadlineMs ?? call.environment.config.deadlineMs)!);
}

export function deadlinePassed(call: Call): AllSourcesExhausted {
  const text = `the deadline of ${deadlineText(call)} passed after ${attemptsText(call)}`;
  return exhausted(call, "deadline_exceeded", { retryAfterMs: 0, sources: waitedFor(call), text });
}

/** Nothing is sent that could not be answered in time. */
function deadlineTooNear(call: Call, sources: Record<string, SourceReasonDetail>): AllSourcesExhausted {
  const leftMs = Math.max(0, Math.floor(call.interrupt.remainingMs()));
  const text =
    `no source is expected to answer within the ${leftMs} ms that are left of the deadline of ${deadlineText(call)} ` +
    `(after ${attemptsText(call)}); allow more time, or set scheduling.deadlineRefusal to false to try all the same`;
  return exhausted(call, "deadline_exceeded", { retryAfterMs: 0, sources, text });
}

/** What a call that is in the queue waits for; what it saw itself when it is not. */
function waitedFor(call: Call): Record<string, SourceReasonDetail> {
  return reasonsFrom(call, call.lastRefusal?.passedOver ?? []);
}

export function noSources(call: Call): AllSourcesExhausted {
  const text = "no enabled source is configured for it";
  return exhausted(call, "no_sources", { retryAfterMs: 0, sources: {}, text });
}

export function attemptsText(call: Call): string {
  return countOf(call.attempts, "attempt");
}
