import type { ChatChoice } from "../../domain/chat.js";
import type { Usage } from "../../domain/usage.js";
import {
  type ErrorCode,
  type PolyGatewayError,
  RequestRejectedError,
  ResultInvalidError,
  TransientError,
} from "../../errors.js";
import { composeMessage } from "../body-digest.js";
import type { ChatAssembler } from "./assemble.js";
import { finishFailure } from "./finish-reason.js";

/** The end of an answer, judged (spec 03 "Complete"): a whole answer, or the typed error that it really is. */

export interface JudgedAnswer {
  readonly primary: ChatChoice;
  readonly choices: readonly ChatChoice[];
  /** null when the provider reported none, or an answer of 0 tokens that isn't empty. */
  readonly usage: Usage | null;
}

/** Where an answer stood when it failed. */
export interface FailureInput {
  /** What had arrived of it. */
  readonly assembler: Pick<ChatAssembler, "deltas" | "hasChoices" | "partial">;
  readonly sourceName: string;
  /** Stands before the label of an error, where one source serves several kinds of call (spec 02, OCR). */
  readonly operation?: string | undefined;
  readonly statusCode: number;
  readonly redact: (text: string) => string;
}

export interface JudgeInput extends FailureInput {
  readonly assembler: ChatAssembler;
}

const VISIBLE = /\S/;

function isEmpty(choice: ChatChoice): boolean {
  return choice.toolCalls.length === 0 && !VISIBLE.test(choice.content);
}

/** Usage of 0 completion tokens beside a text is no measurement. */
function trustedUsage(usage: Usage | null, choices: readonly ChatChoice[]): Usage | null {
  if (usage === null || usage.completionTokens > 0) return usage;
  return choices.every((choice) => isEmpty(choice) && choice.thinking === "") ? usage : null;
}

function options(input: FailureInput, code: ErrorCode) {
  const partial = input.assembler.partial();
  return {
    code,
    sourceName: input.sourceName,
    statusCode: input.statusCode,
    ...(partial === undefined ? {} : { partial }),
  };
}

/** How an error calls the source. */
export function shownName({ sourceName, operation }: Pick<FailureInput, "sourceName" | "operation">): string {
  return operation === undefined ? sourceName : `${sourceName} ${operation}`;
}

export function transientEnd(input: FailureInput, code: ErrorCode, what: string): TransientError {
  return new TransientError(composeMessage(shownName(input), "transient failure", what), options(input, code));
}

function truncated(input: JudgeInput, what: string): ResultInvalidError {
  return new ResultInvalidError(`${shownName(input)} unusable result: ${what}; raise maxTokens`, {
    ...options(input, "truncated"),
    rawText: input.redact(input.assembler.rawText),
  });
}

function judgeEmpty(input: JudgeInput, primary: ChatChoice): PolyGatewayError {
  if (primary.finishReason === "length") {
    return truncated(input, "the output limit was reached before any visible answer");
  }
  if (primary.finishReason === "content_filter") {
    return new RequestRejectedError(
      `${shownName(input)} request rejected: the provider's content filter withheld the answer`,
      options(input, "content_filtered"),
    );
  }
  const what = primary.thinking === "" ? "nothing" : "only reasoning and no answer";
  const end = input.redact(String(primary.rawFinishReason)).slice(0, 100);
  return transientEnd(input, "empty", `the answer ended with ${what} (finish_reason ${end})`);
}

/** A whole answer, or the error to throw. Call it when the provider has ended the answer properly. */
export function judge(input: JudgeInput): JudgedAnswer | PolyGatewayError {
  const { assembler } = input;
  const choices = assembler.choices();
  const primary = choices[0];
  if (primary === undefined) return transientEnd(input, "empty", "the answer holds no choice");
  for (const choice of choices) {
    const failure = finishFailure(choice.rawFinishReason);
    if (failure === undefined) continue;
    return transientEnd(input, failure, `the provider ended the answer with "${choice.rawFinishReason}"`);
  }
  if (choices.every(isEmpty) && assembler.refusal === "") return judgeEmpty(input, primary);
  if (assembler.hasCutCall && choices.some((choice) => choice.finishReason === "length")) {
    return truncated(input, "the output limit cut the arguments of a tool call");
  }
  if (assembler.hasCutCall && choices.some((choice) => choice.finishReason === null)) {
    return transientEnd(input, "truncated", "the stream ended inside the arguments of a tool call");
  }
  return { primary, choices, usage: trustedUsage(assembler.usage, choices) };
}
