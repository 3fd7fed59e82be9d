import type { ChatRequest, ChatResponse } from "../domain/chat.js";
import { countOf } from "../domain/count-of.js";
import type { StructuredCall, StructuredOptions, StructuredReply } from "../domain/structured.js";
import { PolyGatewayError, RequestRejectedError, ResultInvalidError, type SourceReasonDetail } from "../errors.js";
import type { GovernEnvironment } from "../governance/call.js";
import type { Incapable } from "../governance/operation.js";
import type { AnswerIssue } from "../structured/issues.js";
import { reaskMessages } from "../structured/prompt.js";
import type { AbleSources } from "./able-sources.js";
import type { AnswerFormat, FormatShelf } from "./answer-format.js";
import type { CallLifetime } from "./call-lifetime.js";
import type { ChatCache } from "./chat-cache.js";
import { type CheckedRequest, checkRequest } from "./chat-request.js";
import { checkStructuredRequest, planStructured, type StructuredPlan } from "./structured-plan.js";
import { Spent } from "./structured-spent.js";
import { isBudgetRefusal, withMoreTokens } from "./token-budget.js";

export interface StructuredParts {
  readonly environment: GovernEnvironment;
  readonly lifetime: CallLifetime;
  readonly able: (request: CheckedRequest) => AbleSources;
  readonly shelf: FormatShelf;
  readonly cache: ChatCache | null;
  /** One governed chat call. */
  answer(request: CheckedRequest, pool: AbleSources, format: AnswerFormat, key: string | null): Promise<ChatResponse>;
}

/** Asks until the answer fits, at most `1 + maxReasks` times; see GatewayClient.structured. */
export function createStructured(parts: StructuredParts): StructuredCall {
  const { environment, lifetime, able, shelf, cache } = parts;
  const nativePool = nativePools(environment.config.scope);

  async function structured(
    request: ChatRequest,
    schema: unknown,
    options: StructuredOptions = {},
  ): Promise<StructuredReply<unknown>> {
    lifetime.enter();
    try {
      const checked = checkRequest(request, "chat");
      checkStructuredRequest(checked);
      const plan = planStructured(schema, options, shelf);
      const pool = plan.strategy === "native" ? nativePool(able(checked)) : able(checked);
      const key = cache === null ? null : cache.keyOf(checked, pool.sources, plan.format);
      return await askUntilFit(parts, checked, plan, pool, key);
    } finally {
      lifetime.leave();
    }
  }

  return structured as StructuredCall;
}

async function askUntilFit(
  { environment, answer }: StructuredParts,
  request: CheckedRequest,
  plan: StructuredPlan,
  pool: AbleSources,
  key: string | null,
): Promise<StructuredReply<unknown>> {
  const { runtime, config } = environment;
  const startedMs = runtime.now();
  const limitMs = request.deadlineMs ?? config.deadlineMs;
  const spent = new Spent();
  let ask: CheckedRequest = { ...request, ledger: spent };
  let format = plan.format;
  let last: ResultInvalidError | null = null;
  for (let asks = 1; ; asks += 1) {
    try {
      const reply = await answer(ask, pool, format, key);
      return { value: reply.parsed, reply, asks, ...spent.total() };
    } catch (error) {
      // The caller's own reason is his, whatever it is.
      if (request.signal?.aborted === true && error === request.signal.reason) throw error;
      // The model can't give more: what it said within its limit is the result.
      if (last?.code === "truncated" && isBudgetRefusal(error)) throw lastWord(last, asks, spent, error);
      if (!ResultInvalidError.isInstance(error)) throw otherEnd(error, last, asks, spent);
      const next = asks > plan.maxReasks ? null : nextAsk(request, ask, error, plan);
      if (next === null) throw lastWord(error, asks, spent);
      last = error;
      format = { ...format, ladder: format.ladder.again() };
      // The deadline is one for all asks.
      const leftMs = limitMs === undefined ? undefined : Math.max(0, limitMs - (runtime.now() - startedMs));
      ask = leftMs === undefined ? next : { ...next, deadlineMs: leftMs, wholeDeadlineMs: limitMs! };
    }
  }
}

