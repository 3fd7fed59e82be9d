import type { Thinking } from "../../src/index.js";

/** How each provider talks, as its fake in the tests does (reference-providers §2). Data only. */

export type ErrorClass = "Transient" | "RateLimited" | "SourceDead" | "RequestRejected";

export interface Dialect {
  readonly profile: string;
  readonly model: string;
  /** Header and value that carry the key `sk-provider-key-1`; default: a bearer. */
  readonly auth?: readonly [string, string];
  readonly url?: string;
  /** Wire name of `maxTokens`; default `max_tokens`. */
  readonly limitName?: string;
  readonly asksUsage?: boolean;
  /** Data of the stream's events; `[DONE]` follows unless one of them says otherwise. */
  readonly stream: readonly object[];
  readonly comments?: boolean;
  readonly body: object;
  /** Both answers mean this. */
  readonly means: {
    readonly content: string;
    readonly thinking: string;
    readonly usage: { prompt: number; completion: number; reasoning: number | null; cached: number | null };
  };
  /** Wish → fields on the wire, or null = refused before anything is sent. `model` = another one than above. */
  readonly thinking: readonly (readonly [wish: Thinking, fields: object | null, model?: string])[];
  /** Status, body → class and code; `Retry-After` in seconds. */
  readonly errors: readonly (readonly [number, unknown, ErrorClass, string, retryAfter?: string])[];
}

const delta = (fields: object, finish_reason: string | null = null, more: object = {}) => ({
  choices: [{ index: 0, delta: fields, finish_reason, ...more }],
});
const whole = (message: object, usage: object, more: object = {}) => ({
  id: "c1",
  model: "m-reported",
  choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason: "stop" }],
  usage,
  ...more,
});
const used = (prompt: number, completion: number, more: object = {}) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
  ...more,
});
const error = (message: string, more: object = {}) => ({ error: { message, ...more } });

const reasoned = (field: string, usage: object): Pick<Dialect, "stream" | "body"> => ({
  stream: [
    delta({ role: "assistant", content: "" }),
    delta({ [field]: "Let me " }),
    delta({ [field]: "see." }),
    delta({ content: "Four" }),
    delta({ content: "." }),
    delta({}, "stop"),
    { choices: [], usage },
  ],
  body: whole({ [field]: "Let me see.", content: "Four." }, usage),
});

const OPENAI_USAGE = used(9, 7, {
  prompt_tokens_details: { cached_tokens: 4 },
  completion_tokens_details: { reasoning_tokens: 5 },
});
const PLAIN: Pick<Dialect, "stream" | "body"> = {
  stream: [
    delta({ role: "assistant", content: "Four" }),
    delta({ content: "." }, "stop"),
    { choices: [], usage: OPENAI_USAGE },
  ],
  body: whole({ content: "Four." }, OPENAI_USAGE),
};
const FOUR = { content: "Four.", thinking: "", usage: { prompt: 9, completion: 7, reasoning: 5, cached: 4 } };
const REASONED = { ...FOUR, thinking: "Let me see." };
const TAGGED: Pick<Dialect, "stream" | "body"> = {
  stream: [
    delta({ content: "<thi" }),
    delta({ content: "nk>Let me see.</think>\n\nFour." }, "stop", { usage: undefined }),
    { choices: [], usage: OPENAI_USAGE },
  ],
  body: whole({ content: "<think>Let me see.</think>\n\nFour." }, OPENAI_USAGE),
};
const TEMPLATE: Dialect["thinking"] = [
  [true, { chat_template_kwargs: { enable_thinking: true } }],
  [false, { chat_template_kwargs: { enable_thinking: false } }],
  ["low", null],
  [{ budgetTokens: 2_000 }, null],
  ["low", { reasoning_effort: "low" }, "openai/gpt-oss-20b"],
  [false, null, "openai/gpt-oss-20b"],
];

