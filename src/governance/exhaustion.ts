import type { SourceSnapshot } from "../domain/tick.js";
import {
  type AllSourcesExhausted,
  SourceDeadError,
  type SourceReasonDetail,
  TransientError,
  type UnavailableReason,
} from "../errors.js";
import { backoffMs, spreadMs } from "./backoff.js";
import type { Call } from "./call.js";
import {
  attemptsText,
  deadlinePassed,
  exhausted,
  lastErrorOf,
  reasonsFromSnapshot,
  smallestWaitMs,
} from "./call-ends.js";
import { interruptionError, orInterrupted } from "./permit.js";

/** The end of a call whose last attempt failed, with every source's reason. */
export async function endAfter(call: Call, reason: UnavailableReason, error: Error): Promise<AllSourcesExhausted> {
  const snapshot = await sourcesNow(call);
  const sources = reasonsFromSnapshot(call, snapshot);
  const end = reason === "retry_exhausted" && onlyDeadLeft(call, snapshot) ? "all_sources_dead" : reason;
  call.lastFailure = error;
  return exhausted(call, end, {
    retryAfterMs: retryAfterOf(call, end, error, sources),
    sources,
    text: `gave up after ${attemptsText(call)}; the last one failed with ${lastErrorOf(error).code}: ${error.message}`,
  });
}

/** `maxAttempts: 1` asks the same question after one dead source. */
function onlyDeadLeft(call: Call, snapshot: readonly SourceSnapshot[]): boolean {
  if (!SourceDeadError.isInstance(call.lastFailure)) return false;
  return call.sources.every((source) => snapshot.find((s) => s.name === source.name)?.dead === true);
}

function retryAfterOf(
  call: Call,
  reason: UnavailableReason,
  error: Error,
  sources: Record<string, SourceReasonDetail>,
): number {
  const { retry, backpressure } = call.environment.config;
  const askedMs = retryAfterMsOf(error) ?? 0;
  if (reason === "all_sources_dead") return smallestWaitMs(sources) || askedMs;
  if (reason === "quota_exhausted") return Math.max(askedMs, smallestWaitMs(sources), backpressure.pollIntervalMs);
  return Math.max(askedMs, backoffMs(Math.max(1, call.fails), retry, call.environment.runtime.random(), askedMs));
}

function retryAfterMsOf(error: Error): number | undefined {
  return TransientError.isInstance(error) || SourceDeadError.isInstance(error) ? error.retryAfterMs : undefined;
}

/** A short spread when another untried source is ready, else the backoff. Throws when there is no time left for it. */
export async function pauseBeforeRetry(call: Call, error: Error): Promise<void> {
  const { runtime, config } = call.environment;
  const unit = runtime.random();
  const ready = await untriedIsReady(call);
  const lengthMs = ready ? spreadMs(unit) : backoffMs(call.fails, config.retry, unit, retryAfterMsOf(error));
  if (call.interrupt.fired !== null) throw interruptionError(call, call.interrupt.fired);
  if (lengthMs > call.interrupt.remainingMs()) throw deadlinePassed(call);
  if (lengthMs > config.backpressure.stallWindowMs) throw await endAfter(call, "retry_exhausted", error);
  await pause(call, lengthMs);
}

async function untriedIsReady(call: Call): Promise<boolean> {
  const untried = call.sources.filter((source) => !call.failedHere.includes(source.name));
  if (untried.length === 0) return false;
  const snapshot = await sourcesNow(call);
  return untried.some(({ name }) => {
    const source = snapshot.find((candidate) => candidate.name === name);
    if (source === undefined || source.state !== "closed" || source.coolingMs > 0) return false;
    return source.maxConcurrency === 0 || source.inflight < source.maxConcurrency;
  });
}

/** Only explains and refines: a governor that can't answer must not hide the failure that is being told. */
async function sourcesNow(call: Call): Promise<readonly SourceSnapshot[]> {
  try {
    return (await orInterrupted(call, call.environment.dispatcher.snapshot())).sources;
  } catch {
    if (call.interrupt.fired !== null) throw interruptionError(call, call.interrupt.fired);
    return [];
  }
}

function pause(call: Call, lengthMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const stopListening = call.interrupt.listen((interruption) => {
      cancelTimer();
      reject(interruptionError(call, interruption));
    });
    const cancelTimer = call.environment.runtime.setTimer(lengthMs, () => {
      stopListening();
      resolve();
    });
  });
}
