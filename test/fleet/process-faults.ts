import { setTimeout as sleep } from "node:timers/promises";
import type { Member } from "./crew.js";
import { type Arena, any, draw, type Fault } from "./fault.js";

const DAY_MS = 86_400_000;

/** Somebody is left who works. */
function victimOf({ crew, next }: Arena): Member | undefined {
  const { active } = crew;
  return active.length < 2 ? undefined : any(next, active);
}

async function freezeOne(arena: Arena, end: "wake" | "kill"): Promise<boolean> {
  const { crew, next, leaseTtlMs } = arena;
  const victim = victimOf(arena);
  if (victim === undefined) return false;
  crew.freeze(victim);
  await sleep(draw(next, 1.4 * leaseTtlMs, 2.4 * leaseTtlMs));
  if (end === "wake") crew.wake(victim);
  else crew.kill(victim);
  return true;
}

export const FROZEN: Fault = {
  id: "F51",
  what: "a process frozen beyond its permits, then woken",
  inject: (arena) => freezeOne(arena, "wake"),
};

export const KILLED: Fault = {
  id: "F50",
  what: "a process killed",
  async inject(arena) {
    const victim = victimOf(arena);
    if (victim !== undefined) arena.crew.kill(victim);
    return victim !== undefined;
  },
};

export const FROZEN_KILLED: Fault = {
  id: "F50f",
  what: "a process frozen, then killed",
  inject: (arena) => freezeOne(arena, "kill"),
};

export const CLOCK: Fault = {
  id: "F43",
  what: "the wall clock of a process jumps by a day, on and back",
  met: ({ rowsOfAnotherTime }) => rowsOfAnotherTime,
  async inject({ crew, next }) {
    const victim = any(next, crew.active);
    if (victim === undefined) return false;
    for (const offsetMs of [DAY_MS, -DAY_MS, 0]) {
      crew.setClock(victim, offsetMs);
      await sleep(draw(next, 800, 2_000));
    }
    return true;
  },
};
