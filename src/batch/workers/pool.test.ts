import { describe, expect, it } from "vitest";
import { AllSourcesExhausted, GovernanceBackendError, TransientError } from "../../errors.js";
import { SimulationKernel } from "../../testing/kernel.js";
import type { LineAnswer, LineCall } from "../kinds/kinds.js";
import type { BatchSnapshot } from "../types.js";
import type { FromWorker, ToWorker } from "./messages.js";
import { createWorkerPool, type WorkerPool } from "./pool.js";
import { LineKillsWorkersError, WorkersFailedError } from "./restarts.js";
import { toWire } from "./wire-error.js";
import type { WorkerEvents } from "./worker-process.js";

/** A worker that does nothing by itself. */
interface FakeWorker {
  readonly pid: number;
  /** Ids of the calls it has, in order. */
  readonly calls: number[];
  readonly said: ToWorker[];
  killed: boolean;
  tell(message: FromWorker): void;
  answer(id: number): void;
  die(): void;
  /** Ends by itself, as for a fault of its own. */
  crash(): void;
}

const answer = { body: "ok" } as LineAnswer;
const lineCall = (line: string): LineCall => ({
  request: { kind: "chat", request: { messages: [] } },
  sessionId: "batch",
  parentCallId: line,
});
const never = (): AbortSignal => new AbortController().signal;
const snapshot = (live: number, waiting = 0) =>
  ({
    sources: [{ name: "a", inflight: 99 }],
    leases: { live },
    waiting: { count: waiting, oldestMs: 5 },
  }) as never as BatchSnapshot;

function usePool(workers = 2, concurrency = 4) {
  const kernel = new SimulationKernel({ seed: 1 });
  const started: FakeWorker[] = [];
  const notes: string[] = [];

  function startWorker({ onMessage, onEnd }: WorkerEvents) {
    const worker: FakeWorker = {
      pid: started.length + 1,
      calls: [],
      said: [],
      killed: false,
      tell: onMessage,
      answer(id) {
        worker.calls.splice(worker.calls.indexOf(id), 1);
        onMessage({ kind: "answer", id, answer });
      },
      die: () => onEnd("was killed by SIGKILL", true),
      crash: () => onEnd("ended with exit code 7", false),
    };
    started.push(worker);
    return {
      pid: worker.pid,
      put(message: ToWorker) {
        worker.said.push(message);
        if (message.kind === "call") worker.calls.push(message.id);
      },
      kill() {
        worker.killed = true;
        worker.die();
      },
    };
  }

  const pool = createWorkerPool({
    scope: "LLM",
    kind: "chat",
    models: ["m"],
    setup: { scope: "LLM" },
    workers,
    concurrency,
    runtime: kernel.runtime(),
    startWorker,
    onNote: (text) => notes.push(text),
  });
  return { kernel, pool, started, notes };
}

/** Two workers, ready. */
async function readyPool(concurrency = 4) {
  const setting = usePool(2, concurrency);
  const start = setting.pool.start(undefined);
  for (const worker of setting.started) worker.tell({ kind: "ready" });
  await start;
  const [first, second] = setting.started as [FakeWorker, FakeWorker];
  return { ...setting, first, second };
}

const ask = (pool: WorkerPool, count: number) =>
  Array.from({ length: count }, (_, at) => pool.call(lineCall(`l${at}`), never()));

