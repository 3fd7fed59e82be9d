import { requestRate, type SmoothRate, smoothTake, smoothWaitMs } from "../gates/smooth.js";
import type { LimitConfig } from "../source.js";
import type { RateLimitDimension, UpstreamLimits } from "../upstream-limits.js";
import { type CubicRecord, cubicValue, cut, neverCut } from "./cubic.js";
import { type GoodputRecord, newGoodput, noteLetThrough, rateFloor, windowFloor } from "./goodput.js";
import { forgetNoise, hearRefusal, type NoiseRecord, noNoise, noteCut, tellOfNoise } from "./noise.js";

/**
 * What a source bears, learned from its 429s and headers (spec 10 §3): two controllers, one for calls in flight (W), one
 * for requests per second (R), with the configured limits as caps. Learned values never raise a configured limit.
 */
export interface PacerRecord {
  readonly window: CubicRecord;
  readonly rate: CubicRecord;
  readonly windowNoise: NoiseRecord;
  readonly rateNoise: NoiseRecord;
  readonly goodput: GoodputRecord;
  /** What an attempt takes on average; 0 = unknown. */
  attemptMs: number;
  /** W of a source without a configured concurrency until its first cut: grows by one a success while half of it is used. */
  startWindow: number;
  /** Theoretical arrival time of R, once it was cut. */
  rateTatMs: number;
  /** How far that may run ahead: set by the cut, so that a growing rate moves no slot that was promised. */
  rateToleranceMs: number;
  /** From headers, per minute; 0 = nothing learned. */
  learnedRpm: number;
  learnedTpm: number;
  firstAdmittedMs: number;
  /** Requests since ever. */
  admitted: number;
  /** Admitted requests in this and the last stretch of 10 s. */
  bucket: number;
  bucketCount: number;
  earlierCount: number;
}

const START_WINDOW = 8;
const MAX_WINDOW = 512;
const BUCKET_MS = 10_000;
const LEAST_SPAN_MS = 1_000;
/** In its first seconds nobody knows what a source bears; the cooldown alone answers its 429s. */
const LEAST_KNOWN_MS = 5_000;
/** A level is cut from a little above what was measured: the measure lags. */
const MEASURED_MARGIN = 1.05;
const WINDOW_GROWTH_PER_S = 0.1;
const RATE_GROWTH_PER_S = 1 / 60;
/** One request in 20 s still finds out that a source is back. */
const MIN_RATE_PER_S = 0.05;
/** What was measured below this says how little was asked for, not how little is borne; repeated cuts still get there. */
const LEAST_MEASURED_PER_S = 1;
/** What a header must leave of a second's rate, else R is cut before anything fails. */
const EARLY_REQUESTS_S = 1;
const EARLY_TOKENS_S = 0.5;
const NO_LIMIT = 0;

export function newPacer(): PacerRecord {
  return {
    window: neverCut(),
    rate: neverCut(),
    windowNoise: noNoise(),
    rateNoise: noNoise(),
    goodput: newGoodput(),
    attemptMs: 0,
    startWindow: START_WINDOW,
    rateTatMs: 0,
    rateToleranceMs: 0,
    learnedRpm: NO_LIMIT,
    learnedTpm: NO_LIMIT,
    firstAdmittedMs: -1,
    admitted: 0,
    bucket: -1,
    bucketCount: 0,
    earlierCount: 0,
  };
}

/** W: whole calls that may be in flight; ≥ 1. */
export function pacedWindow(p: PacerRecord, limits: LimitConfig, nowMs: number): number {
  const cap = limits.maxConcurrency > 0 ? limits.maxConcurrency : MAX_WINDOW;
  if (p.window.wMax === 0) return limits.maxConcurrency > 0 ? cap : p.startWindow;
  const floor = windowFloor(p.goodput, p.attemptMs, nowMs);
  const level = Math.max(cubicValue(p.window, nowMs, WINDOW_GROWTH_PER_S), floor);
  return Math.max(1, Math.floor(Math.min(level, cap)));
}

/** R: requests per second, configured and learned limits included; Infinity = nothing limits it. */
export function pacedRate(p: PacerRecord, limits: LimitConfig, nowMs: number): number {
  const cap = rateCap(p, limits);
  const level = cubicValue(p.rate, nowMs, RATE_GROWTH_PER_S);
  return Math.min(Math.max(level, MIN_RATE_PER_S, rateFloor(p.goodput, nowMs)), cap);
}

function rateCap(p: PacerRecord, limits: LimitConfig): number {
  const rpm = lowerLimit(limits.rpm, p.learnedRpm);
  return rpm === NO_LIMIT ? Infinity : rpm / 60;
}

/** The lower of two limits of which 0 means none. */
export function lowerLimit(a: number, b: number): number {
  if (a === NO_LIMIT) return b;
  return b === NO_LIMIT ? a : Math.min(a, b);
}