const GLOBAL: readonly Dialect[] = [
  {
    profile: "openai",
    model: "gpt-5.1",
    limitName: "max_completion_tokens",
    ...PLAIN,
    means: FOUR,
    thinking: [
      [false, { reasoning_effort: "none" }],
      [true, { reasoning_effort: "medium" }],
      ["high", { reasoning_effort: "high" }],
      [{ budgetTokens: 2_000 }, null],
      [false, null, "o3"],
      [true, {}, "o3"],
      ["low", { reasoning_effort: "low" }, "o4-mini"],
      [true, null, "gpt-4o"],
      [false, {}, "gpt-4o"],
    ],
    errors: [
      [429, error("You exceeded your current quota", { code: "insufficient_quota" }), "SourceDead", "quota"],
      [429, error("Rate limit reached", { code: "rate_limit_exceeded" }), "RateLimited", "rate_limit"],
      [400, error("too long", { code: "context_length_exceeded" }), "RequestRejected", "context_length"],
      [401, error("Incorrect API key", { code: "invalid_api_key" }), "SourceDead", "auth"],
      [404, error("The model `x` does not exist", { code: "model_not_found" }), "SourceDead", "model_not_found"],
      [503, error("overloaded"), "Transient", "overloaded"],
    ],
  },
  {
    profile: "azure",
    model: "my-deployment",
    auth: ["api-key", "sk-provider-key-1"],
    url: "/v1/chat/completions?api-version=v1",
    stream: [
      { choices: [], prompt_filter_results: [{ prompt_index: 0, content_filter_results: {} }] },
      ...PLAIN.stream,
    ],
    body: { ...PLAIN.body, prompt_filter_results: [] },
    means: FOUR,
    thinking: [
      ["low", { reasoning_effort: "low" }],
      [{ budgetTokens: 2_000 }, null],
    ],
    errors: [
      [
        400,
        error("filtered", { code: "content_filter", innererror: { content_filter_result: {} } }),
        "RequestRejected",
        "content_filtered",
      ],
      [
        404,
        error("The API deployment does not exist", { code: "DeploymentNotFound" }),
        "SourceDead",
        "model_not_found",
      ],
      [401, error("Access denied due to invalid subscription key", { code: "401" }), "SourceDead", "auth"],
      [429, error("try again later", { code: "429" }), "RateLimited", "rate_limit"],
    ],
  },
  {
    profile: "anthropic",
    model: "claude-sonnet-4-5",
    stream: PLAIN.stream.slice(0, -1).concat([
      {
        choices: [],
        usage: { ...used(5, 7), cache_read_input_tokens: 4, output_tokens_details: { thinking_tokens: 5 } },
      },
    ]),
    body: whole(
      { content: "Four." },
      { ...used(5, 7), cache_read_input_tokens: 4, output_tokens_details: { thinking_tokens: 5 } },
    ),
    means: FOUR,
    thinking: [
      [false, { thinking: { type: "disabled" } }],
      [{ budgetTokens: 2_048 }, { thinking: { type: "enabled", budget_tokens: 2_048 } }],
      [{ budgetTokens: 512 }, null],
      [true, { thinking: { type: "enabled", budget_tokens: 4_096 } }],
      ["high", null],
      [true, { thinking: { type: "adaptive" } }, "claude-opus-4-7"],
      [{ budgetTokens: 2_048 }, null, "claude-opus-4-7"],
    ],
    errors: [
      [400, error("Your credit balance is too low", { type: "invalid_request_error" }), "SourceDead", "quota"],
      [402, error("billing", { type: "billing_error" }), "SourceDead", "quota"],
      [413, error("too large", { type: "request_too_large" }), "RequestRejected", "bad_request"],
      [429, error("slow down", { type: "rate_limit_error" }), "RateLimited", "rate_limit"],
      [500, error("api", { type: "api_error" }), "Transient", "upstream_error"],
      [404, error("model: x", { type: "not_found_error" }), "SourceDead", "model_not_found"],
    ],
  },
  {
    profile: "gemini",
    model: "gemini-2.5-flash",
    stream: [
      delta({ content: "<thought>Let me see.</thought>Four." }, "stop"),
      { choices: [], usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 16 } },
    ],
    body: whole(
      { content: "<thought>Let me see.</thought>Four." },
      { prompt_tokens: 9, completion_tokens: 2, total_tokens: 16 },
    ),
    means: {
      content: "Four.",
      thinking: "Let me see.",
      usage: { prompt: 9, completion: 7, reasoning: 5, cached: null },
    },
    thinking: [
      [false, { reasoning_effort: "none" }],
      ["minimal", { reasoning_effort: "minimal" }],
      [
        { budgetTokens: 2_000 },
        { extra_body: { google: { thinking_config: { thinking_budget: 2_000, include_thoughts: true } } } },
      ],
      [false, null, "gemini-2.5-pro"],
    ],
    errors: [
      [
        400,
        [
          {
            error: {
              code: 400,
              message: "API key not valid. Please pass a valid API key.",
              status: "INVALID_ARGUMENT",
            },
          },
        ],
        "SourceDead",
        "auth",
      ],
      [400, error("Invalid JSON payload", { code: 400, status: "INVALID_ARGUMENT" }), "RequestRejected", "bad_request"],
      [
        400,
        error("User location is not supported", { code: 400, status: "FAILED_PRECONDITION" }),
        "SourceDead",
        "auth",
      ],
      [403, error("no", { code: 403, status: "PERMISSION_DENIED" }), "SourceDead", "auth"],
      [
        429,
        error("You exceeded your current quota, please check your plan and billing details", {
          code: 429,
          status: "RESOURCE_EXHAUSTED",
        }),
        "RateLimited",
        "rate_limit",
      ],
      [
        429,
        error("Quota exceeded", {
          code: 429,
          status: "RESOURCE_EXHAUSTED",
          details: [{ quotaId: "GenerateRequestsPerDayPerModel" }],
        }),
        "SourceDead",
        "quota",
      ],
      [503, error("The model is overloaded", { code: 503, status: "UNAVAILABLE" }), "Transient", "overloaded"],
    ],
  },
  {
    profile: "mistral",
    model: "mistral-medium",
    asksUsage: false,
    stream: [
      delta({ content: [{ type: "thinking", thinking: [{ type: "text", text: "Let me see." }] }] }),
      delta({ content: "Four." }, "stop", {}),
      { choices: [], usage: { ...used(9, 7), num_cached_tokens: 4 } },
    ],
    body: whole(
      {
        content: [
          { type: "thinking", thinking: [{ type: "text", text: "Let me see." }] },
          { type: "text", text: "Four." },
        ],
      },
      { ...used(9, 7), num_cached_tokens: 4 },
    ),
    means: {
      content: "Four.",
      thinking: "Let me see.",
      usage: { prompt: 9, completion: 7, reasoning: null, cached: 4 },
    },
    thinking: [
      [true, { reasoning_effort: "high" }],
      [false, { reasoning_effort: "none" }],
      [{ budgetTokens: 2_000 }, null],
      [true, { prompt_mode: "reasoning" }, "magistral-medium-latest"],
    ],
    errors: [
      [
        422,
        { detail: [{ loc: ["body", "foo"], msg: "Extra inputs are not permitted", type: "extra_forbidden" }] },
        "RequestRejected",
        "unsupported_param",
      ],
      [
        429,
        {
          object: "error",
          message: "Service tier capacity exceeded",
          type: "service_tier_capacity_exceeded",
          code: "3505",
        },
        "Transient",
        "overloaded",
      ],
      [
        429,
        { object: "error", message: "Requests rate limit exceeded", type: "rate_limited" },
        "RateLimited",
        "rate_limit",
      ],
      [401, { message: "Unauthorized" }, "SourceDead", "auth"],
    ],
  },
  {
    profile: "xai",
    model: "grok-4-fast-reasoning",
    limitName: "max_completion_tokens",
    ...reasoned("reasoning_content", {
      ...used(9, 2),
      total_tokens: 16,
      prompt_tokens_details: { cached_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 5 },
    }),
    means: REASONED,
    thinking: [
      ["high", { reasoning_effort: "high" }],
      [false, { reasoning_effort: "none" }],
      ["max", null],
      [true, null, "grok-4-fast-non-reasoning"],
    ],
    errors: [
      [
        200,
        { code: "The service is currently unavailable", error: "The service is currently unavailable" },
        "Transient",
        "overloaded",
      ],
      [
        400,
        {
          code: "Client specified an invalid argument",
          error: "Incorrect API key provided: xa***1. You can obtain one at console",
        },
        "SourceDead",
        "auth",
      ],
      [
        404,
        { code: "Some requested entity was not found", error: "The model x does not exist" },
        "SourceDead",
        "model_not_found",
      ],
      [429, { code: "Some resource has been exhausted", error: "Too many requests" }, "RateLimited", "rate_limit"],
    ],
  },
];

