import { expect } from "vitest";
import type { Governor, GovernorEvent, Grant, Settle, TickBatch, Verdict, Want } from "../../src/ports/governor.js";
import type { DifferentialScript, RandomSettle, RandomStep, RandomVerdict, RandomWant } from "./differential-script.js";

/** Two governors of one configuration, by one clock. */
export interface Pair {
  readonly memory: Governor;
  readonly redis: Governor;
  advance(ms: number): void;
}

/** Grants that steps may mean: older ones are settled, or ended long ago. */
const REMEMBERED = 24;

/** What was asked and granted so far; steps mean it by position. */
interface History {
  readonly names: readonly string[];
  readonly wants: Want[];
  readonly grants: Grant[];
  /** Of each source: Redis counts epochs from the moment it got to know it. */
  readonly firstEpochs: Map<string, number>;
  readonly settles: Settle[];
  /** Calls that may use the same sources share one list of them, as those of a client do. */
  readonly candidates: Map<number, readonly string[]>;
  leases: number;
}

const picked = <T>(items: readonly T[], pick: number): T | undefined => items[pick % Math.max(1, items.length)];
const byMask = <T>(items: readonly T[], mask: number): T[] => items.filter((_, index) => (mask >> index) & 1);

/** Gives the same verbs to both and compares every answer, event and state on the way. */
export async function playOnBoth(pair: Pair, script: DifferentialScript): Promise<void> {
  const { memory, redis } = pair;
  const told: [GovernorEvent[], GovernorEvent[]] = [[], []];
  memory.onEvent((event) => told[0].push(event));
  redis.onEvent((event) => told[1].push(event));
  const names = script.sources.map((_, index) => `s${index}`);
  const history: History = {
    names,
    wants: [],
    grants: [],
    settles: [],
    firstEpochs: new Map(),
    candidates: new Map(),
    leases: 0,
  };
  let hintMs = 0;
  for (const [at, step] of script.steps.entries()) {
    const place = `step ${at} (${step.type})`;
    if (step.type === "advance") pair.advance(step.ms);
    else if (step.type === "advance_to_hint") pair.advance(Math.min(hintMs, 3_600_000));
    else if (step.type === "look") await compareStates(pair, history, place);
    else {
      const batch = batchOf(history, step, at);
      const reply = await memory.tick(batch);
      const answer = await redis.tick(batch);
      const grants = answer.grants.map((grant, n) => ({ ...grant, epoch: epochOf(history, grant, reply.grants[n]) }));
      expectSame({ ...answer, grants }, reply, `${place}: reply`);
      expectSame(told[1], told[0], `${place}: events`);
      for (const events of told) events.length = 0;
      history.grants.push(...reply.grants);
      hintMs = reply.hintMs ?? hintMs;
    }
  }
  await compareStates(pair, history, "the end");
}

async function compareStates({ memory, redis }: Pair, history: History, place: string): Promise<void> {
  // A look takes expired leases out of the state in memory, and tells nobody; Redis changes nothing by a look.
  const nothing: TickBatch = { worker: "w:0", seed: 1, settles: [], verdicts: [], renew: [], wants: [] };
  expectSame(await redis.tick(nothing), await memory.tick(nothing), `${place}: empty tick`);
  const { backend: _memory, ...expected } = await memory.snapshot();
  const { backend: _redis, ...actual } = await redis.snapshot();
  // Workers are a set; a hash keeps no order.
  const sorted = <T extends typeof expected>({ workers = [], ...rest }: T) => ({
    ...rest,
    workers: workers.toSorted((a, b) => (a.worker < b.worker ? -1 : 1)),
  });
  const sources = actual.sources.map((source) => ({
    ...source,
    // Nothing was ever granted there: it is new every time it is looked at.
    epoch: history.firstEpochs.has(source.name) ? source.epoch - history.firstEpochs.get(source.name)! : 0,
  }));
  expectSame(sorted({ ...actual, sources }), sorted(expected), `${place}: snapshot`);
  expectSame(await redis.progressAgeMs(), await memory.progressAgeMs(), `${place}: progress`);
}

