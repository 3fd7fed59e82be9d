import fc from "fast-check";
import { expect, test } from "vitest";
import { MemoryLeases } from "./memory-leases.js";

const TTL_MS = 30_000;
const SOURCES = ["a", "b"];
/** What the book only keeps for others. */
const UNUSED = {
  globalWindowId: null,
  startedAtMs: 0,
  inflight: 1,
  promptTokens: undefined,
  tag: "",
  retry: false,
  overdue: "no",
  ttftMs: 0,
} as const;

const verb = fc.oneof(
  { weight: 3, arbitrary: fc.record({ type: fc.constant("add" as const), source: fc.constantFrom(...SOURCES) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("remove" as const), pick: fc.nat(40) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("renew" as const), pick: fc.nat(40) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("advance" as const), ms: fc.nat(20_000) }) },
);

function grantOf(leaseId: string, source: string) {
  const facts = { startInMs: 0, epoch: 0, probe: false, windowId: null, reservedTokens: 0, leaseTtlMs: TTL_MS };
  return { leaseId, source, ...facts, passedOver: [] };
}

test("permits in use are the live leases; each ends once, by removal or by its TTL since the last renewal", () => {
  fc.assert(
    fc.property(fc.array(verb, { maxLength: 100, size: "max" }), (verbs) => {
      const book = new MemoryLeases();
      const live = new Map<string, { source: string; expiresAtMs: number }>();
      let now = 0;
      let made = 0;
      for (const v of verbs) {
        if (v.type === "add") {
          const leaseId = `lease-${made++}`;
          book.add({ ...UNUSED, grant: grantOf(leaseId, v.source), expiresAtMs: now + TTL_MS });
          live.set(leaseId, { source: v.source, expiresAtMs: now + TTL_MS });
        } else if (v.type === "remove") {
          const leaseId = `lease-${v.pick}`;
          expect(book.remove(leaseId)?.grant.leaseId).toBe(live.has(leaseId) ? leaseId : undefined);
          live.delete(leaseId);
        } else if (v.type === "renew") {
          const lease = live.get(`lease-${v.pick}`);
          expect(book.renew(`lease-${v.pick}`, now + TTL_MS)).toBe(lease !== undefined);
          if (lease) lease.expiresAtMs = now + TTL_MS;
        } else {
          now += v.ms;
          const ended = [...live].filter(([, lease]) => lease.expiresAtMs <= now).map(([leaseId]) => leaseId);
          const seen: string[] = [];
          book.expire(now, (lease) => seen.push(lease.grant.leaseId));
          expect(seen.sort()).toEqual(ended.sort());
          for (const leaseId of ended) live.delete(leaseId);
        }
        const ends = [...live.values()].map((lease) => lease.expiresAtMs);
        expect(book.nextExpiryMs()).toBe(ends.length === 0 ? null : Math.min(...ends));
        for (const source of SOURCES) {
          const own = [...live.values()].filter((lease) => lease.source === source).map((lease) => lease.expiresAtMs);
          expect(book.inflightOf(source)).toBe(own.length);
          expect(book.nextExpiryOfMs(source)).toBe(own.length === 0 ? null : Math.min(...own));
        }
      }
    }),
  );
});
