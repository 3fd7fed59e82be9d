import { getEventListeners } from "node:events";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type BoundedTask, gatherBounded } from "./gather-bounded.js";
import { SimulationKernel } from "./testing/kernel.js";

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}

/** Fails the test when it is read. */
const untouched: Iterable<BoundedTask<void>> = { [Symbol.iterator]: () => expect.unreachable() };

describe("order and bound", () => {
  test("for any durations and limit: all results in input order, never more than the limit at once, and the limit is used", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 50 }), { maxLength: 30 }),
        fc.integer({ min: 1, max: 8 }),
        fc.boolean(),
        async (durations, limit, isAsync) => {
          const kernel = new SimulationKernel();
          const runtime = kernel.runtime();
          let running = 0;
          let most = 0;
          function* tasks(): Generator<BoundedTask<number>> {
            for (const [index, durationMs] of durations.entries()) {
              expect(running).toBeLessThan(limit);
              yield async () => {
                most = Math.max(most, ++running);
                await runtime.sleep(durationMs);
                running -= 1;
                return index;
              };
            }
          }
          async function* asyncTasks(): AsyncGenerator<BoundedTask<number>> {
            yield* tasks();
          }
          const results = await kernel.run(gatherBounded(isAsync ? asyncTasks() : tasks(), limit));
          expect(results).toEqual([...durations.keys()]);
          expect(most).toBe(Math.min(limit, durations.length));
        },
      ),
    );
  });

  test("tasks are pulled only when there is room", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    let pulled = 0;
    function* endless(): Generator<BoundedTask<void>> {
      for (;;) {
        pulled += 1;
        yield () => runtime.sleep(10);
      }
    }
    const controller = new AbortController();
    const gathered = gatherBounded(endless(), 3, { signal: controller.signal });
    gathered.catch(() => {});
    await kernel.advance(5);
    expect(pulled).toBe(3);
    await kernel.advance(10);
    expect(pulled).toBe(6);
    controller.abort("enough");
    await expect(kernel.run(gathered)).rejects.toBe("enough");
    expect(pulled).toBe(6);
  });

  test("a limit that is no integer ≥ 1 is a RangeError, before anything is pulled", async () => {
    for (const limit of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      await expect(gatherBounded(untouched, limit)).rejects.toThrow(RangeError);
    }
  });

  test("nothing to do is an empty list", async () => {
    expect(await gatherBounded([], 4)).toEqual([]);
    expect(await gatherBounded([], 4, { settle: true })).toEqual([]);
  });
});

describe("the first rejection", () => {
  test("aborts the others with its reason, waits for them, starts nothing more, and is thrown", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    const failure = new Error("first");
    const events: unknown[] = [];
    const tasks: BoundedTask<void>[] = [
      async (signal) => {
        await untilAborted(signal).catch((reason) => events.push(reason));
        await runtime.sleep(500);
        events.push("cleaned up");
        throw new Error("later");
      },
      async () => {
        await runtime.sleep(10);
        throw failure;
      },
      async () => expect.unreachable(),
    ];
    await expect(kernel.run(gatherBounded(tasks, 2))).rejects.toBe(failure);
    expect(events).toEqual([failure, "cleaned up"]);
    expect(kernel.now()).toBe(510);
  });

  test("a task that throws at once is a rejection, and so is one that is no function", async () => {
    const thrown = new Error("at once");
    const throwing = (): Promise<number> => {
      throw thrown;
    };
    await expect(gatherBounded([throwing], 1)).rejects.toBe(thrown);
    await expect(gatherBounded([7 as unknown as BoundedTask<number>], 1)).rejects.toThrow(TypeError);
  });

  test("a rejection with undefined is still a rejection", async () => {
    const outcome = await gatherBounded([() => Promise.reject(undefined)], 1).then(
      () => "resolved",
      () => "rejected",
    );
    expect(outcome).toBe("rejected");
  });
});

describe("settle", () => {
  test("every task runs to its end and says how it ended", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    const signals: AbortSignal[] = [];
    const task =
      (index: number): BoundedTask<number> =>
      async (signal) => {
        signals.push(signal);
        await runtime.sleep(10 - index);
        if (index % 2 === 1) throw index;
        return index;
      };
    expect(await kernel.run(gatherBounded([0, 1, 2, 3].map(task), 3, { settle: true }))).toEqual([
      { status: "fulfilled", value: 0 },
      { status: "rejected", reason: 1 },
      { status: "fulfilled", value: 2 },
      { status: "rejected", reason: 3 },
    ]);
    expect(signals.some((signal) => signal.aborted)).toBe(false);
  });

  test("an error of the iterable lets the running tasks end undisturbed and is thrown", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    let ended: boolean | undefined;
    function* broken(): Generator<BoundedTask<void>> {
      yield async (signal) => {
        await runtime.sleep(50);
        ended = !signal.aborted;
      };
      throw new Error("line 2 cannot be read");
    }
    await expect(kernel.run(gatherBounded(broken(), 2, { settle: true }))).rejects.toThrow("line 2 cannot be read");
    expect(ended).toBe(true);
  });
});

