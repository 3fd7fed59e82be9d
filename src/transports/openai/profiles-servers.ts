import { COMMON_DIALECT, efforts, type ProviderProfile, type ThinkingRule } from "../../domain/profile.js";

/** Servers that people run themselves (reference-providers §2). Their hosts are yours, so PROFILE names them. */

const TEMPLATE_SWITCH: ThinkingRule = {
  off: { chat_template_kwargs: { enable_thinking: false } },
  on: { chat_template_kwargs: { enable_thinking: true } },
};

const GPT_OSS: ThinkingRule = { models: "gpt-oss", on: {}, levels: efforts("low", "medium", "high") };

const TEMPLATE_RULES: readonly ThinkingRule[] = [
  GPT_OSS,
  { models: "deepseek-r1|qwq|-thinking", on: {} },
  {
    models: "deepseek-v3\\.[1-9]|granite",
    off: { chat_template_kwargs: { thinking: false } },
    on: { chat_template_kwargs: { thinking: true } },
  },
  TEMPLATE_SWITCH,
];

const TEMPLATE_NOTE =
  "The switch goes to the chat template, which ignores what it doesn't know: try it with your model and correct `thinking`.";

const vllm: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "vllm",
  address: "http://127.0.0.1:8000/v1",
  thinking: TEMPLATE_RULES,
  embeddingBase64: true,
  notes: [
    TEMPLATE_NOTE,
    "Without a reasoning parser of the server, reasoning comes between tags in the content, which is read too.",
  ],
  unconfirmed: ["thinking"],
};

const sglang: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "sglang",
  address: "http://127.0.0.1:30000/v1",
  thinking: TEMPLATE_RULES,
  usage: { reasoning: "inside", cache: "inside", fields: { reasoning: ["reasoning_tokens"] } },
  notes: [TEMPLATE_NOTE],
  unconfirmed: ["thinking"],
};

const ollama: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "ollama",
  address: "http://127.0.0.1:11434/v1",
  thinking: [
    { models: "gpt-oss", on: {}, levels: efforts("low", "medium", "high") },
    {
      off: { reasoning_effort: "none" },
      on: { reasoning_effort: "medium" },
      levels: efforts("low", "medium", "high", "max"),
    },
  ],
  parameters: [{ refused: ["logitBias"], most: { n: 1 } }],
  notes: [
    "The context length is a setting of the server: longer prompts are cut there without a word.",
    "Images must be base64; `toolChoice` has no effect.",
  ],
  unconfirmed: ["thinking"],
};

const lmstudio: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "lmstudio",
  aliases: ["lm-studio"],
  address: "http://127.0.0.1:1234/v1",
  thinking: [GPT_OSS],
  errorRules: [{ words: "no models? loaded|model unloaded", becomes: "overloaded" }],
  structuredOutput: ["json_schema"],
  notes: ["No switch for thinking is known but for gpt-oss."],
  unconfirmed: ["thinking", "errorRules"],
};

const llamacpp: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "llamacpp",
  aliases: ["llama.cpp", "llama-cpp"],
  address: "http://127.0.0.1:8080/v1",
  thinking: [GPT_OSS, TEMPLATE_SWITCH],
  errorCodes: { unavailable_error: "overloaded", exceed_context_size_error: "context_length" },
  notes: [TEMPLATE_NOTE],
  unconfirmed: ["thinking", "errorCodes"],
};

export const SERVER_PROFILES = { vllm, sglang, ollama, lmstudio, llamacpp };
