import { judge } from "../domain/judgement.js";
import { PolyGatewayError, TransientError } from "../errors.js";
import type { AttemptContext } from "../ports/transport.js";
import { Attempt } from "./attempt.js";
import { textOf } from "./backend-errors.js";
import { type Call, type GovernEnvironment, keepSources, sourceNamed, startCall } from "./call.js";
import { fits, noSources, tooLarge } from "./call-ends.js";
import { endAfter, pauseBeforeRetry } from "./exhaustion.js";
import type { Interrupt, Interruption } from "./interrupt.js";
import { nextStep } from "./next-step.js";
import {
  type Answered,
  type CallOptions,
  type Governed,
  OpenedStream,
  type Operation,
  type PartialFacts,
} from "./operation.js";
import { getPermit, interruptionError, orInterrupted, type Permit, stallError } from "./permit.js";
import { costOf, recordAnswer, recordFailure, recordTerminal } from "./rows.js";
import { settleAttempt, tokensOfFailure } from "./settle.js";
import { unsentSettle } from "./unsent.js";

const UNSENT = Symbol("unsent");

/**
 * THE loop: every kind of call is admitted, attempted, judged and booked here and nowhere else (spec 02 §2).
 *
 * Resolves when the operation has opened: for a plain call with everything done, for a stream at its commit point (then
 * `ended` settles when reading is over). Rejects with RequestRejectedError, ResultInvalidError, a
 * GatewayUnavailableError, SourceNotConfiguredError, or exactly the caller's abort reason. Leaves no lease, probe, timer
 * or listener behind, whatever happens, and exactly one final telemetry row. `interrupt` stands for signal and deadline
 * of the options where several calls share this one.
 */
export function govern<Value, Completion>(
  environment: GovernEnvironment,
  operation: Operation<Value, Completion>,
  options: CallOptions,
  interrupt?: Interrupt,
): Promise<Governed<Value, Completion>> {
  const call = startCall(environment, operation as Operation<unknown, unknown>, options, interrupt);
  return run(call) as Promise<Governed<Value, Completion>>;
}

/**
 * Attempt after attempt until one has answered, or has begun to. One function for the loop and its end: an asynchronous
 * function more costs a call as much as its breaker and its gates.
 */
async function run(call: Call): Promise<Governed<unknown, unknown>> {
  const { runtime } = call.environment;
  try {
    if (call.attempts === 0) narrowToFitting(call);
    for (;;) {
      const stall = call.attempts > 0 ? await orInterrupted(call, stallError(call)) : null;
      if (stall !== null) throw stall;
      if (call.interrupt.fired !== null) throw interruptionError(call, call.interrupt.fired);
      const asked = getPermit(call, runtime.uuid());
      const permit = asked instanceof Promise ? await asked : asked;
      // It may fire between the grant and this line: the permit goes back unused.
      if (call.interrupt.fired !== null) throw returnPermit(call, permit, call.interrupt.fired);
      const attempt = startAttempt(call, permit);
      const stopListening = abortedByInterrupt(call, attempt);
      let answer: unknown;
      try {
        answer = await send(attempt);
        if (answer === undefined || answer === null) throw new TypeError("the transport gave no answer");
      } catch (error) {
        stopListening();
        await afterFailure(attempt, error, true);
        continue;
      }
      if (answer instanceof OpenedStream) return openedStream(attempt, answer.value, answer.done);
      stopListening();
      if (answer === UNSENT) continue;
      const answered = succeed(attempt, answer);
      const end = governed(attempt, null, answered instanceof Promise ? await answered : answered);
      call.interrupt.dispose();
      return end;
    }
  } catch (error) {
    call.interrupt.dispose();
    throw await ended(call, error);
  }
}

/** Apart from the loop: a closure there would give every waiting call the scopes around it. */
function abortedByInterrupt(call: Call, attempt: Attempt): () => void {
  return call.interrupt.listen((i) => attempt.abort(i, interruptionError(call, i)));
}

