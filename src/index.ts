/**
 * PolyGateway: governed LLM calls. Start with `GatewayClient`, or with `EmbeddingClient` for vectors.
 */

// For everyone
export { MemoryCache, type MemoryCacheOptions } from "./backends/memory/cache.js";
export { MemoryGovernor, type MemoryGovernorOptions } from "./backends/memory/governor.js";
// For authors of backends, recorders, selectors and transports
export { createSystemRuntime } from "./backends/system.js";
export type { ChatStream } from "./clients/chat-stream.js";
export type {
  BackpressureOptions,
  BreakerOptions,
  CacheOptions,
  EmbeddingOptions,
  GatewayOptions,
  LimitOptions,
  OcrOptions,
  PricingSource,
  ProfileOptions,
  ProxyEnv,
  RedisOptions,
  RetryOptions,
  SchedulingOptions,
  ScopeOptions,
  SourceOptions,
  TelemetryOptions,
} from "./config/options.js";
export type {
  ChatChoice,
  ChatCompletion,
  ChatEvent,
  ChatMessage,
  ChatRequest,
  ChatResponse,
  ContentPart,
  FinishReason,
  Sampling,
  Thinking,
  ThinkingFallback,
  ToolCall,
} from "./domain/chat.js";
export type {
  EmbeddedBatch,
  EmbeddingCompletion,
  EmbedOptions,
  EmbedResult,
  FailedText,
  Vector,
} from "./domain/embedding.js";
export {
  type OcrBox,
  type OcrCallOptions,
  type OcrElement,
  type OcrElementType,
  type OcrHealth,
  type OcrImage,
  type OcrInput,
  type OcrLayout,
  type OcrLayoutCompletion,
  type OcrLayoutResult,
  type OcrPage,
  type OcrReaderName,
  type OcrResultFacts,
  type OcrTextCompletion,
  type OcrTextResult,
  type OcrTransportName,
  toPixels,
} from "./domain/ocr.js";
export type {
  AuthDialect,
  ErrorRule,
  Modality,
  ParameterRule,
  ProviderProfile,
  StructuredOutputMode,
  ThinkingBudget,
  ThinkingRule,
  UsageDialect,
} from "./domain/profile.js";
export type { CallRecord, OpenAttempt, OperationKind, RecordOutcome } from "./domain/record.js";
export { Secret } from "./domain/secret.js";
export type { LimitConfig, LimitRule, SourceConfig, Transient400 } from "./domain/source.js";
export type { JsonSchema, StandardSchema } from "./domain/standard-schema.js";
export type { StructuredCall, StructuredOptions, StructuredReply } from "./domain/structured.js";
export type { RateLimitDimension, UpstreamLimits } from "./domain/upstream-limits.js";
export type { BilledUsage, Usage } from "./domain/usage.js";
export {
  AllSourcesExhausted,
  CircuitOpenError,
  ConfigError,
  type ConfigProblem,
  type ErrorCode,
  GatewayUnavailableError,
  GovernanceBackendError,
  type PartialReply,
  PolyGatewayError,
  RequestRejectedError,
  ResultInvalidError,
  SourceDeadError,
  SourceNotConfiguredError,
  type SourceReason,
  type SourceReasonDetail,
  TransientError,
  type UnavailableReason,
} from "./errors.js";
export { OcrClient } from "./gateway/ocr-client.js";
export {
  EmbeddingClient,
  type FromConfigOptions,
  type FromEnvOptions,
  GatewayClient,
  type GatewaySnapshot,
} from "./gateway.js";
export { gatherBounded } from "./gather-bounded.js";
export type { AnswerCache, CachedAnswer } from "./ports/cache.js";
export type {
  BreakerState,
  GateName,
  Governor,
  GovernorEvent,
  Grant,
  Outcome,
  Passed,
  Refusal,
  ScopeSnapshot,
  Settle,
  SourceSnapshot,
  TickBatch,
  TickReply,
  Verdict,
  Want,
} from "./ports/governor.js";
export type { CaptureMode, Recorder, RecorderStats } from "./ports/recorder.js";
export type { CancelTimer, LogLevel, Runtime } from "./ports/runtime.js";
export type { Selector } from "./ports/selector.js";
export type {
  AttemptContext,
  ChatAttempt,
  ChatSink,
  ChatTransport,
  EmbeddingAttempt,
  EmbeddingTransport,
  OcrAttempt,
  OcrHealthCheck,
  OcrTransport,
} from "./ports/transport.js";
export type { AnswerIssue } from "./structured/issues.js";
export { JsonlRecorder } from "./telemetry/jsonl.js";
export { PricingTable } from "./telemetry/pricing.js";
export { profiles } from "./transports/openai/profiles.js";
export { VERSION } from "./version.js";
