import { PolyGatewayError } from "../errors.js";
import type { Attempt } from "./attempt.js";
import { type Call, type GovernEnvironment, keepSources, startCall } from "./call.js";
import { fits, noSources, tooLarge } from "./call-ends.js";
import { afterFailure } from "./failure.js";
import { type Hedge, hedgeOf } from "./hedge.js";
import type { Interrupt } from "./interrupt.js";
import { type Answered, type CallOptions, type Governed, OpenedStream, type Operation } from "./operation.js";
import { getPermit, interruptionError, orInterrupted, stallError } from "./permit.js";
import { costOf, recordAnswer, recordTerminal } from "./rows.js";
import { send, UNSENT } from "./send.js";
import { settleSuccess } from "./settle.js";
import { returnPermit, startAttempt, startable } from "./start.js";

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
      let permit = asked instanceof Promise ? await asked : asked;
      // It may be given ahead of its start.
      if (permit.grant.startInMs > 0) permit = await startable(call, permit);
      // It may fire between the grant and this line: the permit goes back unused.
      if (call.interrupt.fired !== null) throw returnPermit(call, permit, call.interrupt.fired);
      const first = startAttempt(call, permit);
      const hedge = hedgeOf(first);
      const stopListening = abortedByInterrupt(call, first, hedge);
      let answer: unknown;
      try {
        answer = await (hedge === null ? send(first) : hedge.answer());
        if (answer === undefined || answer === null) throw new TypeError("the transport gave no answer");
      } catch (error) {
        stopListening();
        await afterFailure(hedge?.decisive ?? first, error, true);
        continue;
      }
      const attempt = hedge?.decisive ?? first;
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
function abortedByInterrupt(call: Call, first: Attempt, hedge: Hedge | null): () => void {
  if (hedge !== null) return call.interrupt.listen((i) => hedge.interrupt(i));
  return call.interrupt.listen((i) => first.abort(i, interruptionError(call, i)));
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

/** Books a success; a promise only where the telemetry commit has to be waited for. */
function succeed(attempt: Attempt, completion: unknown): Answered<unknown> | Promise<Answered<unknown>> {
  const { call } = attempt;
  const facts = call.operation.describeReply(completion);
  settleSuccess(attempt, facts);
  call.environment.affinity?.served(call.options.sessionId, attempt.source.name);
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
