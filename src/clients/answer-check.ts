import type { ChatCompletion, FinishReason } from "../domain/chat.js";
import { msText } from "../domain/ms-text.js";
import type { SourceConfig } from "../domain/source.js";
import { RequestRejectedError, ResultInvalidError } from "../errors.js";
import type { AttemptContext } from "../ports/transport.js";
import type { AnswerIssue } from "../structured/issues.js";
import { type Read, readAnswer } from "../structured/reader.js";
import { createRedactor } from "../transports/redact.js";
import type { AnswerFormat } from "./answer-format.js";

/** Judges an answer inside its attempt, so that its row and the breaker are told the truth. */

const SUMMARIES = {
  truncated: "the output limit cut the answer; raise maxTokens",
  malformed: "the answer is no whole JSON document",
  schema: "the answer doesn't fit the schema",
} as const;

function summary(code: keyof typeof SUMMARIES, issues: readonly AnswerIssue[]): string {
  const [first, ...more] = issues;
  if (code === "truncated" || first === undefined) return SUMMARIES[code];
  const further = more.length === 0 ? "" : ` (and ${more.length} more)`;
  const place = first.path === "" ? "" : `${first.path}: `;
  return `${SUMMARIES[code]}: ${place}expected ${first.expected}, got ${first.got}${further}`;
}

/** A model may have been told a credential and say it again: it is taken out before anything is quoted or cut. */
function withoutSecrets(completion: ChatCompletion, source: SourceConfig): ChatCompletion {
  const redact = createRedactor([source]);
  return { ...completion, content: redact(completion.content), thinking: redact(completion.thinking) };
}

function invalid(completion: ChatCompletion, sourceName: string, read: Read & { ok: false }): ResultInvalidError {
  const { content, thinking, toolCalls, usage, statusCode, finishReason } = completion;
  return new ResultInvalidError(`${sourceName} unusable result: ${summary(read.code, read.issues)}`, {
    code: read.code,
    sourceName,
    statusCode,
    rawText: content,
    issues: read.issues,
    details: { finishReason },
    partial: { content, thinking, toolCalls, usage },
  });
}

function refused(completion: ChatCompletion, sourceName: string, code: "refused" | "content_filtered") {
  const { content, thinking, toolCalls, usage, statusCode, refusal } = completion;
  const what = code === "refused" ? "the model refused to answer" : "the provider's content filter withheld the answer";
  return new RequestRejectedError(`${sourceName} request rejected: ${what}`, {
    code,
    sourceName,
    statusCode,
    ...(refusal === undefined || refusal === "" ? {} : { upstreamMessage: refusal }),
    partial: { content, thinking, toolCalls, usage },
  });
}

const CALLED_TOOLS: Read & { ok: false } = {
  ok: false,
  code: "malformed",
  issues: [{ path: "", expected: "JSON", got: "a tool call" }],
};

/**
 * The completion with `parsed`. An answer that calls tools or refuses is no final text: a plain call gets it as it is,
 * `structured()` an error. Throws ResultInvalidError (truncated, malformed, schema) or RequestRejectedError (refused,
 * content_filtered).
 */
export async function checkAnswer(
  completion: ChatCompletion,
  format: AnswerFormat,
  source: SourceConfig,
): Promise<ChatCompletion> {
  const { name: sourceName } = source;
  const { content, toolCalls, refusal, finishReason } = completion;
  if (refusal !== undefined && refusal !== "") {
    if (format.mustAnswer) throw refused(withoutSecrets(completion, source), sourceName, "refused");
    return completion;
  }
  const callsTools = toolCalls.length > 0;
  if (callsTools && content.trim() === "") {
    if (format.mustAnswer) throw invalid(completion, sourceName, CALLED_TOOLS);
    return completion;
  }
  const read = await readAnswer(content, finishReason, format.schema);
  if (read.ok) return { ...completion, parsed: read.value };
  if (callsTools && !format.mustAnswer) return completion;
  const clean = withoutSecrets(completion, source);
  if (finishReason === "content_filter") throw refused(clean, sourceName, "content_filtered");
  const again = clean.content === content ? read : await readAnswer(clean.content, finishReason, format.schema);
  throw invalid(clean, sourceName, again.ok ? { ...read, issues: [] } : again);
}

/** A kept answer, judged anew: what was asked for may have changed. undefined = it no longer fits. */
export async function checkKept(
  answer: { readonly content: string; readonly toolCalls: readonly unknown[]; readonly finishReason: FinishReason },
  format: AnswerFormat,
): Promise<{ readonly parsed?: unknown } | undefined> {
  const isPlainCall = answer.toolCalls.length > 0 && !format.mustAnswer;
  if (isPlainCall && answer.content.trim() === "") return {};
  const read = await readAnswer(answer.content, answer.finishReason, format.schema);
  if (read.ok) return { parsed: read.value };
  return isPlainCall ? {} : undefined;
}

/** The answer of a schema that takes too long. Throws nothing. */
export function undecided(completion: ChatCompletion, source: SourceConfig, limitMs: number): ResultInvalidError {
  const expected = `a decision of the schema within ${msText(limitMs)}`;
  const issues = [{ path: "", expected, got: "none" }];
  const error = invalid(withoutSecrets(completion, source), source.name, { ok: false, code: "schema", issues });
  return Object.assign(error, { details: { ...error.details, undecided: true } });
}

interface Judging {
  /** Gives the permit back. */
  readonly release: () => void;
  readonly limitMs: number;
  readonly undecided: (limitMs: number) => ResultInvalidError;
}

/** Any schema that is no code of the user's has decided by then. */
const RELEASE_AFTER_MS = 50;

/**
 * The judgement of an answer, unless the call is stopped or the schema doesn't come to an end. While it takes long the
 * permit is not held: a schema may itself ask the same client.
 */
export function judged<T>(
  context: AttemptContext,
  work: Promise<T>,
  { release, limitMs, undecided: makeError }: Judging,
): Promise<T> {
  const { runtime } = context;
  return new Promise((resolve, reject) => {
    let stop = (): void => {};
    const cancelRelease = runtime.setTimer(RELEASE_AFTER_MS, release);
    const cancelLimit = runtime.setTimer(limitMs, () => end(() => reject(makeError(limitMs))));
    const end = (settle: () => void): void => {
      cancelRelease();
      cancelLimit();
      stop();
      settle();
    };
    stop = context.onAbort((reason) => end(() => reject(reason)));
    work.then(
      (result) => end(() => resolve(result)),
      (error: unknown) => end(() => reject(error)),
    );
  });
}
