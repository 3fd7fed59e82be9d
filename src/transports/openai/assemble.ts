import type { ChatChoice, ChatEvent, FinishReason } from "../../domain/chat.js";
import type { ProviderProfile } from "../../domain/profile.js";
import type { Usage } from "../../domain/usage.js";
import type { PartialReply } from "../../errors.js";
import { DELTA_WEIGHT, EVENT_WEIGHT } from "./answer-limits.js";
import { AnswerWeight } from "./answer-weight.js";
import { type ChoiceState, compactChoice, newChoice } from "./choice-state.js";
import { normaliseFinishReason, rawFinishReason } from "./finish-reason.js";
import { type Fields, isFields, joinLogprobs, readContent, readReasoning } from "./message-fields.js";
import { splitReasoning, TagScanner } from "./reasoning-tags.js";
import { type CallDelta, ToolCallCollector } from "./tool-calls.js";
import { normaliseUsage } from "./usage.js";

/** Puts one answer together, from stream frames or from one JSON body. Without a consumer it makes no event objects. */

export type Emit = (event: ChatEvent) => void;

/** Until the first one: an array that is made with the exchange lives through the send, and V8 then makes all of them old. */
const NO_CHOICES: ChoiceState[] = [];

/** What a frame brought: a token (content, thinking, tool), only usage or an end, or nothing. */
export type FrameYield = "token" | "progress" | "nothing";

export class ChatAssembler {
  readonly #profile: ProviderProfile;
  readonly #idPrefix: string;
  readonly #emit: Emit | undefined;
  #choices = NO_CHOICES;
  #running = 0;
  #rawUsage: unknown;
  #yielded: FrameYield = "nothing";
  readonly #weight = new AnswerWeight();
  modelReported: string | null = null;
  /** Frames that brought a token; what a timeout message counts. */
  deltas = 0;

  constructor(profile: ProviderProfile, idPrefix: string, emit?: Emit) {
    this.#profile = profile;
    this.#idPrefix = idPrefix;
    this.#emit = emit;
  }

  /** One stream frame; `data` = its text. */
  acceptFrame(frame: Fields, data: string): FrameYield {
    this.#yielded = "nothing";
    this.#readHead(frame);
    const { choices } = frame;
    if (Array.isArray(choices)) {
      for (let position = 0; position < choices.length && this.excess === undefined; position += 1)
        this.#acceptChoice(choices[position], position, data);
    }
    const yielded = this.#yielded as FrameYield;
    if (yielded === "token") this.deltas += 1;
    return yielded;
  }

  /** A whole JSON body. */
  acceptBody(body: Fields): void {
    this.#readHead(body);
    if (!Array.isArray(body.choices)) return;
    for (let position = 0; position < body.choices.length && this.excess === undefined; position += 1) {
      this.#acceptChoice(body.choices[position], position, null);
    }
  }

  /** Why nothing more of this answer is accepted; undefined while it is within its limits. */
  get excess(): string | undefined {
    return this.#weight.excess;
  }

  get hasChoices(): boolean {
    return this.#choices.length > 0;
  }

  get choiceCount(): number {
    return this.#choices.length;
  }

  /** A finish_reason for every choice seen. */
  get isFinished(): boolean {
    return this.#running === 0 && this.#choices.length > 0;
  }

