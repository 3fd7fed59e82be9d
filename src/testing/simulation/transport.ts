import type { ChatCompletion } from "../../domain/chat.js";
import { type PolyGatewayError, TransientError } from "../../errors.js";
import type { CancelTimer, Runtime } from "../../ports/runtime.js";
import type { ChatAttempt, ChatTransport } from "../../ports/transport.js";
import { composeMessage } from "../../transports/body-digest.js";
import { Watchdog, type WatchdogTimer } from "../../transports/watchdog.js";
import { sampleCompletion, sampleUsage } from "../sample-answers.js";
import type { AttemptOutcome, AttemptRecord } from "./records.js";
import { refusalError } from "./refusal.js";
import type { SharedServer } from "./shared-server.js";
import type { Exchange, SimulatedSource } from "./upstream.js";
import type { World } from "./world.js";

/** One worker's way to the simulated providers. */
export interface SimulatedTransport extends ChatTransport {
  /** The process is gone: its connections close, nobody hears of it. */
  drop(): void;
}

/** The timers that the real transport has, on the worker's own clock; providers keep their own books. */
export function createSimulatedTransport(world: World, worker: number, workerName: string): SimulatedTransport {
  const live = new Set<SimulatedAttempt>();
  return {
    complete(attempt) {
      return new Promise((resolve, reject) => {
        const simulated = new SimulatedAttempt(world, worker, workerName, attempt, { resolve, reject }, live);
        live.add(simulated);
        simulated.start();
      });
    },
    async close() {},
    drop() {
      for (const attempt of live) attempt.drop();
      live.clear();
    },
  };
}

interface Settlers {
  readonly resolve: (completion: ChatCompletion) => void;
  readonly reject: (reason: unknown) => void;
}

class SimulatedAttempt {
  readonly #world: World;
  readonly #workerName: string;
  readonly #attempt: ChatAttempt;
  readonly #settlers: Settlers;
  readonly #live: Set<SimulatedAttempt>;
  readonly #runtime: Runtime;
  readonly #source: SimulatedSource;
  readonly #server: SharedServer | undefined;
  readonly #record: AttemptRecord;
  readonly #exchange: Exchange;
  readonly #watchdog: Watchdog;
  #firstTokenMs: number | null = null;
  #cancelNext: CancelTimer | null = null;
  #stopListening: (() => void) | null = null;
  #over = false;

  constructor(
    world: World,
    worker: number,
    workerName: string,
    attempt: ChatAttempt,
    settlers: Settlers,
    live: Set<SimulatedAttempt>,
  ) {
    const { context, source, request } = attempt;
    this.#world = world;
    this.#workerName = workerName;
    this.#attempt = attempt;
    this.#settlers = settlers;
    this.#live = live;
    this.#runtime = context.runtime;
    this.#source = world.sources.get(source.name)!;
    this.#server = world.servers.get(source.name);
    const call = world.workload.calls[Number(request.parentCallId)]!;
    const startMs = world.kernel.now();
    this.#exchange = this.#source.begin(startMs, call.inputTokens, call.outputTokens);
    this.#record = {
      leaseId: context.callId,
      callIndex: call.index,
      worker,
      source: source.name,
      startMs,
      endMs: startMs,
      outcome: "running",
      tokens: 0,
      refused: false,
    };
    world.attempts.push(this.#record);
    const limits = {
      totalMs: source.timeoutMs,
      ttftMs: source.ttftTimeoutMs,
      // Simulated answers never pause between two tokens.
      interTokenMs: 0,
    };
    this.#watchdog = new Watchdog(context.runtime, limits, (timer, limitMs) => this.#expired(timer, limitMs));
  }

  start(): void {
    const { context, stream } = this.#attempt;
    this.#world.observer.sent(this.#record);
    this.#tell("send");
    context.markSent();
    this.#watchdog.start(stream);
    this.#watchdog.sent();
    this.#stopListening = context.onAbort((reason) => this.#aborted(reason));
    if (this.#over) {
      this.#stopListening();
      return;
    }
    if (this.#server !== undefined && this.#exchange.inProgress) this.#runOnServer(this.#server);
    else this.#waitForProvider();
  }

  #aborted(reason: unknown): void {
    if (TransientError.isInstance(reason)) this.#world.observer.givenUp(this.#record, this.#firstTokenMs !== null);
    this.#end("aborted", 0, () => this.#settlers.reject(reason));
  }

