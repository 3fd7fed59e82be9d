import { msText } from "../../domain/ms-text.js";
import type { AttemptContext } from "../../ports/transport.js";
import { transientEnd } from "../openai/judge.js";
import type { WholeBody } from "../openai/whole-answer.js";

/** TIMEOUT_S bounds an attempt over all its requests: what is left of it after the first answer. */
export interface TimeLeft {
  /** For the next request, in ms; 0 = no bound. Throws when nothing is left. */
  forNextMs(): number;
  /** Nobody waits for this attempt any more. */
  isOver(): boolean;
  /** Since the first request left, in ms. */
  elapsedMs(): number;
}

/** @param first the answer to the first request, just read */
export function timeLeft(first: WholeBody, timeoutMs: number, context: AttemptContext): TimeLeft {
  const { runtime } = context;
  const sentMs = runtime.now() - first.latencyMs;
  const leftMs = () => (timeoutMs <= 0 ? Number.POSITIVE_INFINITY : sentMs + timeoutMs - runtime.now());
  return {
    forNextMs() {
      const left = leftMs();
      if (left > 0) return Number.isFinite(left) ? left : 0;
      throw transientEnd(first, "timeout", `no complete answer within ${msText(timeoutMs)} (TIMEOUT_S)`);
    },
    isOver: () => context.aborted || leftMs() <= 0,
    elapsedMs: () => runtime.now() - sentMs,
  };
}
