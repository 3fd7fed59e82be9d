// G3 and G14: what governance itself costs, without a network.
import {
  bulkhead,
  ConsecutiveBreaker,
  circuitBreaker,
  ExponentialBackoff,
  handleAll,
  retry,
  TimeoutStrategy,
  timeout,
  wrap,
} from "cockatiel";
import { completion, governedClient, nullTransport } from "../gateway.mjs";
import { compare, median } from "../measure.mjs";

/** The floor: semaphore + GCRA + breaker + retry loop written by hand for one purpose. */
function handRolled() {
  let inflight = 0;
  let tat = 0;
  let failures = 0;
  const task = async () => completion;
  return async () => {
    for (let attempt = 0; ; attempt += 1) {
      const now = performance.now();
      if (inflight >= 1_000 || failures >= 5 || tat - 1_000 > now) throw new Error("refused");
      inflight += 1;
      tat = Math.max(now, tat) + 0.0001;
      try {
        const reply = await task();
        failures = 0;
        return reply;
      } catch (error) {
        failures += 1;
        if (attempt >= 3) throw error;
      } finally {
        inflight -= 1;
      }
    }
  };
}

function cockatiel() {
  const policy = wrap(
    retry(handleAll, { maxAttempts: 3, backoff: new ExponentialBackoff() }),
    circuitBreaker(handleAll, { halfOpenAfter: 4_000, breaker: new ConsecutiveBreaker(5) }),
    bulkhead(1_000, 1_000),
    timeout(30_000, TimeoutStrategy.Cooperative),
  );
  return () => policy.execute(async () => completion);
}

const request = { messages: [{ role: "user", content: "hi" }], stream: false };

export async function governanceCases({ origin, scale }) {
  const client = governedClient(origin, "json", { transport: nullTransport });
  const floor = handRolled();
  const rival = cockatiel();
  const [, ours, theirs] = await compare(
    [
      { name: "hand-rolled floor", op: floor },
      { name: "governed call, null transport", op: () => client.chat(request) },
      { name: "cockatiel retry+breaker+bulkhead+timeout", op: rival },
    ],
    { count: Math.round(30_000 * scale), concurrency: 64, warmup: 20_000 },
  );
  await client.close();
  return [
    {
      id: "G3",
      what: "governance only, null transport, c=64: CPU µs a call",
      value: ours.cpuUs,
      goal: 10,
      must: true,
      unit: "µs",
      stretch: 4,
    },
    { id: "G3", what: "the same ÷ cockatiel with timeout", value: ours.cpuUs / theirs.cpuUs, goal: 1, must: true },
    {
      id: "—",
      what: "hand-rolled floor, CPU µs a call",
      value: median([ours.cpuUs / ours.cpuRatio]),
      goal: null,
      unit: "µs",
    },
    ...(await parkedHeap(origin)),
  ];
}

/** Heap of 10,000 calls in flight against 10,000 bare promises. */
async function parkedHeap(origin) {
  if (globalThis.gc === undefined) return [];
  const parked = 10_000;
  const heapNow = async () => {
    for (let i = 0; i < 3; i += 1) {
      globalThis.gc();
      await new Promise((resolve) => setImmediate(resolve));
    }
    return process.memoryUsage().heapUsed;
  };
  const perCall = async (start) => {
    const before = await heapNow();
    const { calls, release } = start();
    await new Promise((resolve) => setImmediate(resolve));
    const bytes = ((await heapNow()) - before) / parked;
    release();
    await Promise.all(calls);
    return bytes;
  };
  const hold = () => {
    const releases = [];
    const task = () => new Promise((resolve) => releases.push(() => resolve(completion)));
    return {
      task,
      release: () => {
        for (const end of releases) end();
      },
    };
  };
  const bare = async () =>
    perCall(() => {
      const { task, release } = hold();
      return { calls: Array.from({ length: parked }, async () => await task()), release };
    });
  const governed = async () => {
    const { task, release } = hold();
    const transport = {
      complete(attempt) {
        attempt.context.markSent();
        return task();
      },
      close: async () => {},
    };
    const client = governedClient(origin, "json", { transport }, { maxConcurrency: 20_000 });
    const wide = governedClient(origin, "json", { transport, global: {} }, { maxConcurrency: 20_000 });
    const bytes = await perCall(() => ({ calls: Array.from({ length: parked }, () => wide.chat(request)), release }));
    await client.close();
    await wide.close();
    return bytes;
  };
  await bare();
  await governed();
  const bareBytes = median([await bare(), await bare(), await bare()]);
  const ourBytes = median([await governed(), await governed(), await governed()]);
  return [
    {
      id: "G14",
      what: "heap a call in flight (10,000 parked), bytes",
      value: ourBytes,
      goal: 1_536,
      unit: "B",
      must: false,
    },
    { id: "G14", what: "the same ÷ a bare promise", value: ourBytes / bareBytes, goal: 5, stretch: 3, must: false },
  ];
}
