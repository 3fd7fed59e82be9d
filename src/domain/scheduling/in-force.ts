import type { ScopeState, SourceState } from "../scope-state.js";
import { lowerLimit, pacedRate, pacedWindow } from "./pacer.js";

/** What limits a source at this moment: configuration, pacer and ramp together. */

/** A source that closed again gets its load back over this time. */
const RAMP_MS = 10_000;
const LEAST_RAMP_SHARE = 0.1;
const LEAST_RAMP_WINDOW = 2;
/** What the ramp takes a share of where nothing else limits. */
const UNLIMITED_WINDOW = 512;

/** W: calls that may be in flight; Infinity = any number. */
export function windowInForce(state: ScopeState, source: SourceState, nowMs: number): number {
  const { config } = source;
  const configured = config.maxConcurrency > 0 ? config.maxConcurrency : Infinity;
  const window = state.scheduling.pacer ? pacedWindow(source.pacer, config, nowMs) : configured;
  const sinceMs = nowMs - source.reclosedAtMs;
  if (!(sinceMs < RAMP_MS)) return window;
  const whole = Math.min(window, UNLIMITED_WINDOW);
  const ramped = Math.floor(whole * Math.max(LEAST_RAMP_SHARE, sinceMs / RAMP_MS));
  return Math.min(window, Math.max(LEAST_RAMP_WINDOW, ramped));
}

export function isRamping(source: SourceState, nowMs: number): boolean {
  return nowMs - source.reclosedAtMs < RAMP_MS;
}

/** R: requests per second; Infinity = any number. */
export function rateInForce(state: ScopeState, source: SourceState, nowMs: number): number {
  if (state.scheduling.pacer) return pacedRate(source.pacer, source.config, nowMs);
  return source.rules.limits.rpm > 0 ? source.rules.limits.rpm / 60 : Infinity;
}

/** Tokens per minute, learned ones included; 0 = no limit is known. */
export function tokensInForce(source: SourceState): number {
  return lowerLimit(source.config.tpm, source.pacer.learnedTpm);
}
