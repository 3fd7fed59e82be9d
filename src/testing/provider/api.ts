import { type Answer, echoAnswer, type ReceivedRequest, readChatRequest } from "./answer.js";
import type { ProviderClock } from "./clock.js";
import type { ClosedBy, Connection } from "./connection.js";
import { buildEmbeddingReply, readEmbeddingRequest } from "./embeddings.js";
import { apiKeyOf, createExchanges, type Exchange } from "./exchange.js";
import { errorBody, jsonResponse, NO_HEADERS, type ResponseHeaders } from "./http-response.js";
import type { Ledger } from "./ledger.js";
import { createLimiter, rateLimitHeaders } from "./limits.js";
import type { SimulatedProviderOptions } from "./options.js";
import { drawPlan, type Plan } from "./plan.js";
import { drawsFor } from "./random.js";
import { BAD_KEY, badRequest, drawnRefusal, limitRefusal, NO_SUCH_PATH, type Refusal, UNAVAILABLE } from "./refusal.js";
import { buildReply, type Reply } from "./reply.js";
import type { RequestHead } from "./request-reader.js";
import { type ResponseScript, replay, type UpstreamScript } from "./script.js";
import { createScriptQueue, type ScriptTimes } from "./script-queue.js";
import { sendAnswer } from "./send-answer.js";

export type Outage = "off" | "refuse" | "503";

/** The settings that may change while the provider runs. */
export type Changeable = Pick<SimulatedProviderOptions, "faults" | "latency" | "output" | "limits">;

/** A request that could be read. */
interface Asked {
  readonly request: ReceivedRequest;
  reply(plan: Plan, made: Pick<Reply, "id" | "createdS">): Reply;
}

/** A request that gets an answer, whole or broken. */
interface Decided {
  readonly plan: Plan;
  readonly reply: Reply;
  readonly headers: ResponseHeaders;
}

const CHAT_PATH = "/v1/chat/completions";
const EMBEDDINGS_PATH = "/v1/embeddings";
const DEFAULT_RATE_LIMIT_RETRY_MS = 1_000;

function modelsBody(models: readonly string[]): string {
  return JSON.stringify({ object: "list", data: models.map((id) => ({ id, object: "model", owned_by: "simulated" })) });
}

