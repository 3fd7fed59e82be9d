import { plainBody, streamEvents } from "./chat-wire.js";
import type { ProviderClock } from "./clock.js";
import type { Connection } from "./connection.js";
import { eventStreamHead, httpChunk, jsonHead, LAST_CHUNK, type ResponseHeaders } from "./http-response.js";
import type { LedgerOutcome } from "./ledger.js";
import type { Plan } from "./plan.js";
import type { Reply } from "./reply.js";

export interface AnswerJob {
  readonly connection: Connection;
  readonly clock: ProviderClock;
  readonly plan: Plan;
  readonly reply: Reply;
  readonly headers: ResponseHeaders;
  readonly keepAlive: boolean;
  /** The head left, and this many tokens so far. */
  onProgress(tokens: number): void;
  /** From here on nothing more is sent, but the socket stays open. */
  onHang(): void;
  /** Everything that will be sent was sent. Called before the connection is released. */
  onEnd(outcome: LedgerOutcome): void;
}

/** Tokens of a slow stream are sent together when they are due within this time: few timers, same rate. */
const SHORTEST_TICK_MS = 10;

type BreakKind = "cut" | "hang" | "reset";

function breakKind({ fault }: Plan): BreakKind | null {
  return fault === "cut" || fault === "hang" || fault === "reset" ? fault : null;
}

/** Ends a broken answer in its own way. */
function breakOff(job: AnswerJob, kind: BreakKind): void {
  const { connection, plan, reply, keepAlive } = job;
  if (kind === "hang") {
    job.onHang();
    return;
  }
  if (kind === "reset") {
    job.onEnd("reset");
    connection.reset(plan.brokenAt === null ? "now" : "after_flush");
    return;
  }
  const isClean = reply.request.stream && plan.cleanCut;
  if (isClean) connection.write(LAST_CHUNK);
  job.onEnd("cut");
  // A body that ended properly leaves a usable socket; closing it would race with the client's next request.
  connection.finish(isClean && keepAlive);
}

function sendPlain(job: AnswerJob): void {
  const { connection, plan, reply, headers, keepAlive } = job;
  const kind = breakKind(plan);
  if (kind !== null && plan.brokenAt === null) {
    breakOff(job, kind);
    return;
  }
  const body = reply.json ?? plainBody(reply);
  if (kind !== null && plan.brokenAt !== null) {
    const bytes = Buffer.from(body);
    connection.write(jsonHead(200, bytes.length, headers, keepAlive));
    job.onProgress(0);
    connection.write(bytes.subarray(0, Math.floor(plan.brokenAt * bytes.length)));
    breakOff(job, kind);
    return;
  }
  connection.write(jsonHead(200, Buffer.byteLength(body), headers, keepAlive) + body);
  job.onProgress(reply.completionTokens);
  job.onEnd("answered");
  connection.finish(keepAlive);
}

function sendStream(job: AnswerJob): void {
  const { connection, clock, plan, reply, headers, keepAlive } = job;
  const kind = breakKind(plan);
  if (kind !== null && plan.brokenAt === null) {
    breakOff(job, kind);
    return;
  }
  const { beforeTokens, delta, end } = streamEvents(reply);
  const lastEvent = kind === null ? delta.length : Math.floor((plan.brokenAt ?? 0) * delta.length);
  const startedAtMs = clock.now();
  let head = eventStreamHead(headers, keepAlive);
  let sent = 0;

  /** Sends the events that are due, behind the head when it is the first time. */
  function send(text: string, ending = ""): void {
    connection.write(head + (text === "" ? "" : httpChunk(text)) + ending);
    head = "";
  }

  function sendUpTo(due: number): void {
    const until = Math.max(sent, Math.min(due, lastEvent));
    const events = delta.slice(sent, until).join("");
    sent = until;
    job.onProgress(Math.min(reply.completionTokens, Math.max(0, sent - beforeTokens)));
    if (sent < lastEvent) {
      send(events);
      connection.after(Math.max(plan.tokenMs, SHORTEST_TICK_MS), sendDue);
      return;
    }
    if (kind !== null) {
      send(events);
      breakOff(job, kind);
      return;
    }
    send(events + end, LAST_CHUNK);
    job.onProgress(reply.completionTokens);
    job.onEnd("answered");
    connection.finish(keepAlive);
  }

  function sendDue(): void {
    const tokensDue = plan.tokenMs <= 0 ? delta.length : 1 + Math.floor((clock.now() - startedAtMs) / plan.tokenMs);
    sendUpTo(beforeTokens + tokensDue);
  }

  sendDue();
}

/** Sends one answer, whole or broken as planned, after its latency. */
export function sendAnswer(job: AnswerJob): void {
  const { connection, plan, reply } = job;
  const { stream } = reply.request;
  if (plan.fault === "hang" && plan.brokenAt === null) {
    job.onHang();
    return;
  }
  const generationMs = stream ? 0 : plan.tokenMs * Math.max(0, reply.tokens.length - 1);
  connection.after(plan.ttftMs + generationMs, () => (stream ? sendStream(job) : sendPlain(job)));
}
