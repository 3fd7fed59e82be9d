import type { CallPool } from "./call-pool.js";
import type { Caller, MakeCaller } from "./caller.js";
import { nominalCapacity } from "./capacity.js";
import type { PlannedCall } from "./workload.js";
import type { World } from "./world.js";

const REPLACED_AFTER_MS = 2_000;

interface Worker {
  readonly index: number;
  readonly callers: number;
  caller: Caller;
  running: Set<PlannedCall>;
}

/** Plays a scenario's load until every call has ended, then closes the workers. Gives back the living ones. */
export async function drive(world: World, pool: CallPool, makeCaller: MakeCaller): Promise<void> {
  const { kernel, scenario } = world;
  const workers: Worker[] = scenario.callers.map((callers, index) => ({
    index,
    callers,
    caller: makeCaller(index, `worker-${index + 1}`),
    running: new Set(),
  }));
  let ended = 0;
  let finish = (): void => {};
  const allEnded = new Promise<void>((resolve) => {
    finish = resolve;
  });

  async function make(worker: Worker, call: PlannedCall): Promise<void> {
    const { caller, running } = worker;
    const startMs = kernel.now();
    running.add(call);
    const { failure, firstTokenMs } = await caller.call(call);
    running.delete(call);
    world.ends.push({
      index: call.index,
      worker: worker.index,
      priority: call.priority,
      startMs,
      endMs: kernel.now(),
      failure,
      firstTokenMs,
    });
    world.trace.add(failure ?? "answered", `worker-${worker.index + 1}`, "-", call.index);
    ended += 1;
    if (ended === scenario.calls) finish();
  }

  async function keepCalling(worker: Worker): Promise<void> {
    for (let call = pool.take(worker.index); call !== undefined; call = pool.take(worker.index))
      await make(worker, call);
  }

  function startCallers(worker: Worker): void {
    for (let index = 0; index < worker.callers; index++) void keepCalling(worker);
  }

  if (scenario.offeredLoad !== undefined) arrive(world, (call) => void make(workerOf(workers, call), call));
  else workers.forEach(startCallers);
  unleash(world, workers, pool, makeCaller, startCallers);
  await kernel.run(allEnded);
  await kernel.run(Promise.all(workers.map(({ caller }) => caller.close())));
}

function workerOf(workers: readonly Worker[], { place }: PlannedCall): Worker {
  return workers[Math.floor(place * workers.length)]!;
}

/** Calls come at random moments, whatever happens to those before them. */
function arrive(world: World, make: (call: PlannedCall) => void): void {
  const { runtime, scenario, workload } = world;
  const perMs = (nominalCapacity(scenario, workload).totalRate * scenario.offeredLoad!) / 1_000;
  const next = (index: number): void => {
    const call = workload.calls[index];
    if (call === undefined) return;
    runtime.setTimer(call.gap / perMs, () => {
      make(call);
      next(index + 1);
    });
  };
  next(0);
}

/** Deaths and freezes, one worker after the other. */
function unleash(
  { kernel, runtime, scenario, trace }: World,
  workers: readonly Worker[],
  pool: CallPool,
  makeCaller: MakeCaller,
  startCallers: (worker: Worker) => void,
): void {
  const { deathsMs = [], freezes = [] } = scenario.chaos ?? {};
  deathsMs.forEach((atMs, number) => {
    const worker = workers[number % workers.length]!;
    runtime.setTimer(atMs, () => {
      const name = `worker-${worker.index + 1}`;
      trace.add("death", name, "-", -1);
      kernel.kill(worker.caller.runtime);
      worker.caller.drop();
      for (const call of worker.running) pool.putBack(worker.index, call);
      worker.running = new Set();
      runtime.setTimer(REPLACED_AFTER_MS, () => {
        worker.caller = makeCaller(worker.index, `${name}.${number + 2}`);
        startCallers(worker);
      });
    });
  });
  freezes.forEach(({ atMs, forMs }, number) => {
    // Counted from the other end, so that deaths and freezes meet different workers at first.
    const worker = workers[workers.length - 1 - (number % workers.length)]!;
    runtime.setTimer(atMs, () => {
      const frozen = worker.caller.runtime;
      trace.add("freeze", `worker-${worker.index + 1}`, "-", -1);
      kernel.freeze(frozen);
      runtime.setTimer(forMs, () => kernel.thaw(frozen));
    });
  });
}
