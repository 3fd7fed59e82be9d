/**
 * Every setting, once (spec 07), here and in schema-source.ts, schema-scheduling.ts and schema-process.ts. Parsing, range checks,
 * did-you-mean, docs/configuration.md and .env.example are all made from these tables.
 */

import type { EmbeddingConfig } from "../domain/embedding.js";
import type { OcrConfig } from "../domain/ocr.js";
import {
  type BackpressureConfig,
  BREAKER_DEFAULTS,
  type BreakerConfig,
  CACHE_DEFAULTS,
  type CacheConfig,
  type Failover,
  type RetryConfig,
  type SelectorName,
} from "../domain/scope.js";
import type { LimitConfig } from "../domain/source.js";
import { choice, duration, type Field, type Fields, flag, integer, number, optional } from "./field.js";
import { SCHEDULING_FIELDS } from "./schema-scheduling.js";
import { LIMIT_FIELDS } from "./schema-source.js";

export const RETRY_FIELDS: Fields<RetryConfig> = {
  maxAttempts: integer("MAX_ATTEMPTS", 4, "Failed sends before a call ends; 1 = a single send", { min: 1, max: 1_000 }),
  backoffBaseMs: duration("BACKOFF_BASE_S", 500, "First wait after a failure; doubles each time, halved at random"),
  backoffMaxMs: duration("BACKOFF_MAX_S", 20_000, "Longest such wait; at least BACKOFF_BASE_S"),
  maxRateLimited: integer("MAX_RATE_LIMITED", 20, "429s one call accepts before it ends; 0 = any number", {
    max: 1_000_000,
  }),
};

export const BREAKER_FIELDS: Fields<BreakerConfig> = {
  failThreshold: integer("FAIL_THRESHOLD", BREAKER_DEFAULTS.failThreshold, "Failures in a row that open the breaker", {
    min: 1,
    max: 1_000_000,
  }),
  failRate: number("FAIL_RATE", BREAKER_DEFAULTS.failRate, "Share of failures over the window that opens it", {
    above: 0,
    max: 1,
  }),
  minSamples: integer("MIN_SAMPLES", BREAKER_DEFAULTS.minSamples, "Attempts in the window before the share counts", {
    min: 1,
    max: 1_000_000,
  }),
  windowMs: duration("WINDOW_S", BREAKER_DEFAULTS.windowMs, "Length of that window", { min: 1_000, max: 3_600_000 }),
  cooldownMs: duration(
    "COOLDOWN_S",
    BREAKER_DEFAULTS.cooldownMs,
    "First open time; × 1.7 a trip, ± 10 %; 0 = probe at once",
  ),
  cooldownMaxMs: duration("COOLDOWN_MAX_S", BREAKER_DEFAULTS.cooldownMaxMs, "Longest open time"),
};

export const BACKPRESSURE_FIELDS: Fields<BackpressureConfig> = {
  stallWindowMs: duration(
    "STALL_WINDOW_S",
    300_000,
    "Unproductive waiting a call accepts while nothing in the scope makes progress; at least every TTFT_TIMEOUT_S",
    { above: 0 },
  ),
  quotaFull: choice("QUOTA_FULL", ["wait", "fail_fast"], "wait", "What a call does when every limit is used up"),
  whenOpen: choice("WHEN_OPEN", ["wait", "fail"], "fail", "What a call does when every breaker is open", {
    defaultText: "fail (batch: wait)",
  }),
  backendGraceMs: duration("BACKEND_GRACE_S", 0, "How long a call puts up with a governance backend that is down", {
    defaultText: "0 (batch: 60)",
  }),
  pollIntervalMs: duration("POLL_INTERVAL_S", 50, "Smallest retry hint of a used-up quota; nothing polls"),
};

