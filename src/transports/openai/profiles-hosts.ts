import { COMMON_DIALECT, EFFORT_RULE, efforts, type ProviderProfile } from "../../domain/profile.js";

/** Those who serve models of others: hosts, aggregators and relays (reference-providers §2). */

const groq: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "groq",
  address: "https://api.groq.com/openai/v1",
  hosts: ["api.groq.com"],
  thinking: [
    { models: "gpt-oss", on: {}, levels: efforts("low", "medium", "high") },
    { models: "qwen", off: { reasoning_effort: "none" }, on: { reasoning_effort: "default" } },
    { models: "^(meta-)?llama|gemma|kimi-k2", off: {} },
    { off: { reasoning_effort: "none" }, on: { reasoning_effort: "medium" }, levels: efforts("low", "medium", "high") },
  ],
  parameterNames: { maxTokens: "max_completion_tokens" },
  errorCodes: {
    capacity_exceeded: "overloaded",
    json_validate_failed: "upstream_error",
    tool_use_failed: "upstream_error",
  },
  errorRules: [
    { statuses: [498], becomes: "overloaded" },
    { statuses: [424], becomes: "upstream_error" },
  ],
  notes: [
    "A JSON or a tool call that the model got wrong (`json_validate_failed`, `tool_use_failed`) is tried again.",
    "Response formats can't be combined with streaming or tools for every model; `stream: false` helps.",
  ],
  unconfirmed: ["errorCodes"],
};

const openrouter: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "openrouter",
  address: "https://openrouter.ai/api/v1",
  hosts: ["openrouter.ai"],
  thinking: [
    {
      off: { reasoning: { enabled: false } },
      on: { reasoning: { enabled: true } },
      levels: Object.fromEntries(
        ["minimal", "low", "medium", "high", "xhigh"].map((effort) => [effort, { reasoning: { effort } }]),
      ),
      budget: { min: 1, belowMaxTokens: true, fields: { reasoning: { max_tokens: "$budget" } } },
    },
  ],
  streamOptions: false,
  errorRules: [
    { statuses: [402], words: "openrouter_in_flight_budget", becomes: "rate_limit" },
    { statuses: [402], retryAfter: true, becomes: "rate_limit" },
    { statuses: [403], words: 'moderation|flagged|"reasons"', becomes: "content_filtered" },
    { statuses: [404], words: "no endpoints found that can handle", becomes: "unsupported_param" },
  ],
  notes: [
    "Usage and the real cost always come with the last chunk.",
    'The routed provider may drop parameters it lacks; `EXTRA_BODY={"provider":{"require_parameters":true}}` refuses instead, for thinking too.',
  ],
  unconfirmed: ["thinking", "structuredOutput"],
};

const together: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "together",
  aliases: ["together_ai"],
  address: "https://api.together.xyz/v1",
  hosts: ["api.together.xyz", "api.together.ai"],
  thinking: [
    { models: "gpt-oss", on: {}, levels: efforts("low", "medium", "high") },
    { models: "deepseek-r1|-thinking|qwq", on: {} },
    { off: { reasoning: { enabled: false } }, on: { reasoning: { enabled: true } } },
  ],
  errorRules: [{ statuses: [403], becomes: "context_length" }],
  notes: ["A 403 says that prompt and `maxTokens` together are too long, not that the key is bad."],
  unconfirmed: [],
};

const fireworks: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "fireworks",
  aliases: ["fireworks_ai"],
  address: "https://api.fireworks.ai/inference/v1",
  hosts: ["api.fireworks.ai"],
  thinking: [
    {
      off: { reasoning_effort: "none" },
      on: { reasoning_effort: "medium" },
      levels: efforts("low", "medium", "high", "xhigh"),
      budget: { min: 1_024, fields: { thinking: { type: "enabled", budget_tokens: "$budget" } } },
    },
  ],
  errorRules: [{ statuses: [412], becomes: "quota" }],
  notes: ["Long answers must be streamed, which is the default here."],
  unconfirmed: ["errorRules"],
};

const relay: ProviderProfile = {
  ...COMMON_DIALECT,
  name: "relay",
  aliases: ["one-api", "new-api", "oneapi", "newapi"],
  address: "https://relay.example.com/v1",
  thinking: [EFFORT_RULE],
  doneIsProof: false,
  errorCodes: {
    insufficient_user_quota: "quota",
    pre_consume_token_quota_failed: "quota",
    do_request_failed: "upstream_error",
    bad_response_status_code: "upstream_error",
    sensitive_words_detected: "content_filtered",
  },
  notes: [
    "One-api, new-api and the like. `[DONE]` proves nothing here, since they append it to cut streams.",
    "A relay may drop fields it doesn't know, thinking fields too. Correct `thinking` by what stands behind it.",
    "Set TRANSIENT_400=relay for one whose own hiccups come as 400.",
  ],
  unconfirmed: ["thinking", "structuredOutput"],
};

export const HOST_PROFILES = { groq, openrouter, together, fireworks, relay };