  get usage(): Usage | null {
    return normaliseUsage(this.#rawUsage, this.#profile.usage);
  }

  get refusal(): string {
    return this.#primary()?.refusal ?? "";
  }

  get logprobs(): unknown {
    return this.#primary()?.logprobs;
  }

  /** Content as it came from the wire, for `rawText`. */
  get rawText(): string {
    return this.#primary()?.text ?? "";
  }

  /** Is there a tool call whose arguments stop in the middle? */
  get hasCutCall(): boolean {
    return this.#choices.some((choice) => choice.calls?.hasCut() === true);
  }

  choices(): ChatChoice[] {
    if (this.#choices.length === 1) return [this.#finished(this.#choices[0]!)];
    return [...this.#choices].sort((a, b) => a.index - b.index).map((choice) => this.#finished(choice));
  }

  /** What had arrived, for the error of a failed attempt; undefined when nothing had. */
  partial(): PartialReply | undefined {
    const choice = this.#primary();
    const { usage } = this;
    if (choice === undefined && usage === null) return undefined;
    const { thinking, content } = this.#split(choice);
    const toolCalls = choice?.calls?.calls(true) ?? [];
    if (content === "" && thinking === "" && toolCalls.length === 0 && usage === null) return undefined;
    return { content, thinking, toolCalls, usage };
  }

  /** Hands held-back text to the consumer, then the whole calls, usage and the end. */
  emitEnd(finishReason: FinishReason, rawFinish: string | null, usage: Usage | null): void {
    const emit = this.#emit;
    if (emit === undefined) return;
    const choice = this.#primary();
    choice?.scanner?.end();
    choice?.calls?.calls().forEach((call, index) => {
      emit({ type: "tool-call", index, id: call.id, name: call.name, arguments: call.arguments });
    });
    if (usage !== null) emit({ type: "usage", usage });
    emit({ type: "finish", finishReason, rawFinishReason: rawFinish });
  }

  #primary(): ChoiceState | undefined {
    const first = this.#choices[0];
    return first?.index === 0 ? first : (this.#choices.find((choice) => choice.index === 0) ?? first);
  }

  #split(choice: ChoiceState | undefined): { thinking: string; content: string } {
    if (choice === undefined) return { thinking: "", content: "" };
    const { thinking, content } = splitReasoning(choice.text, this.#profile.reasoningTags, choice.thinking === "");
    return { thinking: choice.thinking || thinking, content };
  }

  #finished(choice: ChoiceState): ChatChoice {
    const toolCalls = choice.calls?.calls() ?? [];
    const normalised = normaliseFinishReason(choice.rawFinish);
    const { thinking, content } = this.#split(choice);
    return {
      index: choice.index,
      thinking,
      content,
      toolCalls,
      finishReason: normalised === "stop" && toolCalls.length > 0 ? "tool_calls" : normalised,
      rawFinishReason: choice.rawFinish,
    };
  }

  /** Model and usage. The last usage that isn't null wins; it is never summed. */
  #readHead(frame: Fields): void {
    if (this.modelReported === null && typeof frame.model === "string" && frame.model !== "") {
      this.modelReported = frame.model;
    }
    const groq = frame.x_groq;
    this.#readUsage(frame.usage ?? (isFields(groq) ? groq.usage : undefined));
  }

  #readUsage(usage: unknown): void {
    if (!isFields(usage)) return;
    this.#rawUsage = usage;
    this.#progress();
  }

  #progress(): void {
    if (this.#yielded === "nothing") this.#yielded = "progress";
  }

  #choiceAt(index: number): ChoiceState {
    // Nearly always they come in order.
    const expected = this.#choices[index];
    if (expected?.index === index) return expected;
    for (const choice of this.#choices) if (choice.index === index) return choice;
    this.#weight.addChoice(this.#choices.length + 1);
    const choice = newChoice(index);
    if (this.#emit !== undefined && index === 0) {
      const emit = this.#emit;
      choice.scanner = new TagScanner(this.#profile.reasoningTags, (kind, text) => {
        emit({ type: kind === "text" ? "text-delta" : "thinking-delta", text });
      });
    }
    if (this.#choices === NO_CHOICES) this.#choices = [choice];
    else this.#choices.push(choice);
    this.#running += 1;
    return choice;
  }