describe("a pool of workers", () => {
  it("starts no more of them than there are lines, and none for none", async () => {
    const few = usePool(8, 100);
    const start = few.pool.start(3);
    expect(few.started).toHaveLength(3);
    few.started[1]?.tell({ kind: "ready" });
    await start;
    const none = usePool();
    await none.pool.start(0);
    expect(none.started).toHaveLength(0);
    await none.pool.close(1_000);
  });

  it("shares the lines in flight out evenly, also while a worker still starts", async () => {
    const { pool, started } = usePool(2, 4);
    const start = pool.start(undefined);
    const [first, second] = started as [FakeWorker, FakeWorker];
    first.tell({ kind: "ready" });
    await start;
    const calls = ask(pool, 4);
    expect([first.calls.length, second.calls.length]).toEqual([2, 0]);
    second.tell({ kind: "ready" });
    expect([first.calls.length, second.calls.length]).toEqual([2, 2]);
    for (const worker of [first, second]) for (const id of [...worker.calls]) worker.answer(id);
    expect(await Promise.all(calls)).toEqual([answer, answer, answer, answer]);
  });

  it("hands the lines of a dead worker to the others at once, in order, and takes no late word of it", async () => {
    const { kernel, pool, first, second, started, notes } = await readyPool();
    const calls = ask(pool, 4);
    const lost = [...first.calls];
    first.die();
    expect(second.calls.slice(-2)).toEqual(lost);
    expect(notes).toEqual(["A worker was killed by SIGKILL. Its lines in flight are run again: 2."]);
    first.tell({ kind: "answer", id: lost[0] as number, answer: { body: "late" } as LineAnswer });
    for (const id of [...second.calls]) second.answer(id);
    expect(await Promise.all(calls)).toEqual([answer, answer, answer, answer]);
    await kernel.advance(250);
    expect(started).toHaveLength(3);
    expect(pool.workers()).toMatchObject([
      { pid: 3, state: "starting", deaths: 1, handedOn: 2 },
      { pid: 2, state: "working", deaths: 0, finished: 4 },
    ]);
  });

  it("gives an error as it was", async () => {
    const { pool, first } = await readyPool();
    const error = new AllSourcesExhausted("every try failed", {
      scope: "LLM",
      reason: "retry_exhausted",
      retryAfterMs: 7,
      cause: new TransientError("503", { statusCode: 503, bodyText: "busy" }),
    });
    const [call] = ask(pool, 1);
    first.tell({ kind: "failure", id: 0, error: JSON.parse(JSON.stringify(toWire(error))) });
    const got = await call?.catch((reason: unknown) => reason);
    expect(got).toBeInstanceOf(AllSourcesExhausted);
    expect(got).toMatchObject({
      reason: "retry_exhausted",
      retryAfterMs: 7,
      cause: { statusCode: 503, bodyText: "busy" },
    });
  });

  it("cancels a call wherever it is", async () => {
    const { pool, first, second } = await readyPool(2);
    const controller = new AbortController();
    const calls = ["a", "b", "c"].map((line) => pool.call(lineCall(line), controller.signal));
    controller.abort("stopped");
    expect(await Promise.allSettled(calls)).toEqual(calls.map(() => ({ status: "rejected", reason: "stopped" })));
    for (const worker of [first, second]) expect(worker.said.at(-1)).toMatchObject({ kind: "cancel" });
    expect(pool.workers()).toMatchObject([{ inFlight: 0 }, { inFlight: 0 }]);
    const late = pool.call(lineCall("d"), controller.signal);
    await expect(late).rejects.toBe("stopped");
  });
});