  drop(): void {
    if (this.#over) return;
    this.#close("aborted", 0);
  }

  #waitForProvider(): void {
    const { firstTokenMs, durationMs } = this.#exchange;
    if (firstTokenMs === null) {
      if (durationMs !== Infinity) this.#cancelNext = this.#runtime.setTimer(durationMs, () => this.#finish());
      return;
    }
    this.#cancelNext = this.#runtime.setTimer(firstTokenMs, () => {
      this.#firstToken();
      const leftMs = this.#exchange.startMs + durationMs - this.#runtime.now();
      if (!this.#over) this.#cancelNext = this.#runtime.setTimer(Math.max(0, leftMs), () => this.#finish());
    });
  }

  /** The server decides when; the worker hears of it on its own clock, if it still runs. */
  #runOnServer(server: SharedServer): void {
    const firstMs = this.#exchange.firstTokenMs ?? 0;
    server.enter();
    this.#cancelNext = server.after(firstMs, () => {
      this.#runtime.setTimer(0, () => this.#firstToken());
      this.#cancelNext = server.after(this.#exchange.durationMs - firstMs, () =>
        this.#runtime.setTimer(0, () => this.#finish()),
      );
    });
  }

  #firstToken(): void {
    if (this.#over || this.#firstTokenMs !== null) return;
    this.#firstTokenMs = this.#world.kernel.now() - this.#record.startMs;
    this.#watchdog.firstToken();
    this.#attempt.context.markFirstToken();
    this.#attempt.sink?.push([{ type: "text-delta", text: "answer" }]);
  }

  #finish(): void {
    const { refusal, cut, limits } = this.#exchange;
    if (refusal !== null) {
      this.#record.refused = true;
      const error = refusalError(refusal, limits, this.#attempt.source, this.#runtime.wallNow());
      const limited = refusal.statusCode === 429 && TransientError.isInstance(error);
      this.#end(limited ? "rate_limited" : "failed", 0, () => this.#settlers.reject(error));
      return;
    }
    if (cut) {
      const error = this.#failure("network", "the connection was closed before the answer was complete");
      this.#end("failed", 0, () => this.#settlers.reject(error));
      return;
    }
    this.#firstToken();
    const { inputTokens, outputTokens } = this.#exchange;
    this.#end("success", inputTokens + outputTokens, () => this.#settlers.resolve(this.#completion()));
  }

  #expired(timer: WatchdogTimer, limitMs: number): void {
    const code = timer === "end" ? "timeout" : timer;
    const what = code === "timeout" ? "no complete answer" : "no first token";
    const error = this.#failure(code, `${what} within ${limitMs} ms`);
    this.#end("failed", 0, () => this.#settlers.reject(error));
  }

  #failure(code: "network" | "timeout" | "ttft_timeout" | "idle_timeout", what: string): PolyGatewayError {
    const { name } = this.#attempt.source;
    return new TransientError(composeMessage(name, "transient failure", what), { code, sourceName: name });
  }

  #end(outcome: AttemptOutcome, tokens: number, settle: () => void): void {
    if (this.#over) return;
    this.#close(outcome, tokens);
    this.#live.delete(this);
    this.#tell(outcome);
    settle();
  }

  #close(outcome: AttemptOutcome, tokens: number): void {
    this.#over = true;
    this.#watchdog.stop();
    this.#cancelNext?.();
    this.#stopListening?.();
    const nowMs = this.#world.kernel.now();
    const held = this.#exchange.inProgress;
    this.#source.leave(this.#exchange, nowMs, this.#written(nowMs));
    if (this.#server !== undefined && held) this.#server.leave();
    this.#record.endMs = nowMs;
    this.#record.outcome = outcome;
    this.#record.tokens = tokens;
  }

  #written(nowMs: number): number {
    const { startMs, durationMs, firstTokenMs, outputTokens } = this.#exchange;
    if (firstTokenMs === null) return 0;
    const writingMs = nowMs - startMs - firstTokenMs;
    return Math.round(outputTokens * Math.min(1, Math.max(0, writingMs) / (durationMs - firstTokenMs)));
  }

  #completion(): ChatCompletion {
    const { inputTokens, outputTokens, limits } = this.#exchange;
    return sampleCompletion({
      usage: sampleUsage(inputTokens, outputTokens),
      modelReported: "simulated",
      latencyMs: this.#world.kernel.now() - this.#record.startMs,
      ttftMs: this.#firstTokenMs,
      limits,
    });
  }

  #tell(what: string): void {
    this.#world.trace.add(what, this.#workerName, this.#record.source, this.#record.callIndex);
  }
}