const CHINA: readonly Dialect[] = [
  {
    profile: "deepseek",
    model: "deepseek-chat",
    comments: true,
    ...reasoned("reasoning_content", {
      ...used(9, 7),
      prompt_cache_hit_tokens: 4,
      completion_tokens_details: { reasoning_tokens: 5 },
    }),
    means: REASONED,
    thinking: [
      [true, { thinking: { type: "enabled" } }],
      [false, { thinking: { type: "disabled" } }],
      ["medium", { thinking: { type: "enabled" }, reasoning_effort: "high" }],
      [{ budgetTokens: 2_000 }, null],
      [false, null, "deepseek-reasoner"],
    ],
    errors: [
      [
        402,
        error("Insufficient Balance", { type: "unknown_error", code: "invalid_request_error" }),
        "SourceDead",
        "quota",
      ],
      [422, error("invalid", { code: "invalid_request_error" }), "RequestRejected", "bad_request"],
      [429, error("concurrency"), "RateLimited", "rate_limit"],
    ],
  },
  {
    profile: "qwen",
    model: "qwen-plus",
    ...reasoned("reasoning_content", OPENAI_USAGE),
    means: REASONED,
    thinking: [
      [true, { enable_thinking: true }],
      [false, { enable_thinking: false }],
      [{ budgetTokens: 2_000 }, { enable_thinking: true, thinking_budget: 2_000 }],
      ["low", null],
      [false, null, "qwq-plus"],
    ],
    errors: [
      [
        400,
        error("Input data may contain inappropriate content", { code: "data_inspection_failed" }),
        "RequestRejected",
        "content_filtered",
      ],
      [
        400,
        error("Access denied, please make sure your account is in good standing", { code: "Arrearage" }),
        "SourceDead",
        "quota",
      ],
      [403, error("Model access denied", { code: "Model.AccessDenied" }), "SourceDead", "model_not_found"],
      [429, error("You exceeded your current quota", { code: "insufficient_quota" }), "RateLimited", "rate_limit"],
      [429, error("Allocated quota exceeded", { code: "Throttling.AllocationQuota" }), "RateLimited", "rate_limit"],
      [429, error("Free allocated quota exceeded.", { code: "Throttling.AllocationQuota" }), "SourceDead", "quota"],
      [403, error("The free tier is exhausted", { code: "AllocationQuota.FreeTierOnly" }), "SourceDead", "quota"],
      [500, error("internal", { code: "InternalError.Algo" }), "Transient", "upstream_error"],
    ],
  },
  {
    profile: "glm",
    model: "glm-4.7",
    ...reasoned("reasoning_content", OPENAI_USAGE),
    means: REASONED,
    thinking: [
      [true, { thinking: { type: "enabled" } }],
      [false, { thinking: { type: "disabled" } }],
      ["high", null],
      [false, null, "glm-5.3"],
      [true, { thinking: { type: "enabled" } }, "glm-5.3"],
      ["high", { thinking: { type: "enabled" }, reasoning_effort: "high" }, "glm-5.2"],
    ],
    errors: [
      [401, error("身份验证失败", { code: "1001" }), "SourceDead", "auth"],
      [429, error("您的账户已欠费，请充值后重试。", { code: "1113" }), "SourceDead", "quota"],
      [429, error("您当前使用该API的并发数过高", { code: "1302" }), "RateLimited", "rate_limit"],
      [429, error("频率过高", { code: "1303" }), "RateLimited", "rate_limit"],
      [429, error("模型当前访问量过大", { code: "1305" }), "Transient", "overloaded"],
      [429, error("已达到使用上限，将在 2099-01-15 18:00:00 重置", { code: "1308" }), "SourceDead", "quota"],
      [400, error("敏感内容", { code: "1301" }), "RequestRejected", "content_filtered"],
      [400, error("模型不存在", { code: "1211" }), "SourceDead", "model_not_found"],
      [400, error("Prompt 超长", { code: "1261" }), "RequestRejected", "context_length"],
      [500, error("网络错误", { code: "1234" }), "Transient", "upstream_error"],
      [400, error("参数有误", { code: "1210" }), "RequestRejected", "bad_request"],
      [403, error("套餐已到期", { code: "1309" }), "SourceDead", "quota"],
    ],
  },
  {
    profile: "kimi",
    model: "kimi-k2.6",
    stream: [
      delta({ reasoning_content: "Let me see." }),
      delta({ content: "Four." }),
      delta({}, "stop", { usage: { ...used(9, 7), cached_tokens: 4 } }),
    ],
    body: whole({ reasoning_content: "Let me see.", content: "Four." }, { ...used(9, 7), cached_tokens: 4 }),
    means: {
      content: "Four.",
      thinking: "Let me see.",
      usage: { prompt: 9, completion: 7, reasoning: null, cached: 4 },
    },
    thinking: [
      [false, { thinking: { type: "disabled" } }],
      [true, { thinking: { type: "enabled" } }],
      ["high", null],
      ["max", { reasoning_effort: "max" }, "kimi-k3"],
      ["medium", null, "kimi-k3"],
      [false, null, "kimi-k3"],
      [true, {}, "kimi-k2-thinking"],
    ],
    errors: [
      [
        429,
        error("The engine is currently overloaded", { type: "engine_overloaded_error" }),
        "Transient",
        "overloaded",
      ],
      [429, error("max RPM: 3", { type: "rate_limit_reached_error" }), "RateLimited", "rate_limit"],
      [429, error("reached max TPD: 1500000", { type: "rate_limit_reached_error" }), "SourceDead", "quota"],
      [429, error("suspended", { type: "exceeded_current_quota_error" }), "SourceDead", "quota"],
      [403, error("no", { type: "permission_denied_error" }), "SourceDead", "model_not_found"],
      [
        400,
        error("invalid temperature: only 1 is allowed for this model", { type: "invalid_request_error" }),
        "RequestRejected",
        "unsupported_param",
      ],
      [400, error("high risk", { type: "content_filter" }), "RequestRejected", "content_filtered"],
    ],
  },
  {
    profile: "minimax",
    model: "MiniMax-M3",
    limitName: "max_completion_tokens",
    ...TAGGED,
    means: REASONED,
    thinking: [
      [true, { thinking: { type: "adaptive" } }],
      [false, { thinking: { type: "disabled" } }],
      [false, null, "MiniMax-M2.1"],
      [true, {}, "MiniMax-M2.1"],
    ],
    errors: [
      [200, { choices: null, base_resp: { status_code: 1001, status_msg: "timeout" } }, "Transient", "upstream_error"],
      [200, { base_resp: { status_code: 1002, status_msg: "rate limit" } }, "RateLimited", "rate_limit"],
      [200, { base_resp: { status_code: 1004, status_msg: "login fail" } }, "SourceDead", "auth"],
      [200, { base_resp: { status_code: 1008, status_msg: "insufficient balance" } }, "SourceDead", "quota"],
      [
        200,
        { base_resp: { status_code: 1026, status_msg: "input new_sensitive" } },
        "RequestRejected",
        "content_filtered",
      ],
      [200, { base_resp: { status_code: 2013, status_msg: "invalid params" } }, "RequestRejected", "bad_request"],
      [200, { base_resp: { status_code: 2056, status_msg: "usage limit" } }, "SourceDead", "quota"],
    ],
  },
  {
    profile: "ark",
    model: "ep-2026-abc",
    ...reasoned("reasoning_content", OPENAI_USAGE),
    means: REASONED,
    thinking: [
      [true, { thinking: { type: "enabled" } }],
      [false, { thinking: { type: "disabled" } }],
      [{ budgetTokens: 2_000 }, null],
    ],
    errors: [
      [400, error("risk", { code: "InputTextSensitiveContentDetected" }), "RequestRejected", "content_filtered"],
      [400, error("risk", { code: "InputTextRiskDetection" }), "RequestRejected", "content_filtered"],
      [403, error("overdue", { code: "AccountOverdueError" }), "SourceDead", "quota"],
      [404, error("no", { code: "InvalidEndpointOrModel.NotFound" }), "SourceDead", "model_not_found"],
      [404, error("closed", { code: "InvalidEndpoint.ClosedEndpoint" }), "SourceDead", "model_not_found"],
      [429, error("rpm", { code: "RateLimitExceeded.EndpointRPMExceeded" }), "RateLimited", "rate_limit"],
      [429, error("overloaded", { code: "ServerOverloaded" }), "Transient", "overloaded"],
      [429, error("quota", { code: "QuotaExceeded" }), "SourceDead", "quota"],
    ],
  },
  {
    profile: "siliconflow",
    model: "Qwen/Qwen3-8B",
    ...reasoned("reasoning_content", OPENAI_USAGE),
    means: REASONED,
    thinking: [
      [false, { enable_thinking: false }],
      [{ budgetTokens: 4_096 }, { enable_thinking: true, thinking_budget: 4_096 }],
      [{ budgetTokens: 64 }, null],
      ["max", { enable_thinking: true, reasoning_effort: "max" }, "deepseek-ai/DeepSeek-V4"],
    ],
    errors: [
      [
        400,
        { code: 20_012, message: "Model does not exist. Please check it carefully.", data: null },
        "SourceDead",
        "model_not_found",
      ],
      [401, '"Invalid token"', "SourceDead", "auth"],
      [
        403,
        { code: 30_001, message: "Sorry, your account balance is insufficient", data: null },
        "SourceDead",
        "quota",
      ],
      [
        429,
        { message: "Request was rejected due to rate limiting: TPM limit reached.", data: null },
        "RateLimited",
        "rate_limit",
      ],
      [
        503,
        { code: 50_505, message: "Model service overloaded. Please try again later.", data: null },
        "Transient",
        "overloaded",
      ],
    ],
  },
];