export const CACHE_FIELDS: Fields<CacheConfig> = {
  backend: choice("BACKEND", ["none", "memory", "redis"], CACHE_DEFAULTS.backend, "Where answers are kept", {
    defaultText: "PGW_CACHE_BACKEND, else none",
  }),
  ttlMs: duration("TTL_S", CACHE_DEFAULTS.ttlMs, "How long an answer is good for", { above: 0 }),
  maxBytes: integer(
    "MAX_BYTES",
    CACHE_DEFAULTS.maxBytes,
    "Size of the memory cache; Redis keeps its own bound, maxmemory",
    {
      min: 1,
      max: 2 ** 40,
      unit: "bytes",
    },
  ),
  namespace: {
    kind: "text",
    env: "NAMESPACE",
    fallback: CACHE_DEFAULTS.namespace,
    mayBeEmpty: true,
    text: "Answers are shared only within one",
  },
  salt: {
    kind: "text",
    env: "SALT",
    fallback: CACHE_DEFAULTS.salt,
    mayBeEmpty: true,
    secret: true,
    text: "Secret part of every cache key",
  },
  coalesce: flag(
    "COALESCE",
    CACHE_DEFAULTS.coalesce,
    "Identical calls in flight share one answer, even without a cache",
  ),
};

export const GLOBAL_FIELDS: Fields<LimitConfig> = LIMIT_FIELDS;

export interface ScopeSettings {
  readonly selector: SelectorName;
  readonly failover: Failover;
  readonly deadlineMs: number | undefined;
}

export const SCOPE_FIELDS: Fields<ScopeSettings> = {
  selector: choice(
    "SELECTOR",
    ["health_aware", "least_inflight", "round_robin"],
    "health_aware",
    "Order among sources of one priority: by health and free share, by free share alone, or in turn",
  ),
  failover: choice("FAILOVER", ["on", "off"], "on", "off: the first source admitted is the call's only one"),
  deadlineMs: optional(
    duration("DEADLINE_S", 0, "Longest call from its start, queue and retries included", { above: 0 }),
    "none",
  ),
};

/** Directly below the scope too, but only for embeddings. */
export const EMBEDDING_FIELDS: Fields<EmbeddingConfig> = {
  batchSize: integer("BATCH_SIZE", 0, "Texts per request; a source that refuses so many gets smaller ones", {
    min: 1,
    max: 100_000,
    required: true,
  }),
  expectedDim: optional(integer("EXPECTED_DIM", 0, "Width every vector must have", { min: 1, max: 1_000_000 }), "any"),
  normalize: flag("NORMALIZE", false, "Scale every vector to length 1"),
  concurrency: integer("CONCURRENCY", 1, "Batches of one call in flight at once", { min: 1, max: 10_000 }),
};

/** Directly below the scope too, but only for OCR. */
export const OCR_FIELDS: Fields<OcrConfig> = {
  maxImageBytes: integer("MAX_IMAGE_BYTES", 32 * 1_024 * 1_024, "Largest picture or document that is sent to OCR", {
    min: 1,
    max: 2 ** 30,
    unit: "bytes",
  }),
};

/** Groups between the scope's name and the field, with the option object they fill. */
export const GROUPS = {
  RETRY: { option: "retry", fields: RETRY_FIELDS as Readonly<Record<string, Field>> },
  BREAKER: { option: "breaker", fields: BREAKER_FIELDS as Readonly<Record<string, Field>> },
  BACKPRESSURE: { option: "backpressure", fields: BACKPRESSURE_FIELDS as Readonly<Record<string, Field>> },
  GLOBAL: { option: "global", fields: GLOBAL_FIELDS as Readonly<Record<string, Field>> },
  SCHEDULING: { option: "scheduling", fields: SCHEDULING_FIELDS as Readonly<Record<string, Field>> },
  CACHE: { option: "cache", fields: CACHE_FIELDS as Readonly<Record<string, Field>> },
} as const;

/** Flat names of the system this design comes from: `{SCOPE}_{name}`. `path` = the option it fills. */
export const FLAT_NAMES: Readonly<Record<string, { readonly path: string; readonly text: string }>> = {
  TIMEOUT: { path: "sources[].timeoutMs", text: "TIMEOUT_S of every source" },
  TTFT_TIMEOUT: { path: "sources[].ttftTimeoutMs", text: "TTFT_TIMEOUT_S of every source" },
  INTER_TOKEN_TIMEOUT: { path: "sources[].interTokenTimeoutMs", text: "INTER_TOKEN_TIMEOUT_S of every source" },
  MAX_RETRIES: { path: "retry.maxAttempts", text: "RETRY__MAX_ATTEMPTS minus 1" },
  CIRCUIT_BREAKER_THRESHOLD: { path: "breaker.failThreshold", text: "BREAKER__FAIL_THRESHOLD" },
  CIRCUIT_BREAKER_COOLDOWN: { path: "breaker.cooldownMs", text: "BREAKER__COOLDOWN_S" },
};