/** The last word of a failed call: its terminal row, unless an attempt's row was the final one. */
export async function ended(call: Call, error: unknown): Promise<unknown> {
  const { fired } = call.interrupt;
  // The caller's own reason passes untouched, even when it is one of our errors from another call.
  const isReason = fired?.kind === "caller" && fired.reason === error;
  if (!isReason && PolyGatewayError.isInstance(error)) error.operation ??= call.kind;
  if (!call.finalRowWritten) await recordTerminal(call, error, isReason);
  return error;
}

/** Sources whose limits this call exceeds are no candidates, however long it waits. */
function narrowToFitting(call: Call): void {
  if (call.sources.length === 0) throw call.operation.incapable?.refusal() ?? noSources(call);
  for (const source of call.sources) {
    if (fits(call, source)) continue;
    keepSources(call, (candidate) => fits(call, candidate));
    break;
  }
  if (call.sources.length === 0) throw tooLarge(call);
}

function returnPermit(call: Call, { grant }: Permit, interruption: Interruption): unknown {
  call.environment.dispatcher.settle(unsentSettle(grant));
  return interruptionError(call, interruption);
}

function startAttempt(call: Call, permit: Permit): Attempt {
  const source = sourceNamed(call, permit.grant.source)!;
  if (!call.failover && call.sources.length > 1) keepSources(call, (other) => other.name === source.name);
  return new Attempt(call, source, permit.grant, permit.waitedMs);
}

/** UNSENT = nothing left: the permit was older than its lease (a frozen process), it goes back and the call asks again. */
function send(attempt: Attempt): Promise<unknown> {
  const { call, grant, source } = attempt;
  const { runtime, telemetry, config } = call.environment;
  const committed = telemetry?.open({
    callId: attempt.callId,
    requestId: call.requestId,
    scope: config.scope,
    sourceName: source.name,
    worker: telemetry.worker,
    startedAtMs: runtime.wallNow(),
    estTokens: grant.reservedTokens,
    sessionId: call.options.sessionId ?? null,
    parentCallId: call.options.parentCallId ?? null,
  });
  if (committed === undefined) return call.operation.attempt(source, attempt, releaseAnswered);
  return committed.then(() => sendAfterCommit(attempt));
}

/** One function for all attempts: the context is the attempt. */
const releaseAnswered = (context: AttemptContext, totalTokens: number): void =>
  settleAttempt(context as Attempt, "success", totalTokens);

async function sendAfterCommit(attempt: Attempt): Promise<unknown> {
  const { call, grant } = attempt;
  if (attempt.aborted) throw attempt.abortReason;
  if (attempt.runtime.now() - attempt.startedMs < grant.leaseTtlMs)
    return call.operation.attempt(attempt.source, attempt, releaseAnswered);
  await giveBackUnsent(attempt);
  return UNSENT;
}

async function giveBackUnsent(attempt: Attempt): Promise<void> {
  const { call } = attempt;
  settleAttempt(attempt, "cancelled", 0);
  await recordFailure(
    attempt,
    new Error("returned unsent: the permit was older than its lease"),
    "cancelled",
    null,
    false,
  );
  call.clock.end(attempt.mark, call.environment.runtime.now(), false);
}

/** Books a success; a promise only where the telemetry commit has to be waited for. */
function succeed(attempt: Attempt, completion: unknown): Answered<unknown> | Promise<Answered<unknown>> {
  const { call } = attempt;
  const facts = call.operation.describeReply(completion);
  settleAttempt(attempt, "success", facts.usage.totalTokens);
  const costNanos = costOf(attempt, facts.usage);
  const answered = { completion, facts, costNanos };
  const committed = recordAnswer(attempt, facts, costNanos);
  const end = (): Answered<unknown> => {
    call.clock.end(attempt.mark, attempt.runtime.now(), true);
    return answered;
  };
  return committed === undefined ? end() : committed.then(end);
}

function governed(
  attempt: Attempt,
  value: unknown,
  end: Answered<unknown> | Promise<Answered<unknown>>,
): Governed<unknown, unknown> {
  const { call, source, callId } = attempt;
  return { value, source, callId, requestId: call.requestId, attempts: call.attempts, ended: end };
}

type Opened = { -readonly [Field in keyof Governed<unknown, unknown>]: Governed<unknown, unknown>[Field] };

