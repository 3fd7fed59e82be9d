import { describe, expect, it } from "vitest";
import { measure } from "./support-hostile/measure.js";
import { growing, makeMonsters } from "./support-hostile/monsters.js";

/**
 * Every hostile answer, each against the shipped client in a process of its own: how it ends, by how much that process's
 * memory grows, and that the permit comes back. A stream that nobody iterates (`final`) has the most to hold.
 */

const MOST_KIB = 64 * 1_024;
/** Far beyond what any of them needs on a slow machine; only those that end by a timer get near one. */
const PATIENCE_MS = 90_000;

const patient = (limitMs: number) => ({ timeoutMs: limitMs, ttftTimeoutMs: limitMs, interTokenTimeoutMs: limitMs });

it.each(makeMonsters().map((monster) => [monster.name, monster] as const))(
  "less than 64 MiB: %s",
  async (_name, { code, respond, timeoutMs = PATIENCE_MS }) => {
    let leastKiB = Number.POSITIVE_INFINITY;
    // What an answer needs is the least of what was taken: on a busy machine the collector comes late.
    for (let tries = 0; tries < 3 && leastKiB >= MOST_KIB; tries += 1) {
      const measured = await measure("final", respond, { source: patient(timeoutMs) });
      expect(measured).toMatchObject({ ok: code === null, inflight: 0 });
      expect(measured.code ?? null).toBe(code);
      leastKiB = Math.min(leastKiB, measured.grownKiB);
    }
    expect(leastKiB, "memory in KiB").toBeLessThan(MOST_KIB);
  },
  400_000,
);

describe("four times the answer costs no more than about four times the work", () => {
  /** Quadratic work would cost sixteen times as much. */
  const MOST = 10;
  /** What a call costs anyway. */
  const BASE_MS = 50;

  it.each(growing())(
    "%s",
    async (_name, count, respond) => {
      const costs: number[] = [];
      for (const times of [1, 4]) {
        const measured = await measure("final", respond(times * count), { source: patient(PATIENCE_MS) });
        costs.push(measured.cpuMs + BASE_MS);
      }
      expect(costs[1]! / costs[0]!).toBeLessThan(MOST);
    },
    200_000,
  );
});
