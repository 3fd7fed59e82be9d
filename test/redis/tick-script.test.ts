import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { flattenScope, flattenSource, restoreScope, restoreSource } from "../../src/backends/redis/script/layout.js";
import { MemoryLeases } from "../../src/domain/memory-leases.js";
import { BREAKER_DEFAULTS, SCHEDULING_DEFAULTS } from "../../src/domain/scope.js";
import { newScopeState, type ScopeState } from "../../src/domain/scope-state.js";
import { NO_LIMITS } from "../../src/domain/source.js";
import { sourceConfig } from "../../src/testing/contracts/governor/bench.js";

/** Not of the store: made from the configuration, kept in keys of their own, or of one tick alone. */
const NOT_PACKED_OF_SOURCE = ["config", "priceFactor", "rules", "tokens", "facts", "scoreFacts"];
const NOT_PACKED_OF_SCOPE = [
  "breaker",
  "globalRules",
  "keepsFacts",
  "leaseTtlMs",
  "leases",
  "scheduling",
  "selector",
  "sources",
  "workers",
];

function freshState(): ScopeState {
  const setup = {
    sources: [sourceConfig("a")],
    global: NO_LIMITS,
    breaker: BREAKER_DEFAULTS,
    selector: "health_aware",
    scheduling: SCHEDULING_DEFAULTS,
    leaseTtlMs: 30_000,
  } as const;
  return newScopeState(setup, 1, new MemoryLeases());
}

/** Without what the store keeps elsewhere. */
function remembered(record: object, without: readonly string[]): Record<string, unknown> {
  return structuredClone(Object.fromEntries(Object.entries(record).filter(([name]) => !without.includes(name))));
}

/** Gives every number, text and flag below `record` a value that no other one has. */
function fill(record: Record<string, unknown>, without: readonly string[]): void {
  let next = 1;
  const visit = (part: Record<string, unknown>, names: readonly string[]): void => {
    for (const name of names) {
      const value = part[name];
      next += 1;
      if (typeof value === "number") part[name] = next + 0.5;
      else if (typeof value === "string") part[name] = `text-${next}`;
      else if (typeof value === "boolean") part[name] = !value;
      else if (typeof value === "object" && value !== null) visit(value as Record<string, unknown>, Object.keys(value));
    }
  };
  visit(
    record,
    Object.keys(record).filter((name) => !without.includes(name)),
  );
}

test("everything that is remembered of a source comes back, each field by itself", () => {
  const source = freshState().sources.get("a")!;
  source.gradient.samples.push(1, 2, 3);
  source.lastError = { code: "c", message: "m" };
  fill(source as unknown as Record<string, unknown>, NOT_PACKED_OF_SOURCE);
  const again = freshState().sources.get("a")!;
  restoreSource(again, structuredClone(flattenSource(source)));
  expect(remembered(again, NOT_PACKED_OF_SOURCE)).toEqual(remembered(source, NOT_PACKED_OF_SOURCE));
});

test("everything that is remembered of a scope comes back, each field by itself", () => {
  const state = freshState();
  state.pool = { measuredAtMs: 1, ttftMs: 2, tpotMs: 3, failShare: 4 };
  fill(state as unknown as Record<string, unknown>, NOT_PACKED_OF_SCOPE);
  const again = freshState();
  restoreScope(again, structuredClone(flattenScope(state)));
  expect(remembered(again, NOT_PACKED_OF_SCOPE)).toEqual(remembered(state, NOT_PACKED_OF_SCOPE));
});

test("a fresh state stays fresh: no error, no samples, no medians", () => {
  const [state, again] = [freshState(), freshState()];
  restoreScope(again, flattenScope(state));
  restoreSource(again.sources.get("a")!, flattenSource(state.sources.get("a")!));
  expect(remembered(again, NOT_PACKED_OF_SCOPE)).toEqual(remembered(state, NOT_PACKED_OF_SCOPE));
  expect(remembered(again.sources.get("a")!, NOT_PACKED_OF_SOURCE)).toEqual(
    remembered(state.sources.get("a")!, NOT_PACKED_OF_SOURCE),
  );
});

test("the script is what the rules give", () => {
  const program = fileURLToPath(new URL("../../scripts/build-lua.mjs", import.meta.url));
  const { status, stderr } = spawnSync(process.execPath, [program, "--check"], { encoding: "utf8" });
  expect(stderr).toBe("");
  expect(status).toBe(0);
});
