import type { LimitConfig } from "../source.js";
import {
  requestRate,
  type SmoothRate,
  smoothBooked,
  smoothCorrect,
  smoothTake,
  smoothWaitMs,
  tokenRate,
} from "./smooth.js";
import { rollWindow, type WindowCounts, windowIdOf, windowWaitMs } from "./window.js";

/** The limits of one owner (a source, or the scope as a whole) with their derived rates. */
export interface GateRules {
  readonly limits: LimitConfig;
  readonly requests: SmoothRate | null;
  readonly tokens: SmoothRate | null;
}

/** What has been taken from one owner's request and token gates. Concurrency is decided by leases alone. */
export interface GateRecord extends WindowCounts {
  requestTatMs: number;
  tokenTatMs: number;
  /** Lease of the newest grant: only its request slot may be returned under `smooth`. */
  newestGrant: string;
}

/** The store's two clocks at one moment: monotonic for pacing, wall for aligned minutes. */
export interface StoreClock {
  readonly nowMs: number;
  readonly wallMs: number;
}

export function gateRules(limits: LimitConfig): GateRules {
  return { limits, requests: requestRate(limits), tokens: tokenRate(limits) };
}

export function emptyGateRecord(): GateRecord {
  return { windowId: -1, windowRequests: 0, windowTokens: 0, requestTatMs: 0, tokenTatMs: 0, newestGrant: "" };
}

/** Milliseconds until one more request may start; 0 = now. */
export function requestWaitMs(rules: GateRules, record: GateRecord, clock: StoreClock): number {
  const { limits, requests } = rules;
  if (requests === null) return 0;
  if (limits.limitRule === "smooth") return smoothWaitMs(requests, record.requestTatMs, clock.nowMs);
  const id = windowIdOf(clock.wallMs, record);
  const used = id === record.windowId ? record.windowRequests : 0;
  return used >= limits.rpm ? windowWaitMs(clock.wallMs, id) : 0;
}

/** Milliseconds until `tokens` may be booked; 0 = now. Callers exclude `tokens > tpm` beforehand: that never fits. */
export function tokenWaitMs(rules: GateRules, record: GateRecord, clock: StoreClock, tokens: number): number {
  const { limits, tokens: rate } = rules;
  if (rate === null) return 0;
  if (limits.limitRule === "smooth") return smoothWaitMs(rate, record.tokenTatMs, clock.nowMs);
  const id = windowIdOf(clock.wallMs, record);
  const used = id === record.windowId ? record.windowTokens : 0;
  return used + tokens > limits.tpm ? windowWaitMs(clock.wallMs, id) : 0;
}

/** Books one request and its tokens. Returns the window it was booked in, null under `smooth`. */
export function takeFromGates(
  rules: GateRules,
  record: GateRecord,
  clock: StoreClock,
  tokens: number,
  leaseId: string,
): number | null {
  record.newestGrant = leaseId;
  if (rules.limits.limitRule === "window") {
    const id = windowIdOf(clock.wallMs, record);
    rollWindow(record, id);
    record.windowRequests += 1;
    record.windowTokens += tokens;
    return id;
  }
  if (rules.requests !== null) record.requestTatMs = smoothTake(rules.requests, record.requestTatMs, clock.nowMs, 1);
  if (rules.tokens !== null) record.tokenTatMs = smoothTake(rules.tokens, record.tokenTatMs, clock.nowMs, tokens);
  return null;
}

export interface GateSettlement {
  readonly leaseId: string;
  /** Where the grant was booked; null under `smooth`. */
  readonly windowId: number | null;
  readonly reservedTokens: number;
  readonly actualTokens: number;
  /** No byte left: the request itself is returned where that can't let too many through. */
  readonly returnRequest: boolean;
}

/** Corrects the books of one finished attempt. A settle for another window is a no-op. */
export function settleGates(rules: GateRules, record: GateRecord, clock: StoreClock, s: GateSettlement): void {
  if (rules.limits.limitRule === "window") {
    if (s.windowId === null || s.windowId !== record.windowId) return;
    record.windowTokens = Math.max(0, record.windowTokens + s.actualTokens - s.reservedTokens);
    if (s.returnRequest) record.windowRequests = Math.max(0, record.windowRequests - 1);
    return;
  }
  if (rules.tokens !== null && s.actualTokens !== s.reservedTokens) {
    const units = s.actualTokens - s.reservedTokens;
    record.tokenTatMs = smoothCorrect(rules.tokens, record.tokenTatMs, clock.nowMs, units);
  }
  // Only the newest grant: returning an older one would let two later sends share one slot.
  if (s.returnRequest && rules.requests !== null && record.newestGrant === s.leaseId) {
    record.requestTatMs = smoothCorrect(rules.requests, record.requestTatMs, clock.nowMs, -1);
    record.newestGrant = "";
  }
}

export function requestsBooked(rules: GateRules, record: GateRecord, clock: StoreClock): number {
  if (rules.limits.limitRule === "window") {
    return record.windowId === windowIdOf(clock.wallMs, record) ? record.windowRequests : 0;
  }
  return rules.requests === null ? 0 : smoothBooked(rules.requests, record.requestTatMs, clock.nowMs);
}

export function tokensBooked(rules: GateRules, record: GateRecord, clock: StoreClock): number {
  if (rules.limits.limitRule === "window") {
    return record.windowId === windowIdOf(clock.wallMs, record) ? record.windowTokens : 0;
  }
  return rules.tokens === null ? 0 : smoothBooked(rules.tokens, record.tokenTatMs, clock.nowMs);
}