describe("a worker that dies again and again", () => {
  it("ends the pool: what waits is told why, what others have goes on", async () => {
    const { kernel, pool, first, second, started } = await readyPool();
    const calls = ask(pool, 4);
    const kept = [...second.calls];
    first.die();
    for (const waitMs of [250, 500, 1_000, 2_000]) {
      await kernel.advance(waitMs);
      started.at(-1)?.die();
    }
    await kernel.advance(60_000);
    expect(started).toHaveLength(6);
    const late = pool.call(lineCall("late"), never());
    await expect(late).rejects.toThrow(WorkersFailedError);
    await expect(late).rejects.toThrow(/died 5 times in a row without finishing a line \(the last one was killed/);
    // The lines of the dead had gone to the other one.
    for (const id of [...second.calls]) second.answer(id);
    expect(kept).toHaveLength(2);
    expect(await Promise.all(calls)).toHaveLength(4);
  });

  it("counts from a finished line on anew", async () => {
    const { kernel, pool, started } = await readyPool();
    for (let round = 0; round < 20; round++) {
      await kernel.advance(10_000);
      const call = pool.call(lineCall("x"), never());
      for (const worker of started.slice(-2)) worker.tell({ kind: "ready" });
      const owner = started.find(({ calls }) => calls.length > 0) as FakeWorker;
      owner.answer(owner.calls[0] as number);
      await call;
      owner.die();
    }
    expect(pool.workers().reduce((sum, { deaths }) => sum + deaths, 0)).toBe(20);
  });

  it("or can't work with the configuration: the start says so", async () => {
    const { pool, started } = usePool();
    const start = pool.start(undefined);
    started[0]?.tell({ kind: "refused", reason: "polygateway.yaml is gone" });
    await expect(start).rejects.toThrow("A worker can't work: polygateway.yaml is gone");
    const closed = pool.close(1_000);
    for (const worker of started) worker.die();
    await closed;
    expect(started).toHaveLength(2);
  });
});

describe("a line that workers die of", () => {
  const crashed = /^3 workers died while they had this line.*ended with exit code 7/;

  /** Plays until nothing more happens: workers start, end at a deadly line, and answer all others. */
  async function playOut(
    { kernel, started }: ReturnType<typeof usePool>,
    isDeadly: (id: number) => boolean,
    how: "die" | "crash",
  ) {
    const gone = new Set<FakeWorker>();
    const companies: number[][] = [];
    for (let turn = 0; turn < 400; turn++) {
      for (const worker of started) {
        if (gone.has(worker)) continue;
        if (!worker.said.some(({ kind }) => kind === "call")) worker.tell({ kind: "ready" });
        if (worker.calls.some(isDeadly)) {
          companies.push([...worker.calls]);
          gone.add(worker);
          worker[how]();
        } else for (const id of [...worker.calls]) worker.answer(id);
      }
      await kernel.advance(100);
    }
    return companies;
  }

  it("fails after three of them, the last one alone with it; all others are answered", async () => {
    const pool = await readyPool(6);
    const calls = ask(pool.pool, 12);
    const outcomes = Promise.allSettled(calls);
    const companies = await playOut(pool, (id) => id === 0, "crash");
    expect(companies.map((ids) => ids.length)).toEqual([3, expect.any(Number), 1]);
    const [bad, ...good] = await outcomes;
    expect(bad).toMatchObject({ status: "rejected", reason: expect.any(LineKillsWorkersError) });
    expect((bad as PromiseRejectedResult).reason.message).toMatch(crashed);
    expect(good.every(({ status }) => status === "fulfilled")).toBe(true);
    expect(pool.notes.at(-1)).toContain('Line "l0" is recorded as failed');
    // Nobody has run the line again after that.
    expect(pool.pool.workers().reduce((sum, { deaths }) => sum + deaths, 0)).toBe(3);
  });

  it("fails where it is the last one, with one worker, too", async () => {
    const setting = usePool(2, 1);
    const start = setting.pool.start(1);
    setting.started[0]?.tell({ kind: "ready" });
    await start;
    const bad = setting.pool.call(lineCall("bad"), never());
    const outcome = bad.catch((error: unknown) => error);
    await playOut(setting, () => true, "crash");
    expect(await outcome).toBeInstanceOf(LineKillsWorkersError);
  });

  it("fails also when something outside kills them for it, which takes more proof", async () => {
    const setting = usePool(2, 1);
    const start = setting.pool.start(1);
    setting.started[0]?.tell({ kind: "ready" });
    await start;
    const outcome = setting.pool.call(lineCall("bad"), never()).catch((error: unknown) => error);
    const companies = await playOut(setting, () => true, "die");
    expect(companies).toHaveLength(4);
    expect(await outcome).toBeInstanceOf(LineKillsWorkersError);
  });

  it("is not blamed for what kills workers without it as well", async () => {
    const { kernel, pool, first, second, started } = await readyPool(2);
    const outcomes = Promise.allSettled(ask(pool, 2));
    for (let round = 0; round < 5; round++) {
      for (const worker of round === 0 ? [first, second] : started.slice(-2)) worker.die();
      await kernel.advance(10_000);
      for (const worker of started.slice(-2)) worker.tell({ kind: "ready" });
    }
    for (const outcome of await outcomes) expect(outcome).toMatchObject({ reason: expect.any(WorkersFailedError) });
  });

  it("is one of two at most in a row: then it is no line that they die of", async () => {
    const pool = await readyPool(4);
    const outcomes = Promise.allSettled(ask(pool.pool, 8));
    await playOut(pool, () => true, "crash");
    const reasons = (await outcomes).map((outcome) => (outcome as PromiseRejectedResult).reason);
    expect(reasons.filter((reason) => reason instanceof LineKillsWorkersError).length).toBeLessThanOrEqual(2);
    expect(reasons.filter((reason) => reason instanceof WorkersFailedError).length).toBeGreaterThanOrEqual(6);
  });

  it("and others like it fail each, while what else there is goes on", async () => {
    const pool = await readyPool(4);
    const outcomes = Promise.allSettled(ask(pool.pool, 40));
    await playOut(pool, (id) => id % 13 === 0, "crash");
    const failed = (await outcomes).flatMap(({ status }, id) => (status === "rejected" ? [id] : []));
    expect(failed).toEqual([0, 13, 26, 39]);
  });
});

describe("what a pool knows of the scope", () => {
  it("adds up who waits and the permits held; the sources are the same for all", async () => {
    const { pool, first, second } = await readyPool();
    const asked = pool.snapshot();
    first.tell({ kind: "state", snapshot: snapshot(1, 2), live: 1 });
    second.tell({ kind: "state", snapshot: snapshot(3, 4), live: 3 });
    expect(await asked).toMatchObject({
      sources: [{ inflight: 99 }],
      leases: { live: 4 },
      waiting: { count: 6, oldestMs: 5 },
    });
  });

  it("counts every line of a frozen worker as being answered, and says for how long it is silent", async () => {
    const { kernel, pool, first, second } = await readyPool();
    void ask(pool, 4);
    const asked = pool.snapshot();
    first.tell({ kind: "state", snapshot: snapshot(0), live: 0 });
    await kernel.advance(1_000);
    expect(await asked).toMatchObject({ leases: { live: 2 } });
    expect(pool.workers()).toMatchObject([{ silentMs: 0 }, { silentMs: 1_000 }]);
    // It is not asked again before it has answered.
    void pool.snapshot();
    expect(second.said.filter(({ kind }) => kind === "ask")).toHaveLength(1);
    second.tell({ kind: "state", snapshot: snapshot(2), live: 2 });
    expect(pool.workers()).toMatchObject([{}, { silentMs: 0 }]);
  });

  it("knows the permits held, and says why nobody can be asked, while the limits are away", async () => {
    const { pool, first, second } = await readyPool();
    const trouble = toWire(new GovernanceBackendError("Redis is away", { scope: "LLM" }));
    const [asked, held] = [pool.snapshot(), pool.leases()];
    first.tell({ kind: "state", snapshot: null, trouble, live: 1 });
    second.tell({ kind: "state", snapshot: null, trouble, live: 2 });
    await expect(asked).rejects.toSatisfy(GovernanceBackendError.isInstance);
    expect(await held).toEqual({ live: 3 });
  });

  it("says the same words of several workers once", async () => {
    const { kernel, first, second, notes } = await readyPool();
    for (const worker of [first, second]) worker.tell({ kind: "note", text: "the disk is slow" });
    expect(notes).toEqual(["the disk is slow"]);
    await kernel.advance(20_000);
    first.tell({ kind: "note", text: "the disk is slow" });
    expect(notes).toHaveLength(2);
    first.tell({ kind: "note", text: "Redis is away: refused", topic: "outage" });
    second.tell({ kind: "note", text: "Redis is away: closed", topic: "outage" });
    expect(notes.slice(2)).toEqual(["Redis is away: refused"]);
  });
});

describe("the end of a pool", () => {
  it("lets every worker end, and kills the one that doesn't", async () => {
    const { kernel, pool, first, second, notes } = await readyPool();
    const closed = pool.close(1_000);
    expect([first, second].map(({ said }) => said.at(-1))).toEqual([{ kind: "end" }, { kind: "end" }]);
    first.die();
    await kernel.advance(1_000);
    await closed;
    expect([first.killed, second.killed]).toEqual([false, true]);
    expect(notes).toEqual(["Worker 2 doesn't end: it is killed."]);
    expect(pool.workers()).toMatchObject([{ deaths: 0 }, { deaths: 0 }]);
  });
});
