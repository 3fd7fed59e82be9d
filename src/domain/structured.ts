import type { ChatRequest, ChatResponse } from "./chat.js";
import type { JsonSchema, StandardSchema } from "./standard-schema.js";
import type { Usage } from "./usage.js";

/** Wishes for one `structured()` call (spec 04). */
export interface StructuredOptions {
  /**
   * `auto` (default): each source is asked by the strongest means it has. `native`: only sources that enforce a JSON
   * Schema; RequestRejectedError when there is none. `prompt`: the schema stands in the prompt alone.
   */
  readonly strategy?: "auto" | "native" | "prompt";
  /** How often an unusable answer is asked for again, each time as a governed call of its own. 0 to 100, default 2. */
  readonly maxReasks?: number;
  /**
   * Takes `"12.5"` for a number, `"true"` for a boolean and 12 for a text, where the schema wants that and nothing is
   * lost. Default false: such an answer doesn't fit.
   */
  readonly coerce?: boolean;
  /** Name of the schema on the wire: letters, digits, `_` and `-`, at most 64. Default `answer`. */
  readonly name?: string;
  /** What providers are told; needed where the schema can't be written as JSON Schema (valibot, transforms). */
  readonly jsonSchema?: JsonSchema;
}

export interface StructuredReply<Value> {
  /** What the schema made of the answer. */
  readonly value: Value;
  /** The call that answered; `reply.parsed` is `value`. */
  readonly reply: ChatResponse;
  /** Governed calls this took, the one that answered included. */
  readonly asks: number;
  /** Sum over all attempts of all asks, failed ones included, as their rows say it; an answer from the cache used none. */
  readonly usage: Usage;
  /** Sum over the same, exact to the nano-unit, in the price table's currency; null = unknown for one of them. */
  readonly cost: number | null;
}

export interface StructuredCall {
  <Output>(
    request: ChatRequest,
    schema: StandardSchema<unknown, Output>,
    options?: StructuredOptions,
  ): Promise<StructuredReply<Output>>;
  <Value = unknown>(
    request: ChatRequest,
    schema: JsonSchema,
    options?: StructuredOptions,
  ): Promise<StructuredReply<Value>>;
}