const HOSTS: readonly Dialect[] = [
  {
    profile: "groq",
    model: "openai/gpt-oss-120b",
    limitName: "max_completion_tokens",
    stream: [
      delta({ reasoning: "Let me see." }),
      delta({ content: "Four." }),
      { ...delta({}, "stop"), x_groq: { id: "r", usage: OPENAI_USAGE } },
    ],
    body: whole({ reasoning: "Let me see.", content: "Four." }, OPENAI_USAGE),
    means: REASONED,
    thinking: [
      ["low", { reasoning_effort: "low" }],
      [false, null],
      [true, { reasoning_effort: "default" }, "qwen/qwen3-32b"],
      [false, { reasoning_effort: "none" }, "qwen/qwen3-32b"],
      [true, null, "llama-3.3-70b-versatile"],
    ],
    errors: [
      [498, error("flex", { code: "capacity_exceeded" }), "Transient", "overloaded"],
      [424, error("dependency"), "Transient", "upstream_error"],
      [
        400,
        error("Failed to validate JSON", { code: "json_validate_failed", failed_generation: "{" }),
        "Transient",
        "upstream_error",
      ],
      [429, error("Rate limit reached", { code: "rate_limit_exceeded" }), "RateLimited", "rate_limit"],
      [
        413,
        error("Request too large (TPM): Limit 8000, Requested 41000", { type: "tokens", code: "rate_limit_exceeded" }),
        "RequestRejected",
        "request_too_large_for_tier",
      ],
    ],
  },
  {
    profile: "openrouter",
    model: "vendor/think-1",
    asksUsage: false,
    comments: true,
    stream: [
      delta({ reasoning: "Let me see.", reasoning_details: [{ type: "reasoning.text", text: "Let me see." }] }),
      delta({ content: "Four." }, "stop"),
      { choices: [], usage: { ...OPENAI_USAGE, cost: 0.01 } },
    ],
    body: whole(
      { reasoning: null, reasoning_details: [{ type: "reasoning.text", text: "Let me see." }], content: "Four." },
      OPENAI_USAGE,
    ),
    means: REASONED,
    thinking: [
      [true, { reasoning: { enabled: true } }],
      [false, { reasoning: { enabled: false } }],
      ["high", { reasoning: { effort: "high" } }],
      [{ budgetTokens: 2_000 }, { reasoning: { max_tokens: 2_000 } }],
    ],
    errors: [
      [402, error("Insufficient credits", { code: 402 }), "SourceDead", "quota"],
      [
        402,
        error("in flight", { code: 402, metadata: { limit_source: "openrouter_in_flight_budget" } }),
        "RateLimited",
        "rate_limit",
      ],
      [402, error("later", { code: 402 }), "RateLimited", "rate_limit", "3"],
      [
        403,
        error("input was flagged", { code: 403, metadata: { reasons: ["violence"], flagged_input: "…" } }),
        "RequestRejected",
        "content_filtered",
      ],
      [
        404,
        error("No endpoints found that can handle the requested parameters", { code: 404 }),
        "RequestRejected",
        "unsupported_param",
      ],
      [
        200,
        error("Provider returned error", { code: 502, metadata: { provider_name: "x" } }),
        "Transient",
        "upstream_error",
      ],
      [408, error("timeout", { code: 408 }), "Transient", "upstream_error"],
    ],
  },
  {
    profile: "together",
    model: "Qwen/Qwen3-235B",
    ...reasoned("reasoning", OPENAI_USAGE),
    means: REASONED,
    thinking: [
      [true, { reasoning: { enabled: true } }],
      [false, { reasoning: { enabled: false } }],
      ["low", null],
    ],
    errors: [
      [403, error("input tokens + max_new_tokens must be less than 8193"), "RequestRejected", "context_length"],
      [402, error("spending limit"), "SourceDead", "quota"],
      [503, error("overloaded"), "Transient", "overloaded"],
    ],
  },
  {
    profile: "fireworks",
    model: "accounts/fireworks/models/x",
    ...reasoned("reasoning_content", OPENAI_USAGE),
    means: REASONED,
    thinking: [
      [false, { reasoning_effort: "none" }],
      ["high", { reasoning_effort: "high" }],
      [{ budgetTokens: 2_000 }, { thinking: { type: "enabled", budget_tokens: 2_000 } }],
      [{ budgetTokens: 500 }, null],
    ],
    errors: [
      [412, error("account suspended"), "SourceDead", "quota"],
      [404, error("Model not found", { code: "NOT_FOUND" }), "SourceDead", "model_not_found"],
    ],
  },
  {
    profile: "relay",
    model: "gpt-x",
    ...reasoned("reasoning_content", OPENAI_USAGE),
    means: REASONED,
    thinking: [
      ["low", { reasoning_effort: "low" }],
      [{ budgetTokens: 2_000 }, null],
    ],
    errors: [
      [
        403,
        error("用户额度不足 (request id: 1)", { type: "new_api_error", code: "insufficient_user_quota" }),
        "SourceDead",
        "quota",
      ],
      [
        403,
        error("预扣费失败", { type: "new_api_error", code: "pre_consume_token_quota_failed" }),
        "SourceDead",
        "quota",
      ],
      [429, error("当前分组上游负载已饱和，请稍后再试", { type: "one_api_error" }), "RateLimited", "rate_limit"],
      [503, error("当前分组 default 下对于模型 x 无可用渠道", { type: "one_api_error" }), "Transient", "no_channel"],
      [
        500,
        error("do request failed", { type: "one_api_error", code: "do_request_failed" }),
        "Transient",
        "upstream_error",
      ],
      [
        400,
        error("sensitive", { type: "new_api_error", code: "sensitive_words_detected" }),
        "RequestRejected",
        "content_filtered",
      ],
    ],
  },
];

