import type { Grant, Refusal, TickBatch, TickReply, Want } from "../domain/tick.js";
import type { Governor, GovernorEvent } from "../ports/governor.js";
import { SimulationKernel } from "../testing/kernel.js";
import { Dispatcher } from "./dispatcher.js";
import type { QueueEntry } from "./want-queue.js";

export type GovernorKind = "sync" | "async";

export const WORKER = "this:1:worker";

/** What the test's governor says to one want: granted, or refused so. */
export type WantAnswer = true | Partial<Refusal>;

export interface Bench {
  readonly kernel: SimulationKernel;
  readonly dispatcher: Dispatcher;
  /** Every tick as it was asked; wants are copied, so that later counting doesn't change them. */
  readonly ticks: TickBatch[];
  /** Grants that no settle has given back. */
  readonly held: Set<string>;
  /** The script; by default everything is refused. */
  answer: (want: Want, batch: TickBatch) => WantAnswer;
  /** Replaces the whole reply, or fails. */
  reply: ((batch: TickBatch, usual: () => TickReply) => TickReply) | null;
  /** Fails without a promise even where the others come by promise. */
  failNow: Error | null;
  emit(event: GovernorEvent): void;
  entry(overrides?: Partial<Want>, stays?: (refusal: Refusal) => boolean, backendGraceMs?: number): TestEntry;
  /** Asks for a permit; the end is in `entry.end` as soon as it is known. */
  admit(entry: TestEntry): TestEntry;
  admitAll(entries: readonly TestEntry[]): Promise<void>;
  /** Lets everything of this moment happen. */
  rest(): Promise<void>;
}

export interface TestEntry extends QueueEntry {
  end: "granted" | Refusal | Error | null;
}

/** The end of some attempt. */
export const SETTLE = {
  leaseId: "other",
  source: "a",
  epoch: 0,
  probe: false,
  windowId: null,
  reservedTokens: 0,
  actualTokens: 0,
  sent: true,
  outcome: "success",
  durationMs: 1,
} as const;

export const FREED: GovernorEvent = { type: "capacity", source: "a" };

/** A dispatcher in front of a scripted governor that answers in the same turn or by promise. */
export function createBench(kind: GovernorKind): Bench {
  const kernel = new SimulationKernel();
  const runtime = kernel.runtime();
  const listeners = new Set<(event: GovernorEvent) => void>();

  const usual = (batch: TickBatch): TickReply => {
    for (const settle of batch.settles) bench.held.delete(settle.leaseId);
    const grants: Grant[] = [];
    const refusals: Refusal[] = [];
    for (const want of batch.wants) {
      const said = bench.held.has(want.leaseId) || bench.answer(want, batch);
      if (said === true) grants.push(grantFor(want));
      else refusals.push({ leaseId: want.leaseId, kind: "gate", waitHintMs: 60_000, passedOver: [], ...said });
    }
    for (const grant of grants) bench.held.add(grant.leaseId);
    const applied = [...batch.settles, ...batch.verdicts, ...batch.renew].map(() => true);
    return { grants, refusals, hintMs: null, applied };
  };

  const governor: Governor = {
    scope: "LLM",
    tick(batch) {
      bench.ticks.push({ ...batch, wants: batch.wants.map((want) => ({ ...want })) });
      if (bench.failNow !== null) throw bench.failNow;
      const execute = () => (bench.reply === null ? usual(batch) : bench.reply(batch, () => usual(batch)));
      return kind === "sync" ? execute() : Promise.resolve().then(execute);
    },
    onEvent(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    snapshot: () => ({ scope: "LLM", sources: [], backend: { kind: "test", ok: true } }),
    progressAgeMs: () => 0,
    close: async () => {},
  };

  const bench: Bench = {
    kernel,
    dispatcher: new Dispatcher({
      governor,
      runtime,
      worker: WORKER,
      leaseTtlMs: 30_000,
      leaseRenewal: false,
      warn: () => true,
    }),
    ticks: [],
    held: new Set(),
    answer: () => ({}),
    reply: null,
    failNow: null,
    emit(event) {
      for (const listener of listeners) listener(event);
    },
    entry(overrides = {}, stays = () => true, backendGraceMs = 0) {
      const sequence = bench.dispatcher.nextSequence();
      const want: Want = {
        leaseId: `${sequence}`,
        callId: `${sequence}`,
        candidates: ["a", "b"],
        failedHere: [],
        limitedHere: [],
        estTokens: 0,
        priority: 0,
        waitedMs: 0,
        ...overrides,
      };
      return { want, sequence, staysAfter: stays, backendGraceMs, end: null };
    },
    admit(entry) {
      const note = (answer: Grant | Refusal) => (entry.end = "kind" in answer ? answer : "granted");
      try {
        const answer = bench.dispatcher.admit(entry);
        if (answer instanceof Promise) answer.then(note, (error: Error) => (entry.end = error));
        else note(answer);
      } catch (error) {
        entry.end = error as Error;
      }
      return entry;
    },
    async admitAll(entries) {
      for (const entry of entries) bench.admit(entry);
      await bench.rest();
    },
    rest: () => kernel.advance(0),
  };
  return bench;
}

function grantFor(want: Want): Grant {
  return {
    leaseId: want.leaseId,
    source: want.candidates[0]!,
    startInMs: 0,
    epoch: 0,
    probe: false,
    windowId: null,
    reservedTokens: 0,
    leaseTtlMs: 30_000,
    passedOver: [],
  };
}

/** Lease ids of each tick's wants. */
export const asked = (ticks: readonly TickBatch[]): string[][] =>
  ticks.map((tick) => tick.wants.map((want) => want.leaseId));
