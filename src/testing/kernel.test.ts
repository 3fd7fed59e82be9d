import { getEventListeners } from "node:events";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Runtime } from "../ports/runtime.js";
import { SimulationKernel } from "./kernel.js";

describe("virtual time", () => {
  test("an hour of sleep passes at once, and the wall clock goes with it", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    await kernel.run(runtime.sleep(3_600_000));
    expect(kernel.now()).toBe(3_600_000);
    expect(runtime.now()).toBe(3_600_000);
    expect(new Date(runtime.wallNow()).toISOString()).toBe("2026-01-01T01:00:00.000Z");
  });

  test("run gives the promise's value or its own rejection", async () => {
    const kernel = new SimulationKernel();
    const failure = new Error("refused");
    await expect(kernel.run(Promise.resolve(7))).resolves.toBe(7);
    await expect(
      kernel.run(
        kernel
          .runtime()
          .sleep(5)
          .then(() => Promise.reject(failure)),
      ),
    ).rejects.toBe(failure);
  });

  test("run stops at the moment the promise settles; later timers stay", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    runtime.setTimer(100, () => {});
    await kernel.run(runtime.sleep(10));
    expect(kernel.now()).toBe(10);
    expect(kernel.pendingTimers()).toBe(1);
    await kernel.drain();
    expect(kernel.now()).toBe(100);
    expect(kernel.pendingTimers()).toBe(0);
  });

  test("a promise that nothing can settle is a deadlock, named with its time and seed", async () => {
    const kernel = new SimulationKernel({ seed: 42 });
    const never = kernel
      .runtime()
      .sleep(30)
      .then(() => new Promise(() => {}));
    await expect(kernel.run(never)).rejects.toThrow("deadlocked at t=30 ms (seed 42)");
  });

  test("an endless loop of 0 ms timers is reported", async () => {
    const kernel = new SimulationKernel({ maxEvents: 1_000 });
    const runtime = kernel.runtime();
    const loop = async (): Promise<never> => {
      for (;;) await runtime.sleep(0);
    };
    await expect(kernel.run(loop())).rejects.toThrow("gave up at t=0 ms (seed 1) after 1000 events");
  });

  test("advance fires what is due, in order, and then stands exactly at its end", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    const fired: [string, number][] = [];
    for (const delayMs of [30, 10, 51]) runtime.setTimer(delayMs, () => fired.push([`${delayMs}`, kernel.now()]));
    await kernel.advance(50);
    expect(fired).toEqual([
      ["10", 10],
      ["30", 30],
    ]);
    expect(kernel.now()).toBe(50);
  });

  test("microtasks are drained between two events of the same moment, however long the chain", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    const open: string[] = [];
    const chain = async (name: string): Promise<void> => {
      open.push(name);
      for (let step = 0; step < 1_000; step++) await null;
      expect(open.pop()).toBe(name);
      expect(open).toEqual([]);
    };
    const chains: Promise<void>[] = [];
    for (let index = 0; index < 10; index++) runtime.setTimer(5, () => chains.push(chain(`chain ${index}`)));
    await kernel.drain();
    await Promise.all(chains);
    expect(chains).toHaveLength(10);
  });

  test("a cancelled timer neither fires nor moves the clock", async () => {
    const kernel = new SimulationKernel();
    const cancel = kernel.runtime().setTimer(500, () => expect.unreachable());
    cancel();
    cancel();
    expect(kernel.pendingTimers()).toBe(0);
    await kernel.drain();
    expect(kernel.now()).toBe(0);
  });

  test("cancelled long timeouts do not pile up", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    for (let index = 0; index < 20_000; index++) {
      const cancel = runtime.setTimer(120_000, () => expect.unreachable());
      if (index % 100 === 0) await kernel.run(runtime.sleep(1));
      cancel();
    }
    expect(kernel.pendingTimers()).toBe(0);
  });

  test("waiting the rest of a delay always ends: differences of the clock are exact", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.double({ min: 0, max: 1e6, noNaN: true }),
        fc.double({ min: 0, max: 1e5, noNaN: true }),
        async (startMs, delayMs) => {
          const kernel = new SimulationKernel({ maxEvents: 10 });
          const runtime = kernel.runtime();
          await kernel.advance(startMs);
          const beganMs = runtime.now();
          const wait = async (): Promise<void> => {
            for (let restMs = delayMs; restMs > 0; restMs = delayMs - (runtime.now() - beganMs))
              await runtime.sleep(restMs);
          };
          await kernel.run(wait());
          expect(runtime.now() - beganMs).toBeGreaterThanOrEqual(delayMs);
          expect(runtime.now() - beganMs).toBeLessThan(delayMs + 0.002);
        },
      ),
      { numRuns: 300 },
    );
  });

  test("a callback that throws ends the run with its error, and the kernel can go on", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    runtime.setTimer(1, () => {
      throw new Error("listener failed");
    });
    await expect(kernel.run(runtime.sleep(5))).rejects.toThrow("listener failed");
    await kernel.advance(10);
    expect(kernel.pendingTimers()).toBe(0);
  });

  test("an aborted sleep rejects with the signal's reason, leaves no timer and no listener", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime();
    const controller = new AbortController();
    runtime.setTimer(10, () => controller.abort("left"));
    await expect(kernel.run(runtime.sleep(1_000, controller.signal))).rejects.toBe("left");
    expect(kernel.now()).toBe(10);
    expect(kernel.pendingTimers()).toBe(0);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });

  test("two drivers at once are refused", async () => {
    const kernel = new SimulationKernel();
    const first = kernel.advance(10);
    await expect(kernel.advance(10)).rejects.toThrow("already being driven");
    await first;
  });
});

