import { COMMON_DIALECT, efforts, type ProviderProfile, type WireFields } from "../../domain/profile.js";

/** Providers in China and their international addresses (reference-providers §2). */

function thinking(type: string, more: WireFields = {}): WireFields {
  return { thinking: { type }, ...more };
}

const deepseek: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "deepseek",
  address: "https://api.deepseek.com",
  hosts: ["api.deepseek.com"],
  thinking: [
    { models: "reasoner|-r1", on: {} },
    {
      off: thinking("disabled"),
      on: thinking("enabled"),
      levels: {
        minimal: thinking("enabled", { reasoning_effort: "low" }),
        low: thinking("enabled", { reasoning_effort: "low" }),
        medium: thinking("enabled", { reasoning_effort: "high" }),
        high: thinking("enabled", { reasoning_effort: "high" }),
        xhigh: thinking("enabled", { reasoning_effort: "high" }),
        max: thinking("enabled", { reasoning_effort: "max" }),
      },
    },
  ],
  parameters: [{ most: { stop: 16 } }],
  modalities: [],
  limitCodes: { "429": "concurrency" },
  structuredOutput: ["json_object"],
  notes: [
    "Thinks unless it is switched off. It knows three levels; the others count as the one it documents: minimal as low, medium and xhigh as high.",
    "While it thinks, temperature, topP and penalties are ignored without a word.",
    "`reasoning_content` must be sent back in the message that follows tool calls.",
  ],
  unconfirmed: [],
};

const qwen: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "qwen",
  aliases: ["dashscope", "bailian", "alibaba"],
  address: "https://dashscope.aliyuncs.com/compatible-mode/v1",
  hosts: ["dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com"],
  thinking: [
    { models: "^(qwq|qvq|deepseek-r1)|^qwen3.*-thinking", on: {}, streams: "unless_off" },
    { models: "^qwen(1|2)|^qwen3.*-instruct|^qwen3-coder", off: {} },
    {
      models: "^qwen3(\\.\\d+)?-\\d+(\\.\\d+)?b",
      off: { enable_thinking: false },
      on: { enable_thinking: true },
      budget: { min: 1, fields: { enable_thinking: true, thinking_budget: "$budget" } },
      streams: "unless_off",
    },
    {
      off: { enable_thinking: false },
      on: { enable_thinking: true },
      budget: { min: 1, fields: { enable_thinking: true, thinking_budget: "$budget" } },
      streams: "when_on",
    },
  ],
  errorCodes: {
    arrearage: "quota",
    insufficient_quota: "rate_limit",
    "throttling.allocationquota": "rate_limit",
    "throttling.ratequota": "rate_limit",
    "throttling.burstrate": "rate_limit",
    limit_requests: "rate_limit",
    "allocationquota.freetieronly": "quota",
    data_inspection_failed: "content_filtered",
    datainspectionfailed: "content_filtered",
    invalid_api_key: "auth",
    access_denied: "model_not_found",
    "model.accessdenied": "model_not_found",
    model_not_found: "model_not_found",
    requesttimeout: "upstream_error",
  },
  limitCodes: { insufficient_quota: "tokens" },
  errorRules: [{ words: "free allocated quota exceeded|free ?tier ?only", becomes: "quota" }],
  structuredOutput: ["json_object"],
  embeddingBatchMax: 10,
  notes: [
    'Models that think are streamed even where streaming is off: the provider answers 400 "enable_thinking must be set to false for non-streaming calls" otherwise. The reply is the same.',
    "A JSON format needs the word json in the prompt. A limit called AllocationQuota or insufficient_quota is one of tokens per minute.",
    "v1 and v2 of the embedding models take 25 texts at once.",
  ],
  unconfirmed: ["errorCodes"],
};

const glm: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "glm",
  aliases: ["zhipu", "zai", "bigmodel"],
  address: "https://open.bigmodel.cn/api/paas/v4",
  hosts: ["open.bigmodel.cn", "api.z.ai"],
  thinking: [
    { models: "^glm-5\\.3", on: thinking("enabled"), levels: levelsWith("low", "medium", "high") },
    {
      models: "^glm-5\\.2",
      off: thinking("disabled"),
      on: thinking("enabled"),
      levels: levelsWith("low", "medium", "high"),
    },
    { off: thinking("disabled"), on: thinking("enabled") },
  ],
  parameters: [{ most: { temperature: 1 } }],
  errorCodes: {
    ...codes("auth", 1000, 1001, 1002, 1003, 1004, 1005, 1110, 1111, 1112, 1120, 1121),
    ...codes("quota", 1113, 1304, 1308, 1309, 1310, 1311),
    ...codes("upstream_error", 1200, 1230, 1234),
    ...codes("bad_request", 1210, 1212, 1213, 1214, 1215),
    ...codes("model_not_found", 1211, 1220, 1222),
    ...codes("context_length", 1261),
    ...codes("content_filtered", 1301),
    ...codes("rate_limit", 1302, 1303, 1313),
    ...codes("overloaded", 1305, 1312),
  },
  limitCodes: { "1302": "concurrency", "1303": "requests" },
  resetClock: "+08:00",
  structuredOutput: ["json_object"],
  embeddingBatchMax: 64,
  notes: [
    "4.7 and 5.x think unless they are switched off; 5.3 can't be switched off.",
    "The code in the body counts, not the status: an account without money answers 429 with code 1113.",
    "Used-up daily and window allowances (1304, 1308, 1310) rest until the moment in their text.",
  ],
  unconfirmed: ["address", "thinking", "embeddingBatchMax"],
};

function levelsWith(...levels: readonly string[]): Readonly<Record<string, WireFields>> {
  return Object.fromEntries(levels.map((level) => [level, thinking("enabled", { reasoning_effort: level })]));
}