const SERVERS: readonly Dialect[] = [
  {
    profile: "vllm",
    model: "qwen3-8b",
    ...reasoned("reasoning", OPENAI_USAGE),
    means: REASONED,
    thinking: [...TEMPLATE, [true, { chat_template_kwargs: { thinking: true } }, "deepseek-ai/DeepSeek-V3.1"]],
    errors: [
      [
        400,
        {
          object: "error",
          message: "This model's maximum context length is 8192 tokens",
          type: "BadRequestError",
          code: 400,
        },
        "RequestRejected",
        "context_length",
      ],
      [
        404,
        error("The model `x` does not exist.", { type: "NotFoundError", code: 404 }),
        "SourceDead",
        "model_not_found",
      ],
      [500, error("EngineCore died", { code: 500 }), "Transient", "upstream_error"],
    ],
  },
  {
    profile: "sglang",
    model: "qwen3-8b",
    ...reasoned("reasoning_content", {
      ...used(9, 7),
      prompt_tokens_details: { cached_tokens: 4 },
      reasoning_tokens: 5,
    }),
    means: REASONED,
    thinking: TEMPLATE,
    errors: [
      [400, { object: "error", message: "bad", type: "BadRequestError", code: 400 }, "RequestRejected", "bad_request"],
      [
        503,
        { object: "error", message: "The request queue is full.", type: "x", code: 503 },
        "Transient",
        "overloaded",
      ],
    ],
  },
  {
    profile: "ollama",
    model: "qwen3:8b",
    ...reasoned("reasoning", used(9, 7)),
    means: {
      content: "Four.",
      thinking: "Let me see.",
      usage: { prompt: 9, completion: 7, reasoning: null, cached: null },
    },
    thinking: [
      [false, { reasoning_effort: "none" }],
      ["max", { reasoning_effort: "max" }],
      [{ budgetTokens: 2_000 }, null],
    ],
    errors: [
      [
        404,
        error('model "x" not found, try pulling it first', { type: "not_found_error" }),
        "SourceDead",
        "model_not_found",
      ],
      [503, { error: "server busy, please try again. maximum pending requests exceeded" }, "Transient", "overloaded"],
    ],
  },
  {
    profile: "lmstudio",
    model: "qwen3-8b",
    ...TAGGED,
    means: REASONED,
    thinking: [
      [true, null],
      [false, null],
      ["high", { reasoning_effort: "high" }, "openai/gpt-oss-20b"],
    ],
    errors: [
      [400, { error: "No models loaded. Please load a model in the developer page." }, "Transient", "overloaded"],
      [404, { error: "Model unloaded." }, "Transient", "overloaded"],
    ],
  },
  {
    profile: "llamacpp",
    model: "qwen3-8b",
    ...reasoned("reasoning_content", OPENAI_USAGE),
    means: REASONED,
    thinking: TEMPLATE,
    errors: [
      [503, { error: { code: 503, message: "Loading model", type: "unavailable_error" } }, "Transient", "overloaded"],
      [
        400,
        {
          error: {
            code: 400,
            message: "the request exceeds the available context size",
            type: "exceed_context_size_error",
          },
        },
        "RequestRejected",
        "context_length",
      ],
      [401, { error: { code: 401, message: "Invalid API Key", type: "authentication_error" } }, "SourceDead", "auth"],
    ],
  },
];

export const DIALECTS: readonly Dialect[] = [...GLOBAL, ...CHINA, ...HOSTS, ...SERVERS];
