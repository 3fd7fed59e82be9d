import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import {
  BUCKET_FIELDS,
  POOL_FIELDS,
  partOf,
  SCOPE_PARTS,
  SOURCE_PARTS,
} from "../../src/backends/redis/script/layout.js";
import { MemoryLeases } from "../../src/domain/memory-leases.js";
import { poolOf } from "../../src/domain/scheduling/pool.js";
import { BREAKER_DEFAULTS, SCHEDULING_DEFAULTS } from "../../src/domain/scope.js";
import { newScopeState } from "../../src/domain/scope-state.js";
import { NO_LIMITS } from "../../src/domain/source.js";
import { sourceConfig } from "../../src/testing/contracts/governor/bench.js";

/** Not of the store: made from the configuration, kept in keys of their own, or computed anew by every tick. */
const NOT_PACKED_OF_SOURCE = ["config", "priceFactor", "rules", "tokens"];
const NOT_PACKED_OF_SCOPE = [
  "breaker",
  "globalRules",
  "leaseTtlMs",
  "leases",
  "scheduling",
  "selector",
  "sources",
  "workers",
];
/** Packed behind the fields, each in its own way. */
const LISTS_OF_SCOPE = ["pool"];
const LISTS_OF_SOURCE = ["breaker.buckets", "gradient.samples", "lastError"];

const state = newScopeState(
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
const source = state.sources.get("a")!;

/** The dotted names of everything a rule may remember: numbers, texts and flags, lists and unset values as a whole. */
function fieldsOf(record: object, without: readonly string[], prefix = ""): string[] {
  return Object.entries(record).flatMap(([name, value]) => {
    if (prefix === "" && without.includes(name)) return [];
    const isRecord = typeof value === "object" && value !== null && !Array.isArray(value);
    return isRecord ? fieldsOf(value, [], `${prefix}${name}.`) : [`${prefix}${name}`];
  });
}

const packed = (parts: typeof SOURCE_PARTS): string[] =>
  parts.flatMap(([part, fields]) => fields.map((field) => (part === "" ? field : `${part}.${field}`)));

test("everything that is remembered of a source is packed, and nothing twice", () => {
  const all = [...packed(SOURCE_PARTS), ...LISTS_OF_SOURCE];
  expect(all.toSorted()).toEqual(fieldsOf(source, NOT_PACKED_OF_SOURCE).toSorted());
  expect(new Set(all).size).toBe(all.length);
  expect([...BUCKET_FIELDS]).toEqual(Object.keys(source.breaker.buckets[0]!));
});

test("everything that is remembered of a scope is packed, and nothing twice", () => {
  const all = [...packed(SCOPE_PARTS), ...LISTS_OF_SCOPE];
  expect(all.toSorted()).toEqual(fieldsOf(state, NOT_PACKED_OF_SCOPE).toSorted());
  expect(new Set(all).size).toBe(all.length);
  expect([...POOL_FIELDS]).toEqual(Object.keys(poolOf(state, 1)));
});

test("what is packed is a number, a text or a flag from the start", () => {
  for (const [parts, of] of [
    [SOURCE_PARTS, source],
    [SCOPE_PARTS, state],
  ] as const) {
    for (const [part, fields] of parts) {
      for (const field of fields) {
        expect(typeof partOf(of, part)[field], `${part}.${field}`).toMatch(/^(?:number|string|boolean)$/);
      }
    }
  }
});

test("the script is what the rules give", () => {
  const program = fileURLToPath(new URL("../../scripts/build-lua.mjs", import.meta.url));
  const { status, stderr } = spawnSync(process.execPath, [program, "--check"], { encoding: "utf8" });
  expect(stderr).toBe("");
  expect(status).toBe(0);
});
