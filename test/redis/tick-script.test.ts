import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { flattenScope, restoreScope } from "../../src/backends/redis/script/layout.js";
import {
  flattenLease,
  LEASE_TYPES,
  type PackedLease,
  restoreLease,
} from "../../src/backends/redis/script/lease-layout.js";
import type { Lease } from "../../src/domain/leases.js";
import { MemoryLeases } from "../../src/domain/memory-leases.js";
import { poolOf } from "../../src/domain/scheduling/pool.js";
import { BREAKER_DEFAULTS, SCHEDULING_DEFAULTS } from "../../src/domain/scope.js";
import { newScopeState, type ScopeState, type SourceState } from "../../src/domain/scope-state.js";
import { NO_LIMITS } from "../../src/domain/source.js";
import { sourceConfig } from "../../src/testing/contracts/governor/bench.js";
import { allValues, wholeSource } from "../support/source-layout.js";

/** Made from the configuration, kept in keys of their own, or of one tick alone. */
const NOT_PACKED_OF_SOURCE = ["config", "priceFactor", "rules", "sizes", "mostTokens", "facts", "standing", "score"];
const NOT_PACKED_OF_SCOPE = [
  "breaker",
  "globalRules",
  "keepsFacts",
  "leaseTtlMs",
  "leases",
  "lineup",
  "scheduling",
  "selector",
  "sourceList",
  "sources",
  "workers",
];

function freshScope(): ScopeState {
  return newScopeState(
    {
      sources: [sourceConfig("a")],
      global: NO_LIMITS,
      breaker: BREAKER_DEFAULTS,
      selector: "health_aware",
      scheduling: SCHEDULING_DEFAULTS,
      leaseTtlMs: 30_000,
    },
    1,
    new MemoryLeases(),
  );
}

const freshSource = (): SourceState => freshScope().sources.get("a")!;

/** Gives every plain field, however deep, a value that no other has, and that it did not have before. */
function fill(record: object, without: readonly string[], next = { value: 1_000.25 }): void {
  const fields = record as Record<string, unknown>;
  for (const [name, value] of Object.entries(fields)) {
    if (without.includes(name)) continue;
    next.value += 1;
    if (typeof value === "number") fields[name] = next.value;
    else if (typeof value === "string") fields[name] = `text ${next.value}`;
    else if (typeof value === "boolean") fields[name] = !value;
    else if (typeof value === "object" && value !== null) fill(value, [], next);
    else expect.fail(`${name} is ${String(value)}: give it an example in this test`);
  }
}

function remembered(record: object, without: readonly string[]): unknown {
  return structuredClone(Object.fromEntries(Object.entries(record).filter(([name]) => !without.includes(name))));
}

test("everything that is remembered of a source is packed and found again", () => {
  const source = freshSource();
  source.gradient.samples.push(0, 0, 0);
  source.lastError = { code: "", message: "" };
  fill(source, NOT_PACKED_OF_SOURCE);
  const found = wholeSource(allValues(source));
  expect(remembered(found, NOT_PACKED_OF_SOURCE)).toEqual(remembered(source, NOT_PACKED_OF_SOURCE));
  expect(remembered(source, NOT_PACKED_OF_SOURCE)).not.toEqual(remembered(freshSource(), NOT_PACKED_OF_SOURCE));
});

test("a fresh source without samples and without an error is found again", () => {
  const found = wholeSource(allValues(freshSource()));
  expect(remembered(found, NOT_PACKED_OF_SOURCE)).toEqual(remembered(freshSource(), NOT_PACKED_OF_SOURCE));
});

test("everything that is remembered of a scope is packed and found again", () => {
  const scope = freshScope();
  poolOf(scope, 1);
  fill(scope, NOT_PACKED_OF_SCOPE);
  const found = freshScope();
  restoreScope(found, flattenScope(scope));
  expect(remembered(found, NOT_PACKED_OF_SCOPE)).toEqual(remembered(scope, NOT_PACKED_OF_SCOPE));
  const fresh = freshScope();
  restoreScope(found, flattenScope(fresh));
  expect(fresh.pool).toBe(null);
});

const LEASE: Lease = {
  grant: {
    leaseId: "id",
    source: "s",
    startInMs: 1,
    epoch: 2,
    probe: true,
    windowId: 3,
    reservedTokens: 4,
    leaseTtlMs: 5,
    firstTokenDueMs: 6,
    hedgeAfterMs: 7,
    passedOver: [{ source: "t", reason: "tpm", waitMs: 8 }],
  },
  globalWindowId: 9,
  expiresAtMs: 10,
  startedAtMs: 11,
  inflight: 12,
  promptTokens: 13,
  tag: "tag",
  retry: true,
  overdue: "told",
  ttftMs: 14,
};
const BARE_GRANT = { ...LEASE.grant, windowId: null, firstTokenDueMs: null, hedgeAfterMs: null };
const BARE_LEASE: Lease = { ...LEASE, grant: BARE_GRANT, globalWindowId: null, promptTokens: undefined };

test.each([
  ["of which everything is known", LEASE],
  ["without what it need not have", BARE_LEASE],
])("a lease %s is packed and found again", (_, lease) => {
  const packed = flattenLease(lease);
  expect(restoreLease("id", ...(packed as PackedLease))).toEqual(lease);
  // A list ends at its first gap.
  expect(packed).not.toContain(null);
  expect(packed).not.toContain(undefined);
  const types = packed
    .slice(0, LEASE_TYPES.length)
    .map((value) => (typeof value === "object" ? "table" : typeof value));
  expect(types).toEqual(LEASE_TYPES);
});

test("a lease of another layout is none", () => {
  expect(restoreLease("id", ...([1, ...flattenLease(LEASE).slice(1)] as PackedLease))).toBe(null);
});

test("the script is what the rules give", () => {
  const program = fileURLToPath(new URL("../../scripts/build-lua.mjs", import.meta.url));
  const { status, stderr } = spawnSync(process.execPath, [program, "--check"], { encoding: "utf8" });
  expect(stderr).toBe("");
  expect(status).toBe(0);
});