  /** `data` = the text of the stream frame; null for a choice of a whole body. */
  #acceptChoice(raw: unknown, position: number, data: string | null): void {
    if (!isFields(raw)) return;
    const whole = data === null;
    const choice = this.#choiceAt(typeof raw.index === "number" ? raw.index : position);
    const isDelta = isFields(raw.delta);
    const message = isDelta ? raw.delta : raw.message;
    // Some servers repeat the whole message in the last frame of a stream.
    const repeats = !whole && !isDelta && (choice.text !== "" || choice.thinking !== "" || choice.calls !== undefined);
    if (isFields(message) && !repeats) this.#acceptMessage(choice, message, whole || !isDelta);
    else if (typeof raw.text === "string") this.#addText(choice, raw.text);
    if (raw.usage !== undefined) this.#readUsage(raw.usage);
    if (raw.logprobs !== undefined && raw.logprobs !== null) this.#addLogprobs(choice, raw.logprobs, data);
    const finish = rawFinishReason(raw.finish_reason);
    if (finish === null) return;
    if (choice.rawFinish === null) this.#running -= 1;
    choice.rawFinish = finish;
    this.#progress();
  }

  #acceptMessage(choice: ChoiceState, message: Fields, whole: boolean): void {
    const reasoning = readReasoning(message, this.#profile.reasoningFields);
    if (reasoning !== "") this.#addThinking(choice, reasoning);
    const { content } = message;
    if (typeof content === "string") this.#addText(choice, content);
    else if (Array.isArray(content)) {
      readContent(
        content,
        (text) => this.#addText(choice, text),
        (text) => this.#addThinking(choice, text),
      );
    }
    if (typeof message.refusal === "string" && message.refusal !== "") {
      choice.refusal += message.refusal;
      this.#yielded = "token";
      if (this.#weight.add(message.refusal, DELTA_WEIGHT)) this.#compact();
    }
    const { tool_calls: calls } = message;
    if (Array.isArray(calls)) {
      for (let at = 0; at < calls.length && this.excess === undefined; at += 1) this.#addCall(choice, calls[at], whole);
    }
    if (isFields(message.function_call)) this.#addCall(choice, { index: 0, function: message.function_call }, whole);
  }

  #compact(): void {
    for (const choice of this.#choices) compactChoice(choice);
  }

  /** Those of a whole body were counted with the body. */
  #addLogprobs(choice: ChoiceState, logprobs: unknown, data: string | null): void {
    if (data === null || this.#weight.addLogprobs(data)) choice.logprobs = joinLogprobs(choice.logprobs, logprobs);
  }

  #addText(choice: ChoiceState, text: string): void {
    if (text === "") return;
    choice.text += text;
    this.#yielded = "token";
    if (this.#weight.addText("text", text)) this.#compact();
    choice.scanner?.push(text, choice.thinking === "");
  }

  #addThinking(choice: ChoiceState, text: string): void {
    if (text === "") return;
    choice.thinking += text;
    this.#yielded = "token";
    if (this.#weight.addText("thinking", text)) this.#compact();
    if (this.#emit !== undefined && choice.index === 0) this.#emit({ type: "thinking-delta", text });
  }

  #addCall(choice: ChoiceState, raw: unknown, whole: boolean): void {
    if (!isFields(raw)) return;
    choice.calls ??= new ToolCallCollector(`${this.#idPrefix}${choice.index === 0 ? "" : `${choice.index}_`}`);
    const { size } = choice.calls;
    const delta = whole ? choice.calls.addWhole(raw) : choice.calls.addDelta(raw);
    if (choice.calls.size > size) this.#weight.addCall();
    this.#yielded = "token";
    const more = EVENT_WEIGHT + delta.call.name.length + delta.call.id.length;
    if (this.#weight.add(delta.argumentsDelta, more)) this.#compact();
    if (this.#emit !== undefined && choice.index === 0) this.#emitCall(choice.calls, delta, this.#emit);
  }

  /** A call is announced once its name is known, with the arguments gathered until then. */
  #emitCall(calls: ToolCallCollector, { call, argumentsDelta }: CallDelta, emit: Emit): void {
    if (call.name === "" || (call.announced && argumentsDelta === "")) return;
    const text = call.announced ? argumentsDelta : call.args;
    call.announced = true;
    emit({
      type: "tool-call-delta",
      index: call.position,
      id: calls.idOf(call),
      name: call.name,
      argumentsDelta: text,
    });
  }
}
