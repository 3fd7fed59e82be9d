import type { ErrorCode } from "../errors.js";
import type { Sampling } from "./chat.js";
import type { RateLimitDimension } from "./upstream-limits.js";

/** What a provider enforces by itself: an answer of a given schema, or any JSON object. */
export type StructuredOutputMode = "json_schema" | "json_object";

/** What a message part may hold besides text. */
export type Modality = "image" | "audio" | "file";

/** Fields of a wire body, as they are sent. */
export type WireFields = Readonly<Record<string, unknown>>;

/**
 * How thinking is asked for. What is absent can't be asked for: without `off` a model can't be kept from thinking. An
 * empty `on` or `off` says that it is so without any field.
 */
export interface ThinkingRule {
  /** Models this is true of: the source of a RegExp, case ignored. Absent = all models. */
  readonly models?: string;
  /** Sent for `thinking: false`; absent = these models can't be kept from thinking; `{}` = it is so without any field. */
  readonly off?: WireFields;
  /** Sent for `thinking: true`; `{}` = it is so without any field. */
  readonly on?: WireFields;
  /** Level → fields. The levels of all providers: minimal, low, medium, high, xhigh, max. */
  readonly levels?: Readonly<Record<string, WireFields>>;
  /** For `thinking: { budgetTokens }`; absent = a number of tokens can't be asked for. */
  readonly budget?: ThinkingBudget;
  /** Thinking is refused without streaming: while it is asked for, or for as long as it isn't switched off. */
  readonly streams?: "when_on" | "unless_off";
}

export interface ThinkingBudget {
  /** Smallest number of tokens. */
  readonly min: number;
  /** Largest number of tokens; absent = any. */
  readonly max?: number;
  /** The number must stay below the call's `maxTokens`. */
  readonly belowMaxTokens?: boolean;
  /** Sent for `thinking: true` where a rule has no `on`. */
  readonly usual?: number;
  /** Sent for a budget; `"$budget"` stands for the number. */
  readonly fields: WireFields;
}

/** What a provider does with parameters of the call. All rules whose model fits hold together. */
export interface ParameterRule {
  /** Models this is true of, as in a thinking rule. Absent = all models. */
  readonly models?: string;
  /** Only for calls that ask for thinking. */
  readonly when?: "thinking";
  /** Wire names of parameters, which win over `parameterNames`. */
  readonly names?: ParameterNames;
  /** Parameters refused with any value. */
  readonly refused?: readonly (keyof Sampling)[];
  /** The one value of a parameter that is accepted. */
  readonly only?: Readonly<Partial<Record<keyof Sampling, number>>>;
  /** The largest value of a parameter; of `stop`, the largest number of texts. */
  readonly most?: Readonly<Partial<Record<keyof Sampling, number>>>;
}

export type ParameterNames = Readonly<Partial<Record<keyof Sampling, string>>>;

/** A refusal that means something else here; every condition that is given must hold. The first that fits wins. */
export interface ErrorRule {
  /** HTTP statuses; one of them is enough. */
  readonly statuses?: readonly number[];
  /** Codes in lower case; one of them is enough. */
  readonly codes?: readonly string[];
  /** Source of a RegExp on the body, case ignored. */
  readonly words?: string;
  /** Only with a `Retry-After` header. */
  readonly retryAfter?: boolean;
  /** What it means. */
  readonly becomes: ErrorCode;
}

export interface AuthDialect {
  /** Name of the header that holds the credential. */
  readonly header: string;
  /** Word before the key; an empty one sends the bare key. */
  readonly scheme: string;
}

export interface UsageDialect {
  /** Where reasoning tokens are counted: in the completion, beside it, or only in the total. */
  readonly reasoning: "inside" | "beside" | "only_in_total";
  /** Where `cache_read_input_tokens` and `cache_creation_input_tokens` are counted: in the prompt or beside it. */
  readonly cache: "inside" | "beside";
  /** Further places of a number as dotted paths below `usage`, looked at before the usual ones. */
  readonly fields: Readonly<Partial<Record<"prompt" | "completion" | "reasoning" | "cached", readonly string[]>>>;
}

/**
 * One provider's dialect of the OpenAI wire, as data (spec 03 "Profile"): plain JSON values only, so that a file or the
 * environment can say the same as code.
 */
