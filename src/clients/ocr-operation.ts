import { describeBytes } from "../domain/binary-digest.js";
import type { Incapability } from "../domain/capability.js";
import { countOf } from "../domain/count-of.js";
import { estimateTextTokens, TOKENS_PER_BINARY_PART } from "../domain/estimate.js";
import type { OcrAnswerFacts, OcrImage, OcrOperation as OcrKind } from "../domain/ocr.js";
import type { SourceConfig } from "../domain/source.js";
import type { BilledUsage, Usage } from "../domain/usage.js";
import type { PartialReply, RequestRejectedError } from "../errors.js";
import type { Incapable, Operation, PartialFacts, ReplyFacts } from "../governance/operation.js";
import type { AttemptContext, OcrTransport } from "../ports/transport.js";
import { incapableOf } from "./able-sources.js";
import { mostPages } from "./ocr-page-bound.js";

/** What one kind of OCR call is made of. */
export interface OcrKindOfCall<Completion extends OcrAnswerFacts> {
  readonly kind: OcrKind;
  send(transport: OcrTransport, source: SourceConfig, image: OcrImage, context: AttemptContext): Promise<Completion>;
  /** The answer as far as it is about the pages that were sent. */
  within(completion: Completion, mostPages: number): Completion;
  /** Column `response` of a row. */
  describe(completion: Completion): string;
  /** Texts of the answer, for a usage that a chat model didn't report. */
  textOf(completion: Completion): string;
}

/** The sources of one call. */
export interface OcrSources {
  readonly sources: readonly SourceConfig[];
  readonly candidates: readonly string[];
  /** Some token gate is on, so that an estimate is needed at admission. */
  readonly countsTokens: boolean;
  /** Somebody reads the telemetry rows: a digest of megabytes is not made for nobody. */
  readonly describes: boolean;
  /** Those that can't read this, and why. */
  readonly left: readonly (readonly [SourceConfig, Incapability])[];
}

/** A chat model's answer is about as long as a dense page. */
const ANSWER_TOKENS = 1_024;

/** States what one picture to be read is to the loop: estimate, attempt, telemetry description (spec 06, 05). */
export class OcrOperation<Completion extends OcrAnswerFacts> implements Operation<null, Completion> {
  readonly kind: OcrKind;
  readonly #call: OcrKindOfCall<Completion>;
  readonly #able: OcrSources;
  readonly #image: OcrImage;
  readonly #transport: OcrTransport;
  #messages: string | null = null;

  constructor(call: OcrKindOfCall<Completion>, able: OcrSources, image: OcrImage, transport: OcrTransport) {
    this.kind = call.kind;
    this.#call = call;
    this.#able = able;
    this.#image = image;
    this.#transport = transport;
  }

  get sources(): readonly SourceConfig[] {
    return this.#able.sources;
  }

  get candidates(): readonly string[] {
    return this.#able.candidates;
  }

  get incapable(): Incapable | null {
    return this.#able.left.length === 0 ? null : incapableOf(this.#able.left);
  }

  /** Of a chat model; OCR servers report no tokens, and RPM and concurrency are what governs them (spec 06). */
  get promptTokens(): number {
    return this.#able.countsTokens ? TOKENS_PER_BINARY_PART : 0;
  }

  get estTokens(): number {
    return this.#able.countsTokens ? this.promptTokens + ANSWER_TOKENS : 0;
  }

  async attempt(source: SourceConfig, context: AttemptContext): Promise<Completion> {
    const answer = await this.#call.send(this.#transport, source, this.#image, context);
    const completion = this.#call.within(answer, mostPages(this.#image));
    return completion.usage === null && source.transport === "vlm"
      ? { ...completion, usage: this.#estimated(completion) }
      : completion;
  }

  noneAble(): RequestRejectedError | undefined {
    return this.#able.left.length === 0 ? undefined : incapableOf(this.#able.left).refusal();
  }

  /** Pictures are never stored (spec 05, column 9). */
  describeRequest(): { messages: string | null; sampling: null } {
    const { bytes, mediaType } = this.#image;
    if (this.#able.describes) this.#messages ??= JSON.stringify([describeBytes(bytes, mediaType)]);
    return { messages: this.#messages, sampling: null };
  }

  describeReply(completion: Completion): ReplyFacts {
    const { usage, modelReported, statusCode, latencyMs, limits } = completion;
    return {
      usage: billedUsage(usage, completion.pageCount),
      response: this.#call.describe(completion),
      thinking: null,
      modelReported,
      statusCode,
      finishReason: null,
      latencyMs,
      ttftMs: null,
      limits,
    };
  }

  describePartial({ usage }: PartialReply): PartialFacts {
    return { usage: billedUsage((usage as Usage | null | undefined) ?? null, 0), response: null, thinking: null };
  }

  #estimated(completion: Completion): Usage {
    const promptTokens = TOKENS_PER_BINARY_PART;
    const completionTokens = estimateTextTokens(this.#call.textOf(completion));
    return {
      ...NO_TOKENS,
      promptTokens,
      completionTokens,
      totalTokens: promptTokens + completionTokens,
      source: "estimated",
    };
  }
}

export const NO_TOKENS: Usage = {
  promptTokens: 0,
  completionTokens: 0,
  totalTokens: 0,
  reasoningTokens: null,
  cachedPromptTokens: null,
  source: "measured",
};

function billedUsage(usage: Usage | null, pages: number | null): BilledUsage {
  return { ...(usage ?? NO_TOKENS), ...(pages === null ? {} : { pages }) };
}

/** What a row says of a layout: never its texts alone, which stand in its elements. */
export function layoutSummary(elements: number, pages: number, dropped: number): string {
  const left = dropped === 0 ? "" : `, ${countOf(dropped, "element")} left out`;
  return `<layout: ${countOf(elements, "element")} on ${countOf(pages, "page")}${left}>`;
}
