import { isLastingFailure } from "../domain/lasting-failure.js";
import { ConfigError, GatewayUnavailableError, SourceNotConfiguredError } from "../errors.js";
import { describeTrouble } from "./trouble.js";
import type { StopKind } from "./types.js";
import { WorkersFailedError } from "./workers/restarts.js";

/** What a failed call means for its line. */
export type LineVerdict =
  | { readonly kind: "failed" }
  | { readonly kind: "requeue"; readonly afterMs: number; readonly outage: boolean }
  | { readonly kind: "stop"; readonly stop: StopKind; readonly reason: string };

export interface LineEvidence {
  /** Did some call of the scope succeed since the line's first attempt? */
  readonly successSinceFirstAttempt: boolean;
  /**
   * Did one succeed since the line was last found exhausted, or in the later half of its first try? An earlier success
   * says nothing about an outage that began meanwhile.
   */
  readonly freshSuccess: boolean;
  /** Are there lines, running or not yet read, whose end will tell an outage from a bad line? */
  readonly moreEvidenceComes: boolean;
  /** How often an outage put this line back so far. */
  readonly outageRequeues: number;
  /** false: other sources of the scope still live, only those able to serve this line are dead. */
  readonly wholeScopeDead: boolean;
}

/** A line put back waits at least so long (spec 08). */
export const MIN_WAIT_MS = 1_000;
/** 1 + 2 + 4 … capped here: ten tries reach over 8 minutes of outage. */
const MAX_OUTAGE_WAIT_MS = 120_000;
export const MAX_OUTAGE_REQUEUES = 10;

/** Only what the line itself caused becomes a failure line (spec 08). */
export function judgeFailure(error: unknown, evidence: LineEvidence): LineVerdict {
  if (SourceNotConfiguredError.isInstance(error) || ConfigError.isInstance(error)) {
    return { kind: "stop", stop: "misconfigured", reason: `The configuration does not fit: ${error.message}` };
  }
  if (error instanceof WorkersFailedError) return { kind: "stop", stop: "workers_failed", reason: error.message };
  if (!GatewayUnavailableError.isInstance(error)) return { kind: "failed" };
  const afterMs = Math.max(error.retryAfterMs, MIN_WAIT_MS);
  if (isLastingFailure(error)) {
    return { kind: "stop", stop: "misconfigured", reason: `No call may start: ${error.message}.` };
  }
  switch (error.reason) {
    case "deadline_exceeded":
      return { kind: "failed" };
    case "retry_exhausted":
      return judgeExhausted(afterMs, evidence);
    case "no_sources":
      return {
        kind: "stop",
        stop: "no_sources",
        reason: `Scope ${error.scope} has no source that can serve the lines: ${error.message}`,
      };
    case "all_sources_dead":
      if (!evidence.wholeScopeDead) return { kind: "requeue", afterMs, outage: false };
      return { kind: "stop", stop: "all_sources_dead", reason: describeDead(error) };
    default:
      return { kind: "requeue", afterMs, outage: false };
  }
}

function judgeExhausted(afterMs: number, evidence: LineEvidence): LineVerdict {
  const { successSinceFirstAttempt, freshSuccess, moreEvidenceComes, outageRequeues } = evidence;
  const own = moreEvidenceComes ? freshSuccess : successSinceFirstAttempt;
  if (own || outageRequeues >= MAX_OUTAGE_REQUEUES) return { kind: "failed" };
  const backoffMs = Math.min(MIN_WAIT_MS * 2 ** outageRequeues, MAX_OUTAGE_WAIT_MS);
  return { kind: "requeue", afterMs: Math.max(afterMs, backoffMs), outage: true };
}

function describeDead(error: GatewayUnavailableError): string {
  return `All sources of scope ${error.scope} are dead (${describeTrouble(error)}).`;
}
