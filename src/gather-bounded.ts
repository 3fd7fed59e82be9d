/** One piece of work; the signal fires when the whole gathering ends early. */
export type BoundedTask<T> = (signal: AbortSignal) => Promise<T>;

export interface GatherOptions {
  /** When it fires, nothing more is started, the running tasks' signal fires with its reason, and that reason is thrown. */
  readonly signal?: AbortSignal;
  /** true: a rejection aborts nothing; the results say how each task ended. Default false. */
  readonly settle?: boolean;
}

type Tasks<T> = Iterable<BoundedTask<T>> | AsyncIterable<BoundedTask<T>>;
type TaskIterator<T> = Iterator<BoundedTask<T>> | AsyncIterator<BoundedTask<T>>;
type Pulled<T> = IteratorResult<BoundedTask<T>, unknown>;

/** Why a gathering ends early; boxed, since anything may be thrown, `undefined` too. */
interface Failure {
  readonly reason: unknown;
}

interface Gathering<T> {
  /** How each started task ended, in input order. */
  readonly ends: PromiseSettledResult<T>[];
  running(): number;
  failure(): Failure | undefined;
  /** Ends it early; the first reason counts. The running tasks are told, unless each may end by itself. */
  fail(reason: unknown, tellTasks: boolean): void;
  start(index: number, task: BoundedTask<T>): void;
  /** Lets `change` resolve. */
  wake(): void;
  /** Resolves when a task ends, the gathering fails or `wake` is called. Only one wait at a time. */
  change(): Promise<void>;
}

function createGathering<T>(settle: boolean): Gathering<T> {
  const controller = new AbortController();
  const ends: PromiseSettledResult<T>[] = [];
  let running = 0;
  let failure: Failure | undefined;
  let wake = (): void => {};

  function fail(reason: unknown, tellTasks: boolean): void {
    failure ??= { reason };
    if (tellTasks) controller.abort(failure.reason);
    wake();
  }

  async function run(index: number, task: BoundedTask<T>): Promise<void> {
    running += 1;
    try {
      ends[index] = { status: "fulfilled", value: await task(controller.signal) };
    } catch (reason) {
      ends[index] = { status: "rejected", reason };
      if (!settle) fail(reason, true);
    }
    running -= 1;
    wake();
  }

  return {
    ends,
    running: () => running,
    failure: () => failure,
    fail,
    start: (index, task) => void run(index, task),
    wake: () => wake(),
    change: () =>
      new Promise((resolve) => {
        wake = resolve;
      }),
  };
}

/** The next task; undefined when the gathering failed while the iterator was still busy. Rejects as the iterator does. */
async function pull<T>(iterator: TaskIterator<T>, gathering: Gathering<T>): Promise<Pulled<T> | undefined> {
  const answer = iterator.next();
  if (!("then" in answer)) return answer;
  let isSettled = false;
  const markSettled = (): void => {
    isSettled = true;
    gathering.wake();
  };
  answer.then(markSettled, markSettled);
  while (!isSettled && gathering.failure() === undefined) await gathering.change();
  return isSettled ? answer : undefined;
}

/** Starts tasks while there is room, until none is left or the gathering fails. Says how the iterator stands. */
async function startAll<T>(
  iterator: TaskIterator<T>,
  limit: number,
  gathering: Gathering<T>,
): Promise<"exhausted" | "open" | "busy"> {
  for (let index = 0; ; index++) {
    while (gathering.running() >= limit && gathering.failure() === undefined) await gathering.change();
    if (gathering.failure() !== undefined) return "open";
    const pulled = await pull(iterator, gathering);
    if (pulled === undefined) return "busy";
    if (pulled.done) return "exhausted";
    if (gathering.failure() !== undefined) return "open";
    gathering.start(index, pulled.value);
  }
}

/** Gives an iterator that is left early the chance to free what it holds. Its own failure must not hide the first one. */
async function closeIterator<T>(iterator: TaskIterator<T>, isBusy: boolean): Promise<void> {
  try {
    const closing = Promise.resolve(iterator.return?.());
    if (!isBusy) return void (await closing);
    // A generator answers only when its pending step is over, which may be never.
    closing.catch(() => {});
  } catch {}
}

function unwrap<T>(end: PromiseSettledResult<T>): T {
  if (end.status === "rejected") throw end.reason;
  return end.value;
}

/**
 * Runs tasks with at most `limit` at once and gives their results in input order. The tasks are pulled one by one, only
 * when there is room: a generator over a large file works.
 *
 * The first rejection aborts the other tasks' signal, waits for them and is thrown. With `settle: true` all of them run
 * and the result is a `PromiseSettledResult[]`.
 *
 * @param tasks iterable or async iterable; closed (`return()`) when it is left early
 * @param limit integer ≥ 1
 * @throws RangeError for another limit; the first rejection; the iterable's own error; the signal's reason
 */
export function gatherBounded<T>(
  tasks: Tasks<T>,
  limit: number,
  options: GatherOptions & { readonly settle: true },
): Promise<PromiseSettledResult<T>[]>;
export function gatherBounded<T>(
  tasks: Tasks<T>,
  limit: number,
  options?: GatherOptions & { readonly settle?: false },
): Promise<T[]>;
export async function gatherBounded<T>(
  tasks: Tasks<T>,
  limit: number,
  { signal, settle = false }: GatherOptions = {},
): Promise<T[] | PromiseSettledResult<T>[]> {
  if (!Number.isInteger(limit) || limit < 1) {
    throw new RangeError(`gatherBounded needs an integer limit of at least 1, not ${limit}.`);
  }
  signal?.throwIfAborted();
  const iterator: TaskIterator<T> =
    Symbol.asyncIterator in tasks ? tasks[Symbol.asyncIterator]() : tasks[Symbol.iterator]();
  const gathering = createGathering<T>(settle);
  const onAbort = (): void => gathering.fail(signal?.reason, true);
  signal?.addEventListener("abort", onAbort, { once: true });
  let iteratorState: "exhausted" | "open" | "busy" = "exhausted";
  try {
    iteratorState = await startAll(iterator, limit, gathering);
  } catch (error) {
    gathering.fail(error, !settle);
  }
  while (gathering.running() > 0) await gathering.change();
  signal?.removeEventListener("abort", onAbort);
  if (iteratorState !== "exhausted") await closeIterator(iterator, iteratorState === "busy");
  const failure = gathering.failure();
  if (failure !== undefined) throw failure.reason;
  return settle ? gathering.ends : gathering.ends.map(unwrap);
}
