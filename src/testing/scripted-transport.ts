import type { ChatCompletion } from "../domain/chat.js";
import type { UpstreamLimits } from "../domain/upstream-limits.js";
import { TransientError } from "../errors.js";
import type { ChatAttempt, ChatTransport } from "../ports/transport.js";
import { sampleCompletion, sampleUsage } from "./sample-answers.js";

/** What a simulated provider does with one attempt, in the time of the attempt's own runtime. */
export interface ScriptedReply {
  /** When the first token comes, from the send; absent = with the end. */
  readonly firstTokenMs?: number;
  /** When the answer, or the error, comes. Absent = never: only a timeout or the caller ends it. */
  readonly afterMs?: number;
  /** Ends the attempt with this error instead of an answer. */
  readonly error?: Error;
  readonly content?: string;
  readonly totalTokens?: number;
  /** What the answer's headers say. */
  readonly limits?: UpstreamLimits;
  /** The provider reports no usage. */
  readonly withoutUsage?: boolean;
}

export interface ScriptedSend {
  readonly source: string;
  readonly atMs: number;
  /** When it ended; null while it runs. */
  endedAtMs: number | null;
  readonly callId: string;
}

export interface ScriptedTransport extends ChatTransport {
  /** Every attempt that was sent, in order. */
  readonly sends: ScriptedSend[];
  /** Attempts that are in the provider's hands now. */
  inflight(source?: string): number;
}

export type Script = (attempt: ChatAttempt, sendNumber: number) => ScriptedReply;

/**
 * A transport without a network: the script answers, the source's own total and first-token timeouts apply.
 * For tests of everything above the transport, on real or virtual time.
 */
export function createScriptedTransport(script: Script): ScriptedTransport {
  const sends: ScriptedSend[] = [];

  function complete(attempt: ChatAttempt): Promise<ChatCompletion> {
    const { context, source } = attempt;
    const { runtime } = context;
    context.markSent();
    const send: ScriptedSend = { source: source.name, atMs: runtime.now(), endedAtMs: null, callId: context.callId };
    sends.push(send);
    const reply = script(attempt, sends.length);
    return new Promise((resolve, reject) => {
      const cancels: (() => void)[] = [];
      const end = (settle: () => void): void => {
        if (send.endedAtMs !== null) return;
        send.endedAtMs = runtime.now();
        for (const cancel of cancels) cancel();
        settle();
      };
      let firstToken = false;
      const onFirstToken = (): void => {
        if (firstToken) return;
        firstToken = true;
        context.markFirstToken();
        attempt.sink?.push([{ type: "text-delta", text: reply.content ?? "answer" }]);
      };
      const finish = (): void => {
        if (reply.error === undefined) onFirstToken();
        end(() =>
          reply.error === undefined ? resolve(completionOf(reply, send, runtime.now())) : reject(reply.error),
        );
      };
      const timeout = (code: "timeout" | "ttft_timeout", limitMs: number) => (): void => {
        if (code === "ttft_timeout" && (firstToken || !attempt.stream)) return;
        const message = `${source.name} transient failure: ${code} after ${limitMs} ms`;
        end(() => reject(new TransientError(message, { code, sourceName: source.name })));
      };
      cancels.push(context.onAbort((reason) => end(() => reject(reason))));
      if (send.endedAtMs !== null) return;
      cancels.push(runtime.setTimer(source.timeoutMs, timeout("timeout", source.timeoutMs)));
      cancels.push(runtime.setTimer(source.ttftTimeoutMs, timeout("ttft_timeout", source.ttftTimeoutMs)));
      if (reply.firstTokenMs !== undefined) cancels.push(runtime.setTimer(reply.firstTokenMs, onFirstToken));
      if (reply.afterMs === 0) finish();
      else if (reply.afterMs !== undefined) cancels.push(runtime.setTimer(reply.afterMs, finish));
    });
  }

  return {
    complete,
    async close() {},
    sends,
    inflight: (source) =>
      sends.filter((send) => send.endedAtMs === null && (source === undefined || send.source === source)).length,
  };
}

function completionOf(reply: ScriptedReply, send: ScriptedSend, nowMs: number): ChatCompletion {
  const totalTokens = reply.totalTokens ?? 15;
  const promptTokens = Math.min(10, totalTokens);
  return sampleCompletion({
    content: reply.content ?? "answer",
    usage: reply.withoutUsage === true ? null : sampleUsage(promptTokens, totalTokens - promptTokens),
    modelReported: "simulated",
    latencyMs: nowMs - send.atMs,
    ttftMs: reply.firstTokenMs ?? null,
    limits: reply.limits,
  });
}