describe("the caller's signal", () => {
  test("aborted beforehand: nothing is pulled", async () => {
    await expect(gatherBounded(untouched, 1, { signal: AbortSignal.abort("early") })).rejects.toBe("early");
  });

  test.each([false, true])(
    "fires in the middle (settle: %s): running tasks are told and awaited, its reason is thrown",
    async (settle) => {
      const kernel = new SimulationKernel();
      const runtime = kernel.runtime();
      const controller = new AbortController();
      const told: unknown[] = [];
      const task: BoundedTask<void> = async (signal) => {
        await untilAborted(signal).catch((reason) => told.push(reason));
        await runtime.sleep(100);
      };
      runtime.setTimer(10, () => controller.abort("left"));
      const options = { signal: controller.signal, settle: settle as false };
      await expect(kernel.run(gatherBounded([task, task, task], 2, options))).rejects.toBe("left");
      expect(told).toEqual(["left", "left"]);
      expect(kernel.now()).toBe(110);
    },
  );

  test("no listener is left on it, however the gathering ends", async () => {
    const { signal } = new AbortController();
    const listeners: number[] = [];
    const task: BoundedTask<void> = async () => void listeners.push(getEventListeners(signal, "abort").length);
    await gatherBounded([task, task], 1, { signal });
    await gatherBounded([() => Promise.reject(new Error("x"))], 1, { signal }).catch(() => {});
    await gatherBounded([() => Promise.reject(new Error("x"))], 1, { signal, settle: true });
    expect(listeners).toEqual([1, 1]);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });
});

describe("closing the iterable", () => {
  function closable(steps: number): { tasks: AsyncGenerator<BoundedTask<void>>; closed: () => boolean } {
    let closed = false;
    async function* generate(): AsyncGenerator<BoundedTask<void>> {
      try {
        for (let step = 0; step < steps; step++)
          yield () => (step === 1 ? Promise.reject(new Error("x")) : Promise.resolve());
      } finally {
        closed = true;
      }
    }
    return { tasks: generate(), closed: () => closed };
  }

  test("left early it is closed, before the rejection reaches the caller", async () => {
    const { tasks, closed } = closable(100);
    await expect(gatherBounded(tasks, 1)).rejects.toThrow("x");
    expect(closed()).toBe(true);
  });

  test("read to its end it is not closed again", async () => {
    let closings = 0;
    const steps = [() => Promise.resolve(1)][Symbol.iterator]();
    const iterable = {
      [Symbol.iterator]: () => ({
        next: () => steps.next(),
        return: () => {
          closings += 1;
          return { done: true as const, value: undefined };
        },
      }),
    };
    expect(await gatherBounded(iterable, 2)).toEqual([1]);
    expect(closings).toBe(0);
  });

  test("an iterable whose next step never comes does not hold up a rejection", async () => {
    const failure = new Error("task failed");
    let closings = 0;
    let pulls = 0;
    const iterable = {
      [Symbol.asyncIterator]: () => ({
        next: () =>
          pulls++ === 0
            ? Promise.resolve({ done: false, value: () => Promise.reject(failure) })
            : new Promise<never>(() => {}),
        return: () => {
          closings += 1;
          return new Promise<never>(() => {});
        },
      }),
    };
    await expect(gatherBounded(iterable, 2)).rejects.toBe(failure);
    expect(closings).toBe(1);
  });

  test("a failing close does not hide the first rejection", async () => {
    const iterable = {
      [Symbol.iterator]: () => ({
        next: () => ({ done: false as const, value: () => Promise.reject(new Error("task failed")) }),
        return: (): never => {
          throw new Error("close failed");
        },
      }),
    };
    await expect(gatherBounded(iterable, 1)).rejects.toThrow("task failed");
  });

  test("an error of the iterable aborts and awaits the running tasks, and is thrown", async () => {
    const told: unknown[] = [];
    const failure = new Error("line 2 cannot be read");
    async function* broken(): AsyncGenerator<BoundedTask<void>> {
      yield (signal) => untilAborted(signal).catch((reason) => void told.push(reason));
      throw failure;
    }
    await expect(gatherBounded(broken(), 2)).rejects.toBe(failure);
    expect(told).toEqual([failure]);
  });
});