/** The consumer has its first event: from here on nothing is retried, unless it said that it can begin again. */
function openedStream(attempt: Attempt, value: unknown, done: Promise<unknown>): Governed<unknown, unknown> {
  const { call } = attempt;
  const opened: Opened = governed(attempt, value, NOT_ENDED);
  const end = readToEnd(opened, attempt, done).finally(() => call.interrupt.dispose());
  // Nobody may be listening; an unhandled rejection would end the process.
  end.catch(() => {});
  opened.ended = end;
  return opened;
}

const NOT_ENDED = Promise.reject(new Error("the stream has not begun"));
NOT_ENDED.catch(() => {});

async function readToEnd(opened: Opened, attempt: Attempt, done: Promise<unknown>): Promise<Answered<unknown>> {
  let completion: unknown;
  try {
    completion = await done;
  } catch (error) {
    return beginAgain(opened, attempt, error);
  }
  return succeed(attempt, completion);
}

/** A broken stream: its end, or another attempt whose answer stands in place of what was read so far. */
async function beginAgain(opened: Opened, attempt: Attempt, error: unknown): Promise<Answered<unknown>> {
  const { call } = attempt;
  try {
    await afterFailure(attempt, error, call.operation.mayRestart === true);
  } catch (end) {
    throw await ended(call, end);
  }
  const again = await run(call);
  const answered = await again.ended;
  opened.source = again.source;
  opened.callId = again.callId;
  opened.attempts = again.attempts;
  return answered;
}

/**
 * Books a failed attempt and decides. Returns when the call is to be tried again, else throws its end.
 * Settling comes first, so that no row or pause holds a permit.
 */
async function afterFailure(attempt: Attempt, thrown: unknown, mayRetry: boolean): Promise<void> {
  const { call } = attempt;
  const partial = partialOf(attempt, thrown);
  if (attempt.interruption !== null) return endInterrupted(attempt, partial);
  const error = asAttemptError(attempt, thrown);
  const judgement = judge(error);
  settleAttempt(attempt, judgement.outcome, tokensOfFailure(attempt, error, partial), error);
  const failedProbe = attempt.grant.probe && attempt.firstTokenMs === null;
  const step = nextStep(call, attempt.source, failedProbe, judgement, error);
  const isEnd = step.kind === "throw" || !mayRetry;
  const final = isEnd && (judgement.recordOutcome === "rejected" || judgement.recordOutcome === "invalid");
  const committed = recordFailure(attempt, error, judgement.recordOutcome, partial, final);
  if (committed !== undefined) await committed;
  call.clock.end(attempt.mark, call.environment.runtime.now(), step.counted);
  if (isEnd) throw error;
  if (step.kind === "exhausted") throw await endAfter(call, step.reason, error);
  if (step.backoff) await pauseBeforeRetry(call, error);
}

async function endInterrupted(attempt: Attempt, partial: PartialFacts | null): Promise<never> {
  const { call, abortReason, interruption } = attempt;
  settleAttempt(attempt, "cancelled", tokensOfFailure(attempt, null, partial));
  const byCaller = interruption?.kind === "caller";
  const committed = recordFailure(attempt, abortReason, "cancelled", partial, byCaller);
  if (committed !== undefined) await committed;
  call.clock.end(attempt.mark, call.environment.runtime.now(), true);
  if (!byCaller && PolyGatewayError.isInstance(abortReason) && attempt.partialSoFar !== null) {
    abortReason.partial = attempt.partialSoFar();
  }
  throw abortReason;
}

function partialOf(attempt: Attempt, error: unknown): PartialFacts | null {
  // An abort reason belongs to the caller, whatever it carries.
  const own = PolyGatewayError.isInstance(error) ? error.partial : undefined;
  const partial = attempt.aborted ? attempt.partialSoFar?.() : own;
  return partial === undefined ? null : attempt.call.operation.describePartial(partial);
}

/** A transport that throws something of its own must not take the call out of the taxonomy. */
function asAttemptError(attempt: Attempt, thrown: unknown): PolyGatewayError {
  if (PolyGatewayError.isInstance(thrown)) return thrown;
  return new TransientError(`${attempt.source.name} transient failure: ${textOf(thrown)}`, {
    code: "upstream_error",
    sourceName: attempt.source.name,
    cause: thrown,
  });
}
