import { createHash } from "node:crypto";
import type { OpenAttempt } from "../domain/record.js";
import { isoTime, type StoredRow, uuidTimeMs } from "./columns.js";
import { completeRow } from "./json-lines.js";
import type { OutAnswer } from "./out-answers.js";

/** What other rows of the same call, or of the same source, tell about an attempt that left only a journal row. */
export interface AttemptContext {
  /** Newest row of the same call; null when there is none. */
  readonly sibling: StoredRow | null;
  readonly provider: string | null;
  readonly model: string | null;
  /** Attempts of the call that have rows. */
  readonly earlierAttempts: number;
  readonly nowMs: number;
}

function attemptRow(open: OpenAttempt, context: AttemptContext): Record<string, unknown> {
  const { sibling } = context;
  return {
    call_id: open.callId,
    session_id: open.sessionId ?? sibling?.session_id,
    parent_call_id: open.parentCallId ?? sibling?.parent_call_id,
    scope: open.scope,
    operation: open.operation ?? sibling?.operation,
    provider: context.provider,
    source_name: open.sourceName,
    model: context.model,
    attempt: context.earlierAttempts + 1,
    request_id: open.requestId,
    worker: open.worker,
    created_at: isoTime(context.nowMs),
  };
}

/** The attempt was sent and its worker died: nobody knows how it ended. */
export function abandonedRow(open: OpenAttempt, context: AttemptContext): StoredRow {
  const error = "sent, outcome unknown, possibly billed: its process ended before the answer was recorded";
  return completeRow({ ...attemptRow(open, context), error, outcome: "abandoned", final: 0 });
}

/** The answer stands in OUT, only its row was lost. */
export function answeredRow(open: OpenAttempt, answer: OutAnswer, context: AttemptContext): StoredRow {
  return completeRow({
    ...attemptRow(open, context),
    ...answer.columns,
    outcome: "success",
    status_code: 200,
    final: 1,
  });
}

/** Ends a call whose worker died. Its id follows from the call's, so that two repairs at once add one row. */
export function terminalRow(
  call: Pick<OpenAttempt, "requestId" | "worker" | "scope"> &
    Partial<Pick<OpenAttempt, "sessionId" | "parentCallId" | "operation">>,
  sibling: StoredRow | null,
  nowMs: number,
): StoredRow {
  return completeRow({
    call_id: terminalCallId(call.requestId),
    session_id: sibling?.session_id ?? call.sessionId,
    parent_call_id: sibling?.parent_call_id ?? call.parentCallId,
    scope: call.scope,
    operation: sibling?.operation ?? call.operation,
    error: "its process ended before the call did",
    outcome: "abandoned",
    request_id: call.requestId,
    worker: call.worker,
    final: 1,
    created_at: isoTime(nowMs),
  });
}

/** A UUIDv7 with the call's own time and bits made from its id instead of random ones. */
export function terminalCallId(requestId: string): string {
  const digest = createHash("sha256").update(`terminal row of ${requestId}`).digest("hex");
  const timeHex = (uuidTimeMs(requestId) ?? 0).toString(16).padStart(12, "0");
  const variant = "89ab"[Number.parseInt(digest.charAt(3), 16) % 4];
  return `${timeHex.slice(0, 8)}-${timeHex.slice(8)}-7${digest.slice(0, 3)}-${variant}${digest.slice(4, 7)}-${digest.slice(7, 19)}`;
}