/** The request that follows an unusable answer; null = asking again can't help. */
function nextAsk(
  request: CheckedRequest,
  ask: CheckedRequest,
  error: ResultInvalidError,
  plan: StructuredPlan,
): CheckedRequest | null {
  if (error.details?.undecided === true) return null;
  if (error.code === "truncated") return withMoreTokens(ask, error);
  // A call of tools must be answered by their results, which only the caller has.
  if ((error.partial?.toolCalls.length ?? 0) > 0) return null;
  // Only the last reply goes back: each of them may be long.
  const issues = error.issues as readonly AnswerIssue[];
  const messages = reaskMessages(request.messages, error.rawText, issues, plan.wrapped);
  return { ...ask, messages, messagesJson: JSON.stringify(messages) };
}

function lastWord(error: ResultInvalidError, asks: number, spent: Spent, cause?: RequestRejectedError): unknown {
  const times = countOf(asks, "ask");
  const why = cause === undefined ? "" : `; more tokens were refused: ${cause.message}`;
  return retold(error, `${error.message} (after ${times}${why})`, asks, spent, cause);
}

/** An end that is no answer: it tells besides what was asked and paid before, and why that didn't do. */
function otherEnd(error: unknown, last: ResultInvalidError | null, asks: number, spent: Spent): unknown {
  if (!PolyGatewayError.isInstance(error) || (last === null && spent.isNothing)) return error;
  const before = last === null ? "" : ` (in ask ${asks}; the answer before it: ${last.message})`;
  return retold(error, error.message + before, asks, spent, last ?? error.cause);
}

type ErrorKind = new (message: string, options: object) => PolyGatewayError;

/** A new error of the same kind and with the same facts, since others may have been given this one. */
function retold(error: PolyGatewayError, message: string, asks: number, spent: Spent, cause: unknown): unknown {
  const details = { ...error.details, asks, ...spent.total() };
  return new (error.constructor as ErrorKind)(message, { ...error, operation: "chat", details, cause });
}

type Members = Pick<AbleSources, "sources" | "candidates">;

/** Sources that enforce a schema; one pair of lists for each pool, so that equal calls are recognised. */
function nativePools(scope: string): (pool: AbleSources) => AbleSources {
  const known = new WeakMap<readonly string[], Members>();
  return (pool) => {
    let members = known.get(pool.candidates);
    if (members === undefined) {
      const sources = pool.sources.filter(({ profile }) => profile.structuredOutput.includes("json_schema"));
      members = { sources, candidates: sources.map(({ name }) => name) };
      known.set(pool.candidates, members);
    }
    return { ...pool, ...members, incapable: withoutSchema(scope, pool, members) };
  };
}

function withoutSchema(scope: string, pool: AbleSources, { sources }: Members): Incapable | null {
  const left = pool.sources.filter((source) => !sources.includes(source));
  if (left.length === 0) return pool.incapable;
  const reasons: Record<string, SourceReasonDetail> = { ...pool.incapable?.reasons };
  for (const { name, profile } of left) {
    const message = `its profile ${profile.name} enforces no JSON Schema`;
    reasons[name] = { reason: "incapable", waitMs: 0, lastError: { code: "unsupported_param", message } };
  }
  return { reasons, refusal: () => noneNative(scope, pool) };
}

function noneNative(scope: string, { sources }: AbleSources): RequestRejectedError {
  const profiles = [...new Set(sources.map(({ profile }) => profile.name))].join(", ");
  return new RequestRejectedError(
    `no source of scope ${scope} enforces a JSON Schema (profiles: ${profiles || "none"}); nothing was sent. ` +
      'Use strategy "auto" or "prompt", or a profile whose structuredOutput holds "json_schema"',
    { code: "unsupported_param", operation: "chat", details: { param: "response_format" } },
  );
}