export interface ProviderProfile {
  /** What it is called in `PROFILE` and in texts. */
  readonly name: string;
  /** Other names that select it. */
  readonly aliases: readonly string[];
  /** An address as it is written into a configuration, for documentation. Nothing is sent there by itself. */
  readonly address: string;
  /** Hosts that select this profile by themselves: an exact host name, or `*.example.com` for all below it. */
  readonly hosts: readonly string[];
  /** How the credential is sent. */
  readonly auth: AuthDialect;
  /** What is appended to the base URL. */
  readonly chatPath: string;
  /** Added to the address of each request. */
  readonly query: Readonly<Record<string, string>>;
  /** The first rule whose model fits holds; none = no way to ask for thinking is known. */
  readonly thinking: readonly ThinkingRule[];
  /** Wire names that differ from OpenAI's snake_case, e.g. `{ maxTokens: "max_completion_tokens" }`. */
  readonly parameterNames: ParameterNames;
  /** What the models do with parameters of a call; all rules whose model fits hold together. */
  readonly parameters: readonly ParameterRule[];
  /** What messages may hold besides text; absent = not known, so anything is sent. */
  readonly modalities?: readonly Modality[];
  /** Ask for usage in streams with `stream_options.include_usage`. */
  readonly streamOptions: boolean;
  /** `[DONE]` without any finish_reason proves that the answer is whole. Relays append it to cut streams. */
  readonly doneIsProof: boolean;
  /** Opening and closing tags of reasoning at the start of a message. */
  readonly reasoningTags: readonly (readonly [open: string, close: string])[];
  /** Further fields of a message or delta that hold reasoning, looked at before the usual ones. */
  readonly reasoningFields: readonly string[];
  /** How tokens are counted. */
  readonly usage: UsageDialect;
  /** Error codes of this provider (lower case) → our code; they win over the built-in table. */
  readonly errorCodes: Readonly<Record<string, ErrorCode>>;
  /** What a code alone doesn't tell; these win over `errorCodes`. */
  readonly errorRules: readonly ErrorRule[];
  /** Error code in lower case → the limit that a rate limit with it is about; an HTTP status is for what names none. */
  readonly limitCodes?: Readonly<Record<string, Exclude<RateLimitDimension, "unknown">>>;
  /** UTC offset (`+08:00`) of moments in error texts that say when a used-up allowance begins anew. */
  readonly resetClock?: string;
  /** Kinds of `response_format` the provider enforces; what is missing is asked for in the prompt. */
  readonly structuredOutput: readonly StructuredOutputMode[];
  /** Embeddings may be asked for as base64, which is a quarter of the JSON. */
  readonly embeddingBase64: boolean;
  /** Texts of one embedding request; absent = not known. */
  readonly embeddingBatchMax?: number;
  /** What a person should know, for documentation. */
  readonly notes: readonly string[];
  /** Fields above of which some part is not documented by the provider: try them, and correct them where they are wrong. */
  readonly unconfirmed: readonly string[];
}

const REASONING_TAGS = [
  ["<think>", "</think>"],
  ["<thought>", "</thought>"],
  ["<mm:think>", "</mm:think>"],
  ["◁think▷", "◁/think▷"],
] as const;

/** The codes a refusal can stand for. */
export const REFUSAL_CODES = [
  "auth",
  "quota",
  "model_not_found",
  "endpoint_not_found",
  "rate_limit",
  "overloaded",
  "upstream_error",
  "no_channel",
  "bad_request",
  "context_length",
  "request_too_large_for_tier",
  "unsupported_param",
  "unsupported_modality",
  "content_filtered",
] as const satisfies readonly ErrorCode[];

/** What every dialect has in common; each profile says where it differs. */
export const COMMON_DIALECT: Omit<ProviderProfile, "name" | "address"> = {
  aliases: [],
  hosts: [],
  auth: { header: "authorization", scheme: "Bearer" },
  chatPath: "/chat/completions",
  query: {},
  thinking: [],
  parameterNames: {},
  parameters: [],
  streamOptions: true,
  doneIsProof: true,
  reasoningTags: REASONING_TAGS,
  reasoningFields: [],
  usage: { reasoning: "inside", cache: "inside", fields: {} },
  errorCodes: {},
  errorRules: [],
  structuredOutput: ["json_schema", "json_object"],
  embeddingBase64: false,
  notes: [],
  unconfirmed: [],
};

/** Levels that stand in one field, as words. */
export function efforts(...levels: readonly string[]): Readonly<Record<string, WireFields>> {
  return Object.fromEntries(levels.map((level) => [level, { reasoning_effort: level }]));
}

/** How OpenAI's own field is used where nothing is known of the model. A model without it refuses the request. */
export const EFFORT_RULE: ThinkingRule = {
  off: { reasoning_effort: "none" },
  on: { reasoning_effort: "medium" },
  levels: efforts("minimal", "low", "medium", "high", "xhigh", "max"),
};

const NOT_WHILE_REASONING = ["presencePenalty", "frequencyPenalty", "logprobs", "topLogprobs", "logitBias"] as const;
/** o1, o3, o4 and the first GPT-5, which always reason. */
const ALWAYS_REASONS = "^(o\\d|gpt-5(?!\\.\\d))(?!.*chat)";
const REASONS = "^(o\\d|gpt-5)(?!.*chat)";

/** OpenAI's own dialect; the fallback for every host that no profile claims. */
export const OPENAI_PROFILE: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "openai",
  address: "https://api.openai.com/v1",
  hosts: ["api.openai.com"],
  thinking: [
    { models: "^o\\d", on: {}, levels: efforts("low", "medium", "high") },
    { models: "^gpt-5(?!\\.\\d)(?!.*chat)", on: {}, levels: efforts("minimal", "low", "medium", "high") },
    { models: "^(gpt-(3|4)|chatgpt-|gpt-5.*chat)", off: {} },
    EFFORT_RULE,
  ],
  parameters: [
    { models: REASONS, names: { maxTokens: "max_completion_tokens" } },
    { models: ALWAYS_REASONS, only: { temperature: 1, topP: 1 }, refused: NOT_WHILE_REASONING },
    { models: "^gpt-5\\.\\d", when: "thinking", only: { temperature: 1, topP: 1 }, refused: NOT_WHILE_REASONING },
    { models: "^(o3|o4-mini)", refused: ["stop"] },
    { models: "^(gpt-|chatgpt-|o\\d)", most: { stop: 4 } },
  ],
  embeddingBase64: true,
  embeddingBatchMax: 2_048,
  notes: [
    "Also the profile of every host that no other one claims. Model rules go by OpenAI's model names.",
    "Reasoning itself is not returned, only its number of tokens.",
  ],
  unconfirmed: ["embeddingBatchMax", "thinking"],
};
