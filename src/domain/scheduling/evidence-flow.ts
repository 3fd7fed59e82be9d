import { applyOutcome, passProbe, trip } from "../breaker.js";
import { coolDown, endCooldown, isOfLastWave } from "../cooldown.js";
import type { Lease } from "../leases.js";
import type { SeededRandom } from "../random.js";
import type { ScopeState, SourceState } from "../scope-state.js";
import type { Settle, Verdict } from "../tick.js";
import { addEvidence, type EvidenceKind, isMostlyHanging, restartEvidence } from "./evidence.js";
import { noteRefused } from "./goodput.js";
import { learnFirstToken } from "./learning.js";
import { cutFor, cutForHang, emptyBurst } from "./pacer.js";
import { poolOf } from "./pool.js";

/** How the end of an attempt, or its silence, reaches breaker and evidence score (spec 10 §4). */

/** A success this much slower than expected is half a failure. */
const SLOW_FACTOR = 4;
/** What takes less is slow for nobody: four times a few milliseconds is chance. */
const LEAST_SLOW_MS = 1_000;
/** Good probes in a row that a source needs which hung rather than failed. */
const MOST_PROBES = 3;

/** The cooldown after a 429, and what the pacer learns of it; a success ends the one. Returns whether one began. */
export function coolAfter(
  state: ScopeState,
  { cooldown, pacer, config }: SourceState,
  lease: Lease,
  s: Settle,
  nowMs: number,
  random: SeededRandom,
): boolean {
  if (s.outcome === "success") endCooldown(cooldown);
  if (s.rateLimited === undefined) return false;
  // Without a success since the last one it says nothing new of the rate: the source lets nobody through, and the cooldown
  // alone grows. Cut after cut, minutes of refusals would leave a rate that takes hours to grow back.
  const isNews = cooldown.limitedInARow === 0 || isOfLastWave(cooldown, lease.startedAtMs);
  coolDown(cooldown, nowMs, lease.startedAtMs, s.retryAfterMs, random);
  noteRefused(pacer.goodput);
  if (!state.scheduling.pacer) return true;
  if (isNews) cutFor(pacer, config, s.rateLimited, lease, nowMs);
  emptyBurst(pacer, config, cooldown.coolUntilMs, nowMs);
  return true;
}

/** Applies a current outcome. Returns whether the breaker changed its state. */
export function applyAttempt(
  state: ScopeState,
  source: SourceState,
  lease: Lease,
  s: Settle,
  nowMs: number,
  random: SeededRandom,
): boolean {
  const { breaker } = source;
  const isPanic = state.scheduling.evidence && isOnlyOneLeft(state, source);
  const isRateLimited = s.rateLimited !== undefined;
  const wasClosed = breaker.state === "closed";
  let changed = applyOutcome(breaker, state.breaker, s.leaseId, s.outcome, isRateLimited, isPanic, nowMs, random);
  const kind = evidenceOf(source, lease, s);
  if (kind === "hang") relieve(state, source, lease, nowMs);
  if (state.scheduling.evidence && kind !== null) {
    const isBroken = addEvidence(source.evidence, kind, poolOf(state, nowMs).failShare, nowMs);
    if (isBroken && wasClosed && !changed) {
      trip(breaker, state.breaker, isPanic, nowMs, random);
      changed = true;
    }
  }
  if (changed) noteChange(state, source, nowMs);
  return changed;
}

/** A server of which nobody said how much it bears, and which lets calls hang, has too many. */
function relieve(state: ScopeState, { pacer, config, health }: SourceState, lease: Lease, nowMs: number): void {
  if (!state.scheduling.pacer || config.maxConcurrency > 0) return;
  // Where nothing is answered any more, fewer calls don't help; cut after cut, it would take minutes to come back.
  if (pacer.window.wMax !== 0 && health.lastSuccessMs < pacer.window.cutAtMs) return;
  cutForHang(pacer, config, lease, health.durationMs, nowMs);
}

/** What the attempt says of its source; null = nothing, or it was said when its first token was overdue. */
function evidenceOf(source: SourceState, lease: Lease, s: Settle): EvidenceKind | null {
  if (s.outcome === "failure") {
    if (lease.overdue === "told") return null;
    return s.lastError?.code.includes("timeout") === true ? "hang" : "failure";
  }
  if (s.outcome !== "success" || lease.overdue === "reversed") return null;
  if (lease.overdue === "told") return "double_success";
  return isSlow(source, s) ? "slow_success" : "success";
}

function isSlow({ health }: SourceState, s: Settle): boolean {
  if (health.ttftMs === 0 || health.tpotMs === 0 || s.outTokens === undefined) return false;
  const usualMs = health.ttftMs + s.outTokens * health.tpotMs;
  return s.durationMs > Math.max(LEAST_SLOW_MS, SLOW_FACTOR * usualMs);
}

/** Every other source is open too. A scope of one source knows no panic. */
function isOnlyOneLeft(state: ScopeState, source: SourceState): boolean {
  if (state.sources.size === 1) return false;
  for (const other of state.sourceList) {
    if (other !== source && other.breaker.state === "closed") return false;
  }
  return true;
}

/** An attempt shows no first token. Returns whether the source tripped. */
export function hearOverdue(
  state: ScopeState,
  source: SourceState,
  lease: Lease,
  nowMs: number,
  random: SeededRandom,
): boolean {
  lease.overdue = "told";
  relieve(state, source, lease, nowMs);
  // A probe is judged by its own end.
  if (lease.grant.probe || !state.scheduling.evidence) return false;
  if (!addEvidence(source.evidence, "hang", poolOf(state, nowMs).failShare, nowMs)) return false;
  trip(source.breaker, state.breaker, isOnlyOneLeft(state, source), nowMs, random);
  noteChange(state, source, nowMs);
  return true;
}

/** The first token came, in time or late. Returns whether the breaker closed. */
export function hearFirstToken(
  state: ScopeState,
  source: SourceState,
  lease: Lease,
  v: Verdict,
  isCurrent: boolean,
  nowMs: number,
): boolean {
  if (v.ttftMs !== undefined) {
    lease.ttftMs = v.ttftMs;
    learnFirstToken(state, source, v.ttftMs);
  }
  const isReversal = lease.overdue === "told";
  if (isReversal) lease.overdue = "reversed";
  if (!isCurrent) return false;
  if (source.breaker.state !== "half_open") {
    if (isReversal && state.scheduling.evidence) {
      addEvidence(source.evidence, "double_success", poolOf(state, nowMs).failShare, nowMs);
    }
    return false;
  }
  if (!passProbe(source.breaker, v.leaseId, nowMs)) return false;
  noteChange(state, source, nowMs);
  return true;
}

function noteChange(state: ScopeState, source: SourceState, nowMs: number): void {
  const { breaker, evidence } = source;
  state.pool = null;
  if (breaker.state === "open") {
    const hung = state.scheduling.evidence && isMostlyHanging(evidence);
    breaker.probesLeft = hung ? Math.max(1, Math.min(MOST_PROBES, breaker.trips)) : 1;
  } else if (breaker.state === "closed") {
    restartEvidence(evidence, state.scheduling.ramp, nowMs);
    if (state.scheduling.ramp) source.reclosedAtMs = nowMs;
  }
}
