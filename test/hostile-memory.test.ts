import { expect, it } from "vitest";
import { type MeasuredWay, measure } from "./support-hostile/measure.js";
import { makeMonsters } from "./support-hostile/monsters.js";

/**
 * Every hostile answer, each against the shipped client in a process of its own: how it ends, what that process's memory
 * grows by, and that the permit comes back. The client that nobody iterates (`final`) has the most to hold.
 */

const MOST_KIB = 64 * 1_024;
/** Far beyond what any of them needs on a slow machine; only those that end by a timer get near one. */
const PATIENCE_MS = 90_000;

async function endsWithinBounds(way: MeasuredWay, monster: ReturnType<typeof makeMonsters>[number]): Promise<void> {
  const limitMs = monster.timeoutMs ?? PATIENCE_MS;
  const source = { timeoutMs: limitMs, ttftTimeoutMs: limitMs, interTokenTimeoutMs: limitMs };
  const measured = await measure(way, monster.respond, { source });
  expect(measured).toMatchObject({ ok: monster.code === null, inflight: 0 });
  expect(measured.code ?? null).toBe(monster.code);
  expect(measured.grownKiB, `${way}: memory in KiB`).toBeLessThan(MOST_KIB);
}

it.each(makeMonsters().map((monster) => [monster.name, monster] as const))(
  "less than 64 MiB: %s",
  async (_name, monster) => {
    for (const way of ["chat", "final"] as const) await endsWithinBounds(way, monster);
  },
  300_000,
);