/** What the provider does with each request; knows connections, not the listening socket. */
export function createProviderApi(options: SimulatedProviderOptions, clock: ProviderClock, ledger: Ledger) {
  const { name = "sim", seed = 1, models = ["sim-model"], answer = ({ question }) => echoAnswer(question) } = options;
  const acceptedKeys = new Set(options.apiKeys ?? []);
  const exchanges = createExchanges(ledger, clock);
  const scripts = createScriptQueue();
  let { faults = {}, latency = {}, output, limits = {} } = options;
  let limiter = createLimiter(limits);
  let outage: Outage = "off";
  let upSinceMs = clock.now();
  let draining = false;

  function sendRefusal(exchange: Exchange, refusal: Refusal, keepAlive: boolean): void {
    const { connection } = exchange;
    connection.write(jsonResponse(refusal.status, refusal.body, refusal.headers, keepAlive));
    exchanges.end(exchange, refusal.status, refusal.outcome);
    connection.finish(keepAlive);
  }

  function playScript(exchange: Exchange, script: ResponseScript | "reset"): void {
    if (script === "reset") {
      exchanges.end(exchange, 0, "scripted");
      exchange.connection.reset("now");
      return;
    }
    exchange.brokenOutcome = "scripted";
    exchange.hanging = script.end === "hang";
    exchange.entry.status = script.status ?? 0;
    replay(script, exchange.connection, {
      wallNow: () => clock.wallNow(),
      onEnd: () => exchanges.end(exchange, script.status ?? 0, "scripted"),
    });
  }

  function isAuthorized(head: RequestHead): boolean {
    if (faults.deadKey) return false;
    return acceptedKeys.size === 0 || acceptedKeys.has(apiKeyOf(head));
  }

  function answerOf(request: ReceivedRequest): Answer | string {
    try {
      const given = answer(request);
      return typeof given === "string" ? { content: given } : given;
    } catch (error) {
      return `The provider's answer function failed: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  /** What a request asks for, without a length or a fault yet; a string says why it is refused with a 400. */
  function read(head: RequestHead, body: Buffer): Asked | string {
    if (head.path === EMBEDDINGS_PATH) {
      const asked = readEmbeddingRequest(body, head.headers);
      if (typeof asked === "string") return asked;
      return { request: asked.request, reply: (_plan, made) => buildEmbeddingReply(asked, made) };
    }
    const request = readChatRequest(body, head.headers);
    if (typeof request === "string") return request;
    const given = answerOf(request);
    if (typeof given === "string") return given;
    return { request, reply: (plan, made) => buildReply(request, given, plan, made) };
  }

  /** Everything random and every decision about one request, before anything is sent. */
  function decide({ entry }: Exchange, head: RequestHead, body: Buffer): Refusal | Decided {
    if (head.path !== CHAT_PATH && head.path !== EMBEDDINGS_PATH) return NO_SUCH_PATH;
    if (!isAuthorized(head)) return BAD_KEY;
    const asked = read(head, body);
    if (typeof asked === "string") return badRequest(asked);
    const { request } = asked;
    entry.promptTokens = request.promptTokens;
    entry.maxTokens = request.maxTokens ?? null;
    const plan = drawPlan(drawsFor(seed, entry.id), { faults, latency, output });
    const createdS = Math.floor(clock.wallNow() / 1000);
    const reply = asked.reply(plan, { id: `chatcmpl-${name}-${entry.id}`, createdS });
    const announce = limits.announce ?? true;
    const decision = limiter.admit(request.promptTokens + reply.completionTokens, {
      nowMs: clock.now(),
      wallNowMs: clock.wallNow(),
      inProgress: exchanges.inProgress - 1,
    });
    if (decision.refusedBy !== null) return limitRefusal(decision, announce);
    const drawn = drawnRefusal(plan, faults.rateLimitRetryAfterMs ?? DEFAULT_RATE_LIMIT_RETRY_MS);
    return drawn ?? { plan, reply, headers: announce ? rateLimitHeaders(decision) : NO_HEADERS };
  }

  function serveChat(exchange: Exchange, head: RequestHead, body: Buffer, keepAlive: boolean): void {
    const decided = decide(exchange, head, body);
    if ("outcome" in decided) sendRefusal(exchange, decided, keepAlive);
    else startAnswer(exchange, decided, keepAlive);
  }

  function startAnswer(exchange: Exchange, decided: Decided, keepAlive: boolean): void {
    const { connection, entry } = exchange;
    entry.billedTokens = entry.promptTokens;
    sendAnswer({
      ...decided,
      connection,
      clock,
      keepAlive,
      onProgress(tokens) {
        entry.status = 200;
        entry.completionTokens = tokens;
        entry.billedTokens = entry.promptTokens + tokens;
      },
      onHang: () => exchanges.hang(exchange, entry.status, "hang"),
      onEnd: (outcome) => exchanges.end(exchange, entry.status, outcome),
    });
  }

  function servePost(exchange: Exchange, head: RequestHead, body: Buffer): void {
    const keepAlive = head.keepAlive && !draining;
    const script = outage === "off" ? scripts.take(exchange.connection.earlierRequests) : null;
    if (outage !== "off") sendRefusal(exchange, UNAVAILABLE, keepAlive);
    else if (script !== null) playScript(exchange, script);
    else {
      const notUpForMs = (faults.slowStartMs ?? 0) - (clock.now() - upSinceMs);
      exchange.connection.after(notUpForMs, () => serveChat(exchange, head, body, keepAlive));
    }
  }

  /** GET requests: no ledger, no limits, no faults but an outage. */
  function serveGet(connection: Connection, head: RequestHead): void {
    const keepAlive = head.keepAlive && !draining;
    const known: Record<string, string> = { "/healthz": `{"status":"ok"}`, "/v1/models": modelsBody(models) };
    const body = head.method === "GET" ? known[head.path] : undefined;
    const down = outage !== "off" ? UNAVAILABLE : NO_SUCH_PATH;
    const isGood = outage === "off" && body !== undefined;
    connection.write(jsonResponse(isGood ? 200 : down.status, isGood ? body : down.body, NO_HEADERS, keepAlive));
    connection.finish(keepAlive);
  }

  return {
    onHead(connection: Connection, head: RequestHead): void {
      if (head.method === "POST") exchanges.open(connection, head);
    },
    onRequest(connection: Connection, head: RequestHead, body: Buffer): void {
      const exchange = exchanges.of(connection);
      if (exchange === undefined) serveGet(connection, head);
      else servePost(exchange, head, body);
    },
    onUnreadable(connection: Connection, status: number, message: string): void {
      const exchange = exchanges.of(connection);
      connection.write(
        jsonResponse(status, errorBody(message, "invalid_request_error", "unreadable"), NO_HEADERS, false),
      );
      if (exchange !== undefined) exchanges.end(exchange, status, "bad_request");
      connection.end();
    },
    onClose: (connection: Connection, by: ClosedBy): void => exchanges.abandon(connection, by),
    arrived: (): number => exchanges.arrived,
    inProgress: (): number => exchanges.inProgress,
    drained(graceMs: number): Promise<void> {
      draining = true;
      return exchanges.drained(graceMs);
    },
    script: (script: UpstreamScript, times: ScriptTimes = 1): void => scripts.add(script, times),
    clearScripts: (): void => scripts.clear(),
    change(changes: Changeable): void {
      ({ faults = faults, latency = latency, output = output, limits = limits } = changes);
      if (changes.limits !== undefined) limiter = createLimiter(limits);
    },
    setOutage(next: Outage): void {
      if (outage !== "off" && next === "off") upSinceMs = clock.now();
      outage = next;
    },
  };
}
