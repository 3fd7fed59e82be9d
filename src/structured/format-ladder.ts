import type { ChatMessage, ChatRequest } from "../domain/chat.js";
import type { StructuredOutputMode } from "../domain/profile.js";
import type { SourceConfig } from "../domain/source.js";
import { PolyGatewayError } from "../errors.js";
import { withInstruction } from "./prompt.js";

/**
 * How a source is asked for structured output: by the strongest means it has (spec reference-providers §4). Candidates of
 * one call differ, so the request that goes out depends on the source that was chosen.
 */

export type FormatStep = StructuredOutputMode | "prompt";

/** What a source refused although its profile says that it can; kept as long as its configuration lives. */
export type FormatMemory = WeakMap<SourceConfig, Set<FormatStep>>;

/** One way to ask. */
export interface FormatWay {
  readonly step: FormatStep;
  readonly responseFormat: unknown;
  /** Goes with the messages; "" = nothing. */
  readonly instruction: string;
  /** The gateway chose it: a source that refuses it is asked in the next way. A caller's own format is never dropped. */
  readonly isOurs: boolean;
}

export interface FormattedRequest {
  readonly request: ChatRequest;
  /** null = the request's own messages. */
  readonly messagesJson: string | null;
  /** Words by which a refusal names what the gateway added. */
  readonly ownFields: readonly string[] | undefined;
}

const NAMES: Readonly<Record<FormatStep, readonly string[] | undefined>> = {
  json_schema: ["response_format", "json_schema", "structured output"],
  json_object: ["response_format", "json_object", "json mode"],
  prompt: undefined,
};
/** The schema of this call was refused, which says nothing of the next one. */
const BAD_SCHEMA = /invalid[^.]{0,40}schema|schema[^.]{0,40}(?:invalid|too (?:large|complex|deep))/i;

/** The ways of one call, strongest first. Made once per call; remembers what its own sources refused. */
export class FormatLadder {
  readonly #ways: readonly FormatWay[];
  readonly #memory: FormatMemory;
  readonly #here: Map<SourceConfig, Set<FormatStep>>;
  readonly #built = new Map<FormatWay, FormattedRequest>();
  readonly #sent = new Map<SourceConfig, FormatWay>();

  constructor(
    ways: readonly FormatWay[],
    memory: FormatMemory,
    refusedHere: Map<SourceConfig, Set<FormatStep>> = new Map(),
  ) {
    this.#ways = ways;
    this.#memory = memory;
    this.#here = refusedHere;
  }

  /** For the same schema with other messages. */
  again(): FormatLadder {
    return new FormatLadder(this.#ways, this.#memory, this.#here);
  }

  /** The longest instruction, for estimates. */
  get instruction(): string {
    return this.#ways.reduce(
      (longest, way) => (way.instruction.length > longest.length ? way.instruction : longest),
      "",
    );
  }

  formatted(source: SourceConfig, request: ChatRequest): FormattedRequest {
    const way = this.#wayFor(source);
    this.#sent.set(source, way);
    let built = this.#built.get(way);
    if (built === undefined) {
      built = build(way, request);
      this.#built.set(way, built);
    }
    return built;
  }

  /** A failed attempt: steps down when the source refused what the gateway had added. */
  failed(source: SourceConfig, error: unknown): void {
    const way = this.#sent.get(source);
    if (way === undefined || !way.isOurs || way.step === "prompt" || !PolyGatewayError.isInstance(error)) return;
    const { code, details } = error;
    const named = String(details?.param ?? "");
    if (code !== "unsupported_param" || details?.droppedByUs !== true || !NAMES[way.step]?.includes(named)) return;
    const isOfSchema = BAD_SCHEMA.test(error.upstreamMessage ?? "");
    const places = isOfSchema ? this.#here : this.#memory;
    const refused = places.get(source) ?? new Set();
    places.set(source, refused.add(way.step));
  }

  #wayFor(source: SourceConfig): FormatWay {
    const { structuredOutput } = source.profile;
    const usable = ({ step, isOurs }: FormatWay): boolean => {
      if (step === "prompt") return true;
      if (!structuredOutput.includes(step)) return false;
      if (!isOurs) return true;
      return this.#memory.get(source)?.has(step) !== true && this.#here.get(source)?.has(step) !== true;
    };
    return this.#ways.find(usable) ?? this.#ways.at(-1)!;
  }
}

function build({ step, responseFormat, instruction, isOurs }: FormatWay, request: ChatRequest): FormattedRequest {
  const messages: readonly ChatMessage[] =
    instruction === "" ? request.messages : withInstruction(request.messages, instruction);
  return {
    request: { ...request, messages, responseFormat } as ChatRequest,
    messagesJson: instruction === "" ? null : JSON.stringify(messages),
    ownFields: isOurs ? NAMES[step] : undefined,
  };
}
