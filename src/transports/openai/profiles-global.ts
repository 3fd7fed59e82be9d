import { COMMON_DIALECT, EFFORT_RULE, efforts, type ProviderProfile } from "../../domain/profile.js";

/** Vendors of models outside of China (reference-providers §2). */

const azure: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "azure",
  aliases: ["azure-openai"],
  address: "https://my-resource.openai.azure.com/openai/v1",
  hosts: ["*.openai.azure.com", "*.services.ai.azure.com"],
  auth: { header: "api-key", scheme: "" },
  query: { "api-version": "v1" },
  thinking: [EFFORT_RULE],
  parameters: [{ most: { stop: 4 } }],
  errorCodes: { deploymentnotfound: "model_not_found", content_filter: "content_filtered" },
  embeddingBase64: true,
  embeddingBatchMax: 2_048,
  notes: [
    "The model is the name of your deployment, so rules by model name don't apply: correct `thinking` where it matters.",
    'Addresses of one deployment (`…/openai/deployments/NAME`) need their own version: `{"query":{"api-version":"2024-10-21"}}`.',
    'For a token of Microsoft Entra: `{"auth":{"header":"authorization","scheme":"Bearer"}}`.',
  ],
  unconfirmed: ["thinking", "parameters", "embeddingBatchMax"],
};

const anthropic: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "anthropic",
  aliases: ["claude"],
  address: "https://api.anthropic.com/v1",
  hosts: ["api.anthropic.com"],
  thinking: [
    { models: "^claude-(3-[05]|2|instant)|^claude-3-(opus|sonnet|haiku)", off: {} },
    {
      models: "^claude-[a-z]+-(4-[6-9]|[5-9])",
      off: { thinking: { type: "disabled" } },
      on: { thinking: { type: "adaptive" } },
    },
    {
      off: { thinking: { type: "disabled" } },
      budget: {
        min: 1_024,
        belowMaxTokens: true,
        usual: 4_096,
        fields: { thinking: { type: "enabled", budget_tokens: "$budget" } },
      },
    },
  ],
  parameters: [
    { most: { n: 1 } },
    { models: "^claude-[a-z]+-(4-[7-9]|[5-9])", only: { temperature: 1, topP: 1 }, refused: ["topK"] },
  ],
  usage: { reasoning: "inside", cache: "beside", fields: {} },
  structuredOutput: [],
  notes: [
    "The OpenAI-compatible address. It ignores response formats, `seed`, penalties and log probabilities without a word, and doesn't return the reasoning.",
    "`thinking: true` on models that need a number thinks with 4096 tokens.",
  ],
  unconfirmed: ["parameters", "usage"],
};

const gemini: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "gemini",
  aliases: ["google"],
  address: "https://generativelanguage.googleapis.com/v1beta/openai",
  hosts: ["generativelanguage.googleapis.com"],
  thinking: [
    { models: "gemini-(1|2\\.0)", off: {} },
    {
      models: "gemini-(2\\.5-pro|3)",
      on: { reasoning_effort: "high" },
      levels: efforts("minimal", "low", "medium", "high"),
      budget: { min: 128, max: 32_768, fields: thinkingConfig() },
    },
    {
      off: { reasoning_effort: "none" },
      on: { reasoning_effort: "medium" },
      levels: efforts("minimal", "low", "medium", "high"),
      budget: { min: 1, max: 24_576, fields: thinkingConfig() },
    },
  ],
  usage: { reasoning: "only_in_total", cache: "inside", fields: {} },
  errorCodes: { failed_precondition: "auth", permission_denied: "auth" },
  errorRules: [
    { statuses: [429], words: "per ?day|daily", becomes: "quota" },
    { statuses: [429], becomes: "rate_limit" },
    { codes: ["invalid_argument"], words: "api key (not valid|expired|not found)", becomes: "auth" },
  ],
  embeddingBase64: false,
  notes: ["Reasoning is counted only in the total number of tokens; completion tokens are corrected by it."],
  unconfirmed: ["thinking", "usage", "errorRules"],
};

function thinkingConfig() {
  return { extra_body: { google: { thinking_config: { thinking_budget: "$budget", include_thoughts: true } } } };
}

const mistral: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "mistral",
  address: "https://api.mistral.ai/v1",
  hosts: ["api.mistral.ai"],
  thinking: [
    { models: "^magistral", on: { prompt_mode: "reasoning" } },
    {
      off: { reasoning_effort: "none" },
      on: { reasoning_effort: "high" },
      levels: efforts("minimal", "low", "medium", "high", "xhigh"),
    },
  ],
  parameterNames: { seed: "random_seed" },
  parameters: [{ refused: ["topK"] }],
  streamOptions: false,
  errorCodes: { service_tier_capacity_exceeded: "overloaded" },
  notes: ["Usage always comes with the last chunk.", "Reasoning comes as parts of the content."],
  unconfirmed: ["thinking", "errorCodes"],
};

const xai: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "xai",
  aliases: ["grok", "x.ai"],
  address: "https://api.x.ai/v1",
  hosts: ["api.x.ai"],
  thinking: [
    { models: "non-reasoning", off: {} },
    { off: { reasoning_effort: "none" }, on: { reasoning_effort: "medium" }, levels: efforts("low", "medium", "high") },
  ],
  parameterNames: { maxTokens: "max_completion_tokens" },
  parameters: [
    {
      models: "^grok-(3-mini|4|5)(?!.*non-reasoning)|(?<!non-)reasoning",
      refused: ["presencePenalty", "frequencyPenalty", "stop"],
    },
    { refused: ["topK"] },
  ],
  usage: { reasoning: "beside", cache: "inside", fields: {} },
  errorRules: [{ words: "service is currently unavailable", becomes: "overloaded" }],
  notes: [
    "Reasoning tokens are counted beside the completion and are added to it.",
    "Long waits are normal: allow 900 to 1800 s.",
  ],
  unconfirmed: ["parameters"],
};

export const GLOBAL_PROFILES = { azure, anthropic, gemini, mistral, xai };
