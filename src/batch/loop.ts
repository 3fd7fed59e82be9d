import { GatewayUnavailableError } from "../errors.js";
import type { CancelTimer, Runtime } from "../ports/runtime.js";
import { createBell } from "./bell.js";
import { createEvidence, type LineHistory } from "./evidence.js";
import type { Feed, FeedLine } from "./feed.js";
import type { BatchForm } from "./form.js";
import type { LineAnswer } from "./kinds/kinds.js";
import { createLineBuffer } from "./line-buffer.js";
import type { BatchLine } from "./lines.js";
import { InputChangedError } from "./numbered-lines.js";
import type { ResultSink } from "./output.js";
import type { LiveCounts, Tally } from "./progress.js";
import { judgeFailure, type LineVerdict, MIN_WAIT_MS } from "./requeue.js";
import { brokenLineFailure, failureOf, type LineFailure } from "./result-line.js";
import { createScopeView } from "./scope-view.js";
import { describeTrouble, lastReason } from "./trouble.js";
import type { BatchClient, BatchSummary, StopKind } from "./types.js";
import { createWaitingLines, MAX_WAITING_CHARS, MAX_WAITING_LINES } from "./waiting-lines.js";

export interface LoopOptions {
  readonly client: BatchClient;
  readonly runtime: Runtime;
  readonly feed: Feed;
  readonly form: Pick<BatchForm, "success" | "failure" | "unit">;
  readonly sink: ResultSink;
  /** The sink holds lines back for their order: a line's slot is free before it is written. */
  readonly ordered: boolean;
  readonly tally: Tally;
  readonly batchId: string;
  readonly concurrency: number;
  readonly giveUpAfterMs: number;
  /** Lines to do as counted by a first pass; undefined for a stream. */
  readonly linesToDo: number | undefined;
  /** Broken lines that a first pass left out. */
  readonly badLines: number;
}

export interface BatchLoop {
  /** Resolves when no call is in flight, everything is written and the sink is closed. Never rejects. */
  run(): Promise<BatchSummary["stop"]>;
  /** No new line starts; what is in flight ends, what only waits for a permit is taken back. Only the first reason counts. */
  stop(kind: StopKind, reason: string): void;
  /** The same because a person asks for it. */
  drain(): void;
  /** Also cancels the calls in flight. */
  abort(reason: unknown): void;
  counts(): LiveCounts;
}

const DRAIN_CHECK_MS = 100;
const CALLS_ENDED = "Stopped; the calls in flight have ended.";
const NOTHING_SENT = "Stopped; no call was in flight.";
const CALLS_CANCELLED = "Stopped; the calls in flight were cancelled. Those already sent may be billed.";

/** One line on its way: all its tries. */
interface LineRun {
  readonly line: BatchLine;
  readonly sequence: number;
  readonly history: LineHistory;
  /** Last put back because the sources able to serve it are dead. */
  sourcesDead: boolean;
}

