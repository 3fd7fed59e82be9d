import type { Judgement } from "../domain/judgement.js";
import type { SourceConfig } from "../domain/source.js";
import type { UnavailableReason } from "../errors.js";
import { type Call, keepSources, withName } from "./call.js";

/**
 * What follows a failed attempt (spec 02 §2, the loop): the failure goes to the caller, the call is exhausted,
 * or it is tried again. `counted` = it was billed to `maxAttempts`; everything else is paid by the stall clock.
 */
export type NextStep =
  | { readonly kind: "throw"; readonly counted: true }
  | { readonly kind: "exhausted"; readonly reason: UnavailableReason; readonly counted: true }
  | { readonly kind: "again"; readonly backoff: boolean; readonly counted: boolean };

const THROW: NextStep = { kind: "throw", counted: true };
const AT_ONCE: NextStep = { kind: "again", backoff: false, counted: false };
const AFTER_BACKOFF: NextStep = { kind: "again", backoff: true, counted: true };
/** A pool may hold several sockets that died together, and we add few parameters: beyond that something else is wrong. */
const MAX_RESENDS = 5;

function exhausted(reason: UnavailableReason): NextStep {
  return { kind: "exhausted", reason, counted: true };
}

/**
 * Books the failure in the call and decides. Changes only the call's own memory.
 *
 * @param isFree the failure tells of the source alone: a probe that failed before its verdict, or an attempt that was
 * sent away when its source tripped
 */
export function nextStep(
  call: Call,
  source: SourceConfig,
  isFree: boolean,
  judgement: Judgement,
  error: Error,
): NextStep {
  const oneSend = call.environment.config.retry.maxAttempts === 1;
  if ((judgement.failure === "stale_socket" || judgement.failure === "param_repaired") && call.resends < MAX_RESENDS) {
    call.resends += 1;
    return AT_ONCE;
  }
  switch (judgement.failure) {
    case "param_repaired":
    case "rejected":
    case "invalid":
      return THROW;
    case "rejected_by_model":
      return oneSend || !call.failover ? THROW : anotherModel(call, source, error);
    case "rate_limited":
      call.lastFailure = error;
      return afterRateLimit(call, source, oneSend);
    case "dead":
      call.lastFailure = error;
      return afterDeath(call, source, error, oneSend);
    default:
      call.lastFailure = error;
      return afterTransient(call, source, isFree, oneSend);
  }
}

/** Keeps what a failure says of its source, where another attempt of the call decides what follows. */
export function rememberFailure(call: Call, source: SourceConfig, { failure }: Judgement, error: Error): void {
  if (failure === "rate_limited") call.limitedHere = withName(call.limitedHere, source.name);
  else if (failure === "transient") call.failedHere = withName(call.failedHere, source.name);
  else if (failure === "dead") leaveDead(call, source, error);
  else return;
  call.lastFailure = error;
}

function leaveDead(call: Call, source: SourceConfig, error: Error): void {
  call.deadHere ??= new Map();
  call.deadHere.set(source.name, error);
  keepSources(call, (other) => other.name !== source.name);
}

/** Sources with another model, with a larger context or, for a dialect that failed, in another dialect are tried once each. */
function anotherModel(call: Call, failed: SourceConfig, error: Error): NextStep {
  call.lastFailure = error;
  const { code } = error as { code?: string };
  const overflow = code === "context_length";
  const dialect = code === "unsupported_param";
  keepSources(call, (source) => {
    if (source.name === failed.name) return false;
    if (source.model !== failed.model || (dialect && source.profile !== failed.profile)) return true;
    return overflow && (source.contextTokens ?? 0) > (failed.contextTokens ?? Infinity);
  });
  return call.sources.length === 0 ? THROW : AT_ONCE;
}

function afterRateLimit(call: Call, source: SourceConfig, oneSend: boolean): NextStep {
  const { maxRateLimited } = call.environment.config.retry;
  call.rateLimits += 1;
  call.limitedHere = withName(call.limitedHere, source.name);
  if (oneSend || (maxRateLimited > 0 && call.rateLimits > maxRateLimited)) return exhausted("quota_exhausted");
  return AT_ONCE;
}

function afterDeath(call: Call, source: SourceConfig, error: Error, oneSend: boolean): NextStep {
  leaveDead(call, source, error);
  if (call.sources.length === 0) return exhausted("all_sources_dead");
  return oneSend ? exhausted("retry_exhausted") : AT_ONCE;
}

function afterTransient(call: Call, source: SourceConfig, isFree: boolean, oneSend: boolean): NextStep {
  call.failedHere = withName(call.failedHere, source.name);
  if (oneSend) return exhausted("retry_exhausted");
  // Else the oldest call would be burnt on probes.
  if (isFree) return AT_ONCE;
  call.fails += 1;
  if (call.fails >= call.environment.config.retry.maxAttempts) return exhausted("retry_exhausted");
  return AFTER_BACKOFF;
}