/** The configured limits, or lower ones that headers told. */
export function limitsInForce(p: PacerRecord, limits: LimitConfig): LimitConfig {
  if (p.learnedRpm === NO_LIMIT && p.learnedTpm === NO_LIMIT) return limits;
  return { ...limits, rpm: lowerLimit(limits.rpm, p.learnedRpm), tpm: lowerLimit(limits.tpm, p.learnedTpm) };
}

/** GCRA of R; null while nothing was cut: the gate of the configured or learned limit is enough then. */
export function pacedInterval(p: PacerRecord, limits: LimitConfig, nowMs: number): SmoothRate | null {
  if (p.rate.wMax === 0) return null;
  return { intervalMs: intervalOf(p, limits, nowMs).intervalMs, toleranceMs: p.rateToleranceMs };
}

function intervalOf(p: PacerRecord, limits: LimitConfig, nowMs: number): SmoothRate {
  const rpm = pacedRate(p, limits, nowMs) * 60;
  // So few have no burst, and the strict formula would end in a division by nothing.
  if (rpm < 2) return { intervalMs: 60_000 / rpm, toleranceMs: 0 };
  return requestRate({ ...limits, rpm, strict: true })!;
}

export function pacedWaitMs(p: PacerRecord, limits: LimitConfig, nowMs: number): number {
  const interval = pacedInterval(p, limits, nowMs);
  return interval === null ? 0 : smoothWaitMs(interval, p.rateTatMs, nowMs);
}

/** Books one request that starts at `startMs`. */
export function notePacedGrant(p: PacerRecord, limits: LimitConfig, startMs: number, nowMs: number): void {
  countAdmitted(p, nowMs);
  noteLetThrough(p.goodput);
  const interval = pacedInterval(p, limits, nowMs);
  if (interval !== null) p.rateTatMs = smoothTake(interval, p.rateTatMs, startMs, 1);
}

function countAdmitted(p: PacerRecord, nowMs: number): void {
  rollBuckets(p, nowMs);
  if (p.firstAdmittedMs < 0) p.firstAdmittedMs = nowMs;
  p.bucketCount += 1;
  p.admitted += 1;
}

function rollBuckets(p: PacerRecord, nowMs: number): void {
  const bucket = Math.floor(nowMs / BUCKET_MS);
  if (bucket === p.bucket) return;
  p.earlierCount = bucket === p.bucket + 1 ? p.bucketCount : 0;
  p.bucketCount = 0;
  p.bucket = bucket;
}

/** Requests per second admitted over the last 10 s. */
export function measuredRate(p: PacerRecord, nowMs: number): number {
  rollBuckets(p, nowMs);
  const share = nowMs / BUCKET_MS - p.bucket;
  // A process that began a second ago has not been idle for nine.
  const spanMs = Math.min(BUCKET_MS, Math.max(LEAST_SPAN_MS, nowMs - p.firstAdmittedMs));
  return ((p.bucketCount + p.earlierCount * (1 - share)) * 1_000) / spanMs;
}

/** The attempt a 429, or a warning before it, came from. */
export interface PacedAttempt {
  readonly startedAtMs: number;
  /** In flight when it was sent, itself included. */
  readonly inflight: number;
}

/**
 * Cuts what the 429 named, both when it named nothing. Only an attempt that started after the last cut may cut again:
 * one congestion, one cut; and none where cuts turned out to change nothing. Returns whether anything was cut.
 */
export function cutFor(
  p: PacerRecord,
  limits: LimitConfig,
  dimension: RateLimitDimension,
  attempt: PacedAttempt,
  nowMs: number,
): boolean {
  let hasCut = false;
  if (dimension !== "concurrency") hasCut = cutRateFor(p, limits, attempt, nowMs);
  // Of a window that was hardly used nobody can say that it was too wide.
  const mayBeWindow = dimension === "unknown" && attempt.inflight * 2 >= pacedWindow(p, limits, nowMs);
  if (dimension === "concurrency" || mayBeWindow) hasCut = cutWindowFor(p, limits, attempt, nowMs) || hasCut;
  return hasCut;
}

function cutRateFor(p: PacerRecord, limits: LimitConfig, attempt: PacedAttempt, nowMs: number): boolean {
  if (!mayCutRate(p, attempt, nowMs)) return false;
  if (hearRefusal(p.rateNoise, p.rate, p.admitted, p.attemptMs, nowMs)) {
    tellOfNoise(p.rateNoise, p.windowNoise, p.window, nowMs);
    return false;
  }
  cutRate(p, limits, nowMs);
  noteCut(p.rateNoise, p.rate.wMax);
  return true;
}