/** As the memory governor counts. */
function epochOf({ firstEpochs }: History, { source, epoch }: Grant, expected: Grant | undefined): number {
  if (!firstEpochs.has(source)) firstEpochs.set(source, epoch - (expected?.epoch ?? 0));
  return epoch - firstEpochs.get(source)!;
}

function batchOf(history: History, step: Extract<RandomStep, { type: "tick" }>, at: number): TickBatch {
  const recent = history.grants.slice(-REMEMBERED);
  const known = history.wants.slice(-REMEMBERED);
  const settles = step.settles.flatMap((settle) => settleOf(history, recent, settle));
  history.settles.push(...settles);
  const again = step.askAgain === null ? undefined : picked(known, step.askAgain);
  const fresh = step.wants.map((want) => wantOf(history, want));
  history.wants.push(...fresh);
  return {
    worker: `w:${step.worker}`,
    seed: Math.imul(at + 1, 0x9e3779b1) >>> 0,
    settles,
    verdicts: step.verdicts.flatMap((verdict) => verdictOf(recent, verdict)),
    renew: byMask(recent, step.renew).map(({ leaseId }) => leaseId),
    wants: again === undefined || fresh.includes(again) ? fresh : [again, ...fresh],
  };
}

function wantOf(history: History, want: RandomWant): Want {
  const { candidates, failedHere, limitedHere, affinity, ...rest } = want;
  history.leases += 1;
  return {
    ...rest,
    leaseId: `lease-${history.leases}`,
    callId: `call-${history.leases}`,
    candidates: candidatesOf(history, candidates),
    failedHere: byMask(history.names, failedHere),
    limitedHere: byMask(history.names, limitedHere),
    ...(affinity === undefined ? {} : { affinity: picked(history.names, affinity)! }),
  };
}

function candidatesOf({ names, candidates }: History, mask: number): readonly string[] {
  const named = candidates.get(mask) ?? byMask(names, mask);
  candidates.set(mask, named);
  return named.length > 0 ? named : names;
}

function settleOf(history: History, recent: readonly Grant[], settle: RandomSettle): Settle[] {
  const { pick, repeat, actualPercent, ...rest } = settle;
  if (repeat) {
    const earlier = picked(history.settles.slice(-REMEMBERED), pick);
    return earlier === undefined ? [] : [earlier];
  }
  const grant = picked(recent, pick);
  if (grant === undefined) return [];
  const { leaseId, source, epoch, probe, windowId, reservedTokens } = grant;
  const actualTokens = actualPercent === null ? null : Math.round((reservedTokens * actualPercent) / 100);
  return [{ leaseId, source, epoch, probe, windowId, reservedTokens, actualTokens, ...rest }];
}

function verdictOf(recent: readonly Grant[], { pick, ...rest }: RandomVerdict): Verdict[] {
  const grant = picked(recent, pick);
  if (grant === undefined) return [];
  const { leaseId, source, epoch, probe } = grant;
  return [{ leaseId, source, epoch, probe, ...rest }];
}

/** Replies travel as text with 14 digits. */
const TOLERANCE = 1e-6;

function expectSame(actual: unknown, expected: unknown, place: string): void {
  const difference = firstDifference(actual, expected, "");
  if (difference !== null) expect.fail(`${place}${difference}`);
}

/** Path and values of the first difference; null = none. What is undefined is absent. */
function firstDifference(actual: unknown, expected: unknown, path: string): string | null {
  if (typeof actual === "number" && typeof expected === "number") {
    const isSame = actual === expected || Math.abs(actual - expected) <= TOLERANCE * Math.max(1, Math.abs(expected));
    return isSame ? null : `${path}: Redis ${actual}, memory ${expected}`;
  }
  if (typeof actual !== "object" || typeof expected !== "object" || actual === null || expected === null) {
    return Object.is(actual, expected)
      ? null
      : `${path}: Redis ${JSON.stringify(actual)}, memory ${JSON.stringify(expected)}`;
  }
  const a = actual as Record<string, unknown>;
  const b = expected as Record<string, unknown>;
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const difference = firstDifference(a[key], b[key], `${path}.${key}`);
    if (difference !== null) return difference;
  }
  return null;
}