function codes<Code extends string>(code: Code, ...numbers: readonly number[]): Record<string, Code> {
  return Object.fromEntries(numbers.map((number) => [String(number), code]));
}

const kimi: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "kimi",
  aliases: ["moonshot"],
  address: "https://api.moonshot.cn/v1",
  hosts: ["api.moonshot.cn", "api.moonshot.ai"],
  thinking: [
    { models: "^kimi-k3", on: {}, levels: efforts("low", "high", "max") },
    { models: "thinking", on: {} },
    { models: "^moonshot-v1|^kimi-k2-\\d{4}|^kimi-k2-(turbo-)?preview", off: {} },
    { off: thinking("disabled"), on: thinking("enabled") },
  ],
  parameters: [{ models: "^kimi-k3|^kimi-k2.*thinking", only: { temperature: 1 } }],
  usage: { reasoning: "inside", cache: "inside", fields: { cached: ["cached_tokens"] } },
  errorCodes: {
    invalid_authentication_error: "auth",
    incorrect_api_key_error: "auth",
    permission_denied_error: "model_not_found",
    resource_not_found_error: "model_not_found",
    engine_overloaded_error: "overloaded",
    rate_limit_reached_error: "rate_limit",
    exceeded_current_quota_error: "quota",
    content_filter: "content_filtered",
  },
  errorRules: [
    { codes: ["rate_limit_reached_error"], words: "\\btpd\\b|tokens per day|per day", becomes: "quota" },
    { statuses: [400], words: "only [\\d.]+ is allowed for this model", becomes: "unsupported_param" },
    { statuses: [402, 403], words: "membership", becomes: "quota" },
  ],
  notes: [
    "K3 always thinks; unset means its highest level. Thinking models take no temperature but 1.",
    '`toolChoice: "required"` is refused by the provider.',
  ],
  unconfirmed: ["structuredOutput", "errorCodes"],
};

const minimax: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "minimax",
  address: "https://api.minimaxi.com/v1",
  hosts: ["api.minimaxi.com", "api.minimax.io", "api.minimax.chat"],
  thinking: [
    { models: "^minimax-m[12]", on: {} },
    { off: thinking("disabled"), on: thinking("adaptive") },
  ],
  parameterNames: { maxTokens: "max_completion_tokens" },
  parameters: [],
  errorCodes: {
    ...codes("upstream_error", 1000, 1001, 1024, 1033),
    ...codes("rate_limit", 1002, 1039),
    ...codes("auth", 1004, 2049),
    ...codes("quota", 1008, 2056),
    ...codes("content_filtered", 1026, 1027),
    ...codes("bad_request", 1042, 2013),
  },
  limitCodes: { "1039": "tokens" },
  resetClock: "+08:00",
  structuredOutput: [],
  notes: ["Errors come with status 200 and a `base_resp`.", "M2 always thinks, between tags in the content."],
  unconfirmed: ["errorCodes"],
};

const ark: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "ark",
  aliases: ["volcengine", "doubao"],
  address: "https://ark.cn-beijing.volces.com/api/v3",
  hosts: ["*.volces.com"],
  thinking: [
    {
      off: thinking("disabled"),
      on: thinking("enabled"),
      levels: levelsWith("minimal", "low", "medium", "high"),
    },
  ],
  errorCodes: {
    inputtextriskdetection: "content_filtered",
    outputtextriskdetection: "content_filtered",
    authenticationerror: "auth",
    accountoverdueerror: "quota",
    accessdenied: "auth",
    "invalidendpointormodel.notfound": "model_not_found",
    modelnotopen: "model_not_found",
    "invalidendpoint.closedendpoint": "model_not_found",
    "ratelimitexceeded.endpointrpmexceeded": "rate_limit",
    "ratelimitexceeded.endpointtpmexceeded": "rate_limit",
    "ratelimitexceeded.foundationmodelrpmexceeded": "rate_limit",
    "ratelimitexceeded.foundationmodeltpmexceeded": "rate_limit",
    serveroverloaded: "overloaded",
    quotaexceeded: "quota",
    invalidparameter: "bad_request",
    missingparameter: "bad_request",
  },
  notes: ["The model is a model id or the id of an endpoint (`ep-…`)."],
  unconfirmed: ["thinking", "structuredOutput", "errorCodes"],
};

const siliconflow: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "siliconflow",
  address: "https://api.siliconflow.cn/v1",
  hosts: ["api.siliconflow.cn", "api.siliconflow.com"],
  thinking: [
    { models: "deepseek-r1|qwq|-thinking", on: {}, budget: siliconBudget() },
    {
      models: "deepseek-v4",
      off: { enable_thinking: false },
      on: { enable_thinking: true },
      levels: {
        high: { enable_thinking: true, reasoning_effort: "high" },
        max: { enable_thinking: true, reasoning_effort: "max" },
      },
      budget: siliconBudget(),
    },
    { off: { enable_thinking: false }, on: { enable_thinking: true }, budget: siliconBudget() },
  ],
  parameters: [{ most: { stop: 4 } }],
  errorCodes: { "20012": "model_not_found", "30001": "quota", "50505": "overloaded" },
  structuredOutput: ["json_object"],
  embeddingBatchMax: 32,
  notes: ["`maxTokens` doesn't count thinking."],
  unconfirmed: ["errorCodes", "embeddingBatchMax"],
};

function siliconBudget() {
  return { min: 128, max: 32_768, fields: { enable_thinking: true, thinking_budget: "$budget" } };
}

export const CHINA_PROFILES = { deepseek, qwen, glm, kimi, minimax, ark, siliconflow };