export function createLoop(options: LoopOptions): BatchLoop {
  const { client, runtime, feed, form, sink, tally, concurrency } = options;
  const { unit = "line" } = form;
  const waiting = createWaitingLines<LineRun>();
  const evidence = createEvidence();
  const scope = createScopeView(client);
  const bell = createBell();
  const lines = createLineBuffer(feed, bell.ring, (error) => {
    if (error instanceof InputChangedError) stop("input_changed", `${error.message}.`);
    else stop("input_failed", `The input can't be read any further: ${describe(error)}.`);
  });
  const controllers = new Set<AbortController>();
  /** Lines that the ordered sink still holds back. */
  const writes = new Set<Promise<void>>();
  let inFlight = 0;
  let started = 0;
  let quietSinceMs = runtime.now();
  let lastTrouble = "";
  let stopped: BatchSummary["stop"] = null;
  /** The calls left were cancelled: their lines are simply not done. */
  let cancelled = false;
  let cancelDue: CancelTimer | undefined;
  let cancelGiveUp: CancelTimer | undefined;
  let cancelDrainCheck: CancelTimer | undefined;

  function stop(kind: StopKind, reason: string): void {
    if (stopped !== null) return;
    stopped = { kind, reason };
    feed.close();
    bell.ring();
    void checkDrain(true);
  }

  function cancelCalls(reason: unknown): void {
    cancelled = true;
    for (const controller of controllers) controller.abort(reason);
  }

  /** A call may wait for a permit for minutes, in an outage or under a low limit: a run that stops doesn't wait for it. */
  async function checkDrain(isFirst: boolean): Promise<void> {
    const idle = await scope.idle();
    if (cancelled || controllers.size === 0) return;
    if (idle) {
      if (isFirst && stopped?.kind === "drained") stopped = { ...stopped, reason: NOTHING_SENT };
      cancelCalls(new Error("the batch was stopped before this call was sent"));
    } else cancelDrainCheck = runtime.setTimer(DRAIN_CHECK_MS, () => void checkDrain(false));
  }

  function mayAdmit(): boolean {
    return waiting.size < MAX_WAITING_LINES && waiting.chars < MAX_WAITING_CHARS && sink.hasRoom(inFlight);
  }

  /** Starts what may start now: lines that wait for their next try first, then new ones. */
  function fill(): void {
    while (stopped === null && inFlight < concurrency) {
      const again = waiting.takeDue(runtime.now());
      if (again !== undefined) occupy(attempt(again));
      else {
        const line = mayAdmit() ? lines.take() : undefined;
        if (line === undefined) return;
        occupy(begin(line));
      }
    }
  }

  function occupy(work: Promise<void>): void {
    inFlight++;
    void work.finally(() => {
      inFlight--;
      bell.ring();
    });
  }

  function begin(line: FeedLine): Promise<void> {
    const now = runtime.now();
    if (inFlight === 0 && waiting.size === 0) quietSinceMs = now;
    const sequence = started++;
    if (line.kind === "line") return attempt({ line, sequence, history: evidence.begin(now), sourcesDead: false });
    return fail(line, sequence, brokenLineFailure(`line ${line.number}: ${line.problem}`));
  }

  async function attempt(run: LineRun): Promise<void> {
    const { line } = run;
    const controller = new AbortController();
    controllers.add(controller);
    let answer: LineAnswer;
    try {
      const call = { request: line.request, sessionId: options.batchId, parentCallId: line.id };
      answer = await client.call(call, controller.signal);
    } catch (error) {
      return cancelled ? undefined : treat(run, error);
    } finally {
      controllers.delete(controller);
    }
    return succeed(run, answer);
  }

  function succeed(run: LineRun, answer: LineAnswer): Promise<void> {
    if (evidence.succeeded(run.history, runtime.now())) waiting.endOutage();
    const text = form.success(run.line, answer);
    return write(run.sequence, text, () => tally.answered(answer), tally.notWritten);
  }

  async function treat(run: LineRun, error: unknown): Promise<void> {
    const verdict = judgeFailure(error, {
      ...evidence.about(run.history, runtime.now(), !lines.exhausted),
      // A line's own model may narrow it to dead sources while others live.
      wholeScopeDead: !isReason(error, "all_sources_dead") || (await scope.allDead()),
    });
    if (verdict.kind === "stop") return stop(verdict.stop, verdict.reason);
    if (verdict.kind === "requeue") return putBack(run, verdict, error);
    evidence.failed(run.history);
    await fail(run.line, run.sequence, failureOf(error));
  }

  function putBack(run: LineRun, verdict: Extract<LineVerdict, { kind: "requeue" }>, error: unknown): void {
    lastTrouble = describeTrouble(error);
    run.sourcesDead = isReason(error, "all_sources_dead");
    if (verdict.outage) evidence.putBack(run.history);
    tally.requeued();
    const now = runtime.now();
    // The wait that the error asks for is obeyed even when the outage ends earlier.
    const askedMs = GatewayUnavailableError.isInstance(error) ? error.retryAfterMs : 0;
    waiting.add({
      line: run,
      chars: run.line.textLength,
      notBeforeMs: now + Math.max(askedMs, MIN_WAIT_MS),
      dueMs: now + verdict.afterMs,
      outage: verdict.outage,
    });
  }

  function fail(line: FeedLine, sequence: number, failure: LineFailure): Promise<void> {
    return write(sequence, form.failure(line, failure, runtime.uuid()), tally.failed, () => {});
  }

  /** Never rejects. */
  async function write(sequence: number, text: string, onWritten: () => void, onLost: () => void): Promise<void> {
    const written = sink.put(sequence, text).then(onWritten, (error) => {
      onLost();
      stop("write_failed", `The output can't be written: ${describe(error)}.`);
    });
    if (!options.ordered) return written;
    writes.add(written);
    void written.then(() => {
      writes.delete(written);
      bell.ring();
    });
  }

  function armDueTimer(): void {
    cancelDue?.();
    cancelDue = undefined;
    const due = waiting.nextDueMs;
    if (due === undefined || stopped !== null || inFlight >= concurrency) return;
    cancelDue = runtime.setTimer(Math.max(0, due - runtime.now()), bell.ring);
  }

  function armGiveUp(): void {
    const now = runtime.now();
    // A silent input is no failure.
    if (inFlight === 0 && waiting.size === 0) quietSinceMs = now;
    const leftMs = Math.max(quietSinceMs, evidence.lastSuccessMs) + options.giveUpAfterMs - now;
    if (leftMs > 0) cancelGiveUp = runtime.setTimer(leftMs, armGiveUp);
    else void giveUp();
  }

  /** While calls still wait for a permit, only the scope knows what is wrong. */
  async function giveUp(): Promise<void> {
    const trouble = (await scope.trouble()) || lastTrouble;
    stop("no_success", `No ${unit} succeeded for ${formatLength(options.giveUpAfterMs)}.${lastReason(trouble)}`);
  }

  /** What is left waits for dead sources only, while other sources live: no later success will tell. */
  function onlyDeadLeft(): boolean {
    const restWaits = inFlight === 0 && lines.exhausted && waiting.size > 0;
    return restWaits && waiting.every(({ sourcesDead }) => sourcesDead);
  }

  async function finish(): Promise<void> {
    cancelDue?.();
    cancelGiveUp?.();
    cancelDrainCheck?.();
    feed.close();
    try {
      await sink.finish();
    } catch (error) {
      stop("write_failed", `The output can't be written: ${describe(error)}.`);
    }
    await Promise.all(writes);
  }

  return {
    stop,
    drain: () => stop("drained", controllers.size === 0 ? NOTHING_SENT : CALLS_ENDED),
    abort(reason) {
      const hasCalls = controllers.size > 0;
      // The second Ctrl-C tells more of the end than the first.
      if (hasCalls && stopped?.kind === "drained") stopped = null;
      stop("aborted", hasCalls ? CALLS_CANCELLED : NOTHING_SENT);
      cancelCalls(reason);
    },
    counts: () => ({
      inFlight,
      requeued: waiting.size,
      draining: stopped !== null,
      linesToDo: options.linesToDo ?? (lines.exhausted ? started : undefined),
      badLines: options.badLines + feed.badLines,
    }),
    async run() {
      armGiveUp();
      for (;;) {
        fill();
        if (onlyDeadLeft())
          stop("all_sources_dead", `The ${unit}s left have dead sources only.${lastReason(lastTrouble)}`);
        if (inFlight === 0 && (stopped !== null || (lines.exhausted && waiting.size === 0))) break;
        armDueTimer();
        await bell.rung();
      }
      await finish();
      return stopped;
    },
  };
}

function isReason(error: unknown, reason: string): boolean {
  return GatewayUnavailableError.isInstance(error) && error.reason === reason;
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function formatLength(lengthMs: number): string {
  return lengthMs >= 60_000 ? `${Math.round(lengthMs / 6_000) / 10} min` : `${lengthMs / 1_000} s`;
}