function mayCutRate(p: PacerRecord, attempt: PacedAttempt, nowMs: number): boolean {
  return !isStale(p.rate, attempt) && nowMs - p.firstAdmittedMs >= LEAST_KNOWN_MS;
}

function cutRate(p: PacerRecord, limits: LimitConfig, nowMs: number): void {
  const measured = Math.max(MEASURED_MARGIN * measuredRate(p, nowMs), LEAST_MEASURED_PER_S);
  cut(p.rate, Math.min(pacedRate(p, limits, nowMs), measured), nowMs);
  p.rateToleranceMs = intervalOf(p, limits, nowMs).toleranceMs;
}

function cutWindowFor(p: PacerRecord, limits: LimitConfig, attempt: PacedAttempt, nowMs: number): boolean {
  if (isStale(p.window, attempt)) return false;
  if (hearRefusal(p.windowNoise, p.window, p.admitted, p.attemptMs, nowMs)) {
    tellOfNoise(p.windowNoise, p.rateNoise, p.rate, nowMs);
    return false;
  }
  // What was open, not what was used of it: a window may be cut while its first calls are still being sent.
  noteCut(p.windowNoise, pacedWindow(p, limits, nowMs));
  cut(p.window, windowLevel(p, limits, attempt, nowMs), nowMs);
  return true;
}

function windowLevel(p: PacerRecord, limits: LimitConfig, attempt: PacedAttempt, nowMs: number): number {
  return Math.max(1, Math.min(pacedWindow(p, limits, nowMs), attempt.inflight));
}

/** A server of which nobody said how much it bears lets this attempt hang. `newsMs` = what an attempt takes; 0 = unknown. */
export function cutForHang(
  p: PacerRecord,
  limits: LimitConfig,
  attempt: PacedAttempt,
  newsMs: number,
  nowMs: number,
): void {
  if (isStale(p.window, attempt)) return;
  cutWindowTo(p, windowLevel(p, limits, attempt, nowMs), nowMs, newsMs);
}

/** It was sent before the last cut: it says nothing of the new level. */
export function isStale(c: CubicRecord, attempt: Pick<PacedAttempt, "startedAtMs">): boolean {
  return c.wMax !== 0 && attempt.startedAtMs <= c.cutAtMs;
}

/** For the gradient guard, which knows the level itself. */
export function cutWindowTo(p: PacerRecord, level: number, nowMs: number, newsMs = 0): void {
  cut(p.window, Math.max(1, level), nowMs, newsMs);
  forgetNoise(p.windowNoise);
}

/** A success of a source whose concurrency nobody configured. */
export function growStartWindow(p: PacerRecord, limits: LimitConfig, inflight: number): void {
  if (limits.maxConcurrency > 0 || p.window.wMax !== 0 || p.startWindow >= MAX_WINDOW) return;
  if (inflight * 2 >= p.startWindow) p.startWindow += 1;
}

/** After a 429 the source reopens paced, with an empty burst: the GCRA, not the crowd, decides who starts when. */
export function emptyBurst(p: PacerRecord, limits: LimitConfig, openAtMs: number, nowMs: number): void {
  const interval = pacedInterval(p, limits, nowMs);
  if (interval !== null) p.rateTatMs = Math.max(p.rateTatMs, openAtMs + interval.toleranceMs);
}

/** Limits of the account as its answers tell them. Returns whether a learned limit changed. */
export function learnLimits(p: PacerRecord, told: UpstreamLimits): boolean {
  const rpm = usable(told.limitRequests) ?? p.learnedRpm;
  const tpm = usable(told.limitTokens) ?? p.learnedTpm;
  if (rpm === p.learnedRpm && tpm === p.learnedTpm) return false;
  p.learnedRpm = rpm;
  p.learnedTpm = tpm;
  return true;
}

function usable(limit: number | undefined): number | null {
  return limit !== undefined && limit > 0 && Number.isFinite(limit) ? limit : null;
}

/** Little is left of this minute: R is cut before anything fails. */
export function cutEarly(
  p: PacerRecord,
  limits: LimitConfig,
  told: UpstreamLimits,
  attempt: PacedAttempt,
  nowMs: number,
): boolean {
  const { remainingRequests, remainingTokens } = told;
  const tpm = lowerLimit(limits.tpm, p.learnedTpm);
  const isShortOfTokens = remainingTokens !== undefined && tpm > 0 && remainingTokens < EARLY_TOKENS_S * (tpm / 60);
  const rate = pacedRate(p, limits, nowMs);
  const isShortOfRequests =
    remainingRequests !== undefined && rate !== Infinity && remainingRequests < EARLY_REQUESTS_S * rate;
  if (!(isShortOfTokens || isShortOfRequests) || !mayCutRate(p, attempt, nowMs)) return false;
  cutRate(p, limits, nowMs);
  forgetNoise(p.rateNoise);
  return true;
}
