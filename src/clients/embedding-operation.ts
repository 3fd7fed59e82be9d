import { hash } from "node:crypto";
import { countOf } from "../domain/count-of.js";
import { type EmbeddingCompletion, textName } from "../domain/embedding.js";
import { estimateTextTokens } from "../domain/estimate.js";
import type { OperationKind } from "../domain/record.js";
import type { SourceConfig } from "../domain/source.js";
import type { Usage } from "../domain/usage.js";
import { type PartialReply, ResultInvalidError } from "../errors.js";
import type { Operation, PartialFacts, ReplyFacts } from "../governance/operation.js";
import type { AttemptContext, EmbeddingTransport } from "../ports/transport.js";
import { type Row, type RowForm, rowOf } from "./embedding-rows.js";

/** What all batches of one call of `embed()` have in common. */
export interface EmbedRun {
  readonly sources: readonly SourceConfig[];
  readonly candidates: readonly string[];
  /** Some token gate is on, so that an estimate is needed at admission. */
  readonly countsTokens: boolean;
  /** Somebody reads the telemetry rows. */
  readonly describes: boolean;
  readonly transport: EmbeddingTransport;
  readonly dimensions: number | undefined;
  readonly form: RowForm;
  /** Width that every vector must have: configured, asked for, or that of the batch that was done first. */
  dim: number | undefined;
}

/** A batch as the caller gets it. */
export interface EmbeddedTexts extends Omit<EmbeddingCompletion, "vectors"> {
  readonly rows: readonly Row[];
}

/** States what one batch of texts is to the loop: estimate, attempt, telemetry description. */
export class EmbeddingOperation implements Operation<null, EmbeddedTexts> {
  readonly kind: OperationKind = "embedding";
  readonly #run: EmbedRun;
  readonly #texts: readonly string[];
  readonly #firstIndex: number;
  #inputJson: string | null = null;
  #promptTokens = -1;
  #messages: string | null = null;

  constructor(run: EmbedRun, texts: readonly string[], firstIndex: number) {
    this.#run = run;
    this.#texts = texts;
    this.#firstIndex = firstIndex;
  }

  get sources(): readonly SourceConfig[] {
    return this.#run.sources;
  }

  get candidates(): readonly string[] {
    return this.#run.candidates;
  }

  get promptTokens(): number {
    if (this.#promptTokens < 0) {
      this.#promptTokens = 0;
      for (const text of this.#texts) this.#promptTokens += estimateTextTokens(text);
    }
    return this.#promptTokens;
  }

  get estTokens(): number {
    return this.#run.countsTokens ? this.promptTokens : 0;
  }

  async attempt(source: SourceConfig, context: AttemptContext): Promise<EmbeddedTexts> {
    this.#inputJson ??= JSON.stringify(this.#texts);
    const { transport, dimensions } = this.#run;
    const count = this.#texts.length;
    const firstIndex = this.#firstIndex;
    const inputJson = this.#inputJson;
    const completion = await transport.embed({ source, inputJson, count, firstIndex, dimensions, context });
    return this.#shaped(source, completion);
  }

  describeRequest(): { messages: string | null; sampling: null } {
    if (this.#run.describes) this.#messages ??= JSON.stringify(this.#texts.map(digestOf));
    return { messages: this.#messages, sampling: null };
  }

  describeReply({ rows, dim, usage, modelReported, statusCode, latencyMs, limits }: EmbeddedTexts): ReplyFacts {
    return {
      usage: usage ?? this.#estimatedUsage(),
      response: `<vectors n=${rows.length} dim=${dim}>`,
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
    return {
      usage: (usage as Usage | null | undefined) ?? this.#estimatedUsage(),
      response: null,
      thinking: null,
    };
  }

  /** Judged before the attempt counts as a success, so that its row says what became of it. */
  #shaped(source: SourceConfig, completion: EmbeddingCompletion): EmbeddedTexts {
    const run = this.#run;
    const { dim, usage, modelReported, statusCode, latencyMs, limits } = completion;
    if (completion.vectors.length !== this.#texts.length) {
      const what = `${countOf(completion.vectors.length, "vector")} for ${countOf(this.#texts.length, "text")}`;
      throw invalid(source, completion, "count_mismatch", what, { expected: this.#texts.length });
    }
    if (run.dim !== undefined && dim !== run.dim) {
      const what = `vectors of ${dim} dimensions where ${run.dim} are expected; none was cut or filled up`;
      throw invalid(source, completion, "dimension_mismatch", what, { dim, expected: run.dim });
    }
    const rows: Row[] = [];
    for (const [at, vector] of completion.vectors.entries()) {
      const row = rowOf(vector, run.form);
      if (row === null) {
        const index = this.#firstIndex + at;
        const what = `the vector of ${textName(index)} holds a number that is too large for float32`;
        throw invalid(source, completion, "bad_vector", what, { index });
      }
      rows.push(row);
    }
    run.dim = dim;
    return { rows, dim, usage, modelReported, statusCode, latencyMs, limits };
  }

  /** The provider reported no usage: counted from the texts and marked. */
  #estimatedUsage(): Usage {
    return {
      promptTokens: this.promptTokens,
      completionTokens: 0,
      totalTokens: this.promptTokens,
      reasoningTokens: null,
      cachedPromptTokens: null,
      source: "estimated",
    };
  }
}

function invalid(
  source: SourceConfig,
  { usage, statusCode }: EmbeddingCompletion,
  code: "count_mismatch" | "dimension_mismatch" | "bad_vector",
  what: string,
  details: Record<string, unknown>,
): ResultInvalidError {
  return new ResultInvalidError(`${source.name} unusable result: ${what}`, {
    code,
    sourceName: source.name,
    statusCode,
    details,
    partial: { content: "", thinking: "", toolCalls: [], usage },
  });
}

/** Texts are never stored (spec 05, column 9); the form is that of every other digest. */
function digestOf(text: string): string {
  return `sha256:${hash("sha256", text)} text/plain ${Buffer.byteLength(text)}`;
}