/** Three workers that wait, log and hand each other turns. */
async function scenario(seed: number): Promise<{ hash: string; order: string[]; uuids: string[] }> {
  const kernel = new SimulationKernel({ seed });
  const order: string[] = [];
  const uuids: string[] = [];
  const work = async (runtime: Runtime, name: string): Promise<void> => {
    for (let step = 0; step < 20; step++) {
      await runtime.sleep(Math.floor(runtime.random() * 3));
      order.push(name);
      uuids.push(runtime.uuid());
    }
    runtime.log("info", `${name} is done`, { at: runtime.now() });
  };
  await kernel.run(Promise.all(["a", "b", "c"].map((name) => work(kernel.runtime(name), name))));
  expect(kernel.logs.map(({ worker }) => worker).sort()).toEqual(["a", "b", "c"]);
  return { hash: kernel.traceHash(), order, uuids };
}

describe("seeds", () => {
  test("the same seed replays the same run", async () => {
    expect(await scenario(7)).toEqual(await scenario(7));
  });

  test("other seeds give other orders and other hashes", async () => {
    const runs = await Promise.all(Array.from({ length: 20 }, (_, index) => scenario(index)));
    expect(new Set(runs.map(({ hash }) => hash)).size).toBe(20);
    expect(new Set(runs.map(({ order }) => order.join(""))).size).toBe(20);
  });

  test("events of one moment fire in an order drawn from the seed", async () => {
    const firsts = new Set<number>();
    for (let seed = 0; seed < 60; seed++) {
      const kernel = new SimulationKernel({ seed });
      const order: number[] = [];
      for (let index = 0; index < 4; index++) kernel.runtime().setTimer(1, () => order.push(index));
      await kernel.drain();
      expect([...order].sort()).toEqual([0, 1, 2, 3]);
      firsts.add(order[0]!);
    }
    expect(firsts.size).toBe(4);
  });

  test("workers draw from streams of their own; ids never meet", () => {
    const kernel = new SimulationKernel({ seed: 5 });
    const runtimes = Array.from({ length: 10 }, () => kernel.runtime());
    expect(new Set(runtimes.map((runtime) => runtime.random())).size).toBe(10);
    const ids = runtimes.flatMap((runtime) => Array.from({ length: 1_000 }, () => runtime.uuid()));
    expect(new Set(ids).size).toBe(10_000);
  });

  test("random numbers fill [0, 1) evenly", () => {
    const runtime = new SimulationKernel({ seed: 9 }).runtime();
    const counts = Array<number>(10).fill(0);
    for (let draw = 0; draw < 20_000; draw++) counts[Math.floor(runtime.random() * 10)]! += 1;
    for (const count of counts) expect(Math.abs(count - 2_000)).toBeLessThan(250);
  });

  test("a fact added by the scenario is part of the fingerprint", () => {
    const [first, second] = [new SimulationKernel(), new SimulationKernel()];
    expect(first.traceHash()).toBe(second.traceHash());
    first.trace("granted");
    second.trace("refused");
    expect(first.traceHash()).not.toBe(second.traceHash());
  });
});

describe("workers that die or freeze", () => {
  function ticking(kernel: SimulationKernel, name: string): { runtime: Runtime; ticks: number[] } {
    const runtime = kernel.runtime(name);
    const ticks: number[] = [];
    const tick = (): void => {
      ticks.push(kernel.now());
      runtime.setTimer(10, tick);
    };
    runtime.setTimer(10, tick);
    return { runtime, ticks };
  }

  test("a killed worker's timers never fire, it sets no new ones and logs nothing; the others go on", async () => {
    const kernel = new SimulationKernel();
    const dead = ticking(kernel, "dead");
    const living = ticking(kernel, "living");
    await kernel.advance(20);
    kernel.kill(dead.runtime);
    dead.runtime.setTimer(1, () => expect.unreachable());
    dead.runtime.log("warn", "from the grave");
    await kernel.advance(20);
    expect(dead.ticks).toEqual([10, 20]);
    expect(living.ticks).toEqual([10, 20, 30, 40]);
    expect(kernel.pendingTimers()).toBe(1);
    expect(kernel.logs).toEqual([]);
    expect([kernel.isAlive(dead.runtime), kernel.isAlive(living.runtime)]).toEqual([false, true]);
  });

  test("a frozen worker's timers wait for the thaw, and none is lost", async () => {
    const kernel = new SimulationKernel();
    const frozen = ticking(kernel, "frozen");
    const living = ticking(kernel, "living");
    kernel.freeze(frozen.runtime);
    await kernel.advance(35);
    expect(frozen.ticks).toEqual([]);
    expect(living.ticks).toEqual([10, 20, 30]);
    kernel.thaw(frozen.runtime);
    await kernel.advance(10);
    expect(frozen.ticks).toEqual([35, 45]);
  });

  test("killing a frozen worker drops what it held back", async () => {
    const kernel = new SimulationKernel();
    const { runtime, ticks } = ticking(kernel, "victim");
    kernel.freeze(runtime);
    await kernel.advance(15);
    kernel.kill(runtime);
    kernel.thaw(runtime);
    await kernel.drain();
    expect(ticks).toEqual([]);
    expect(kernel.pendingTimers()).toBe(0);
  });

  test("waiting for a frozen worker is a deadlock that names it", async () => {
    const kernel = new SimulationKernel();
    const runtime = kernel.runtime("batch worker");
    kernel.freeze(runtime);
    await expect(kernel.run(runtime.sleep(5))).rejects.toThrow("Frozen workers: batch worker.");
  });

  test("a runtime of another kernel is refused", () => {
    expect(() => new SimulationKernel().kill(new SimulationKernel().runtime())).toThrow("not made by this kernel");
  });
});
