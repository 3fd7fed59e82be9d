/**
 * `polygateway/testing`: virtual time, a simulated provider, and the contract suites for authors of backends.
 * Nothing here needs a test runner; the suites take the runner's `test` function.
 */

export { createSystemRuntime, type SystemRuntimeOptions } from "../backends/system.js";
export { type CacheContractOptions, type CacheUnderTest, cacheContract } from "./contracts/cache.js";
export {
  type GovernorBackend,
  type GovernorContractOptions,
  type GovernorSetup,
  governorContract,
} from "./contracts/governor.js";
export {
  type KeptTelemetry,
  type RecorderContractOptions,
  type RecorderUnderTest,
  recorderContract,
} from "./contracts/recorder.js";
export { type SimulatedLog, SimulationKernel, type SimulationKernelOptions } from "./kernel.js";
export type {
  OcrLedgerEntry,
  OcrServer,
  OcrServerFaults,
  OcrServerOptions,
  OcrServerOutcome,
} from "./ocr/http.js";
export { type MinerUFaults, type MinerUServerOptions, startMinerUServer } from "./ocr/mineru-server.js";
export {
  type MistralBlock,
  type MistralOcrChanges,
  type MistralOcrFaults,
  type MistralOcrServerOptions,
  type MistralPage,
  startMistralOcrServer,
} from "./ocr/mistral-server.js";
export { type MonkeyOcrFaults, type MonkeyOcrServerOptions, startMonkeyOcrServer } from "./ocr/monkey-ocr-server.js";
export {
  type PaddleBlock,
  type PaddleChanges,
  type PaddleFaults,
  type PaddlePage,
  type PaddleServerOptions,
  startPaddleServer,
} from "./ocr/paddle-server.js";
export type {
  UploadFaults,
  UploadLedgerEntry,
  UploadServer,
  UploadServerOptions,
} from "./ocr/upload-server.js";
export {
  type JudgedEntry,
  type JudgedGate,
  type JudgedLimits,
  type JudgeOptions,
  judgeLimits,
  type LimitJudgement,
  type LimitVerdict,
} from "./provider/judge.js";
export {
  type Answer,
  echoAnswer,
  type FaultOptions,
  type LatencyOptions,
  type LedgerEntry,
  type LedgerOptions,
  type LedgerOutcome,
  type Outage,
  type OutputOptions,
  type ProviderChanges,
  type ProviderClock,
  type ProviderLimits,
  type ProviderStats,
  parseScripts,
  type ReceivedRequest,
  type ResponseScript,
  readLedger,
  type ScriptChunk,
  type SimulatedProvider,
  type SimulatedProviderOptions,
  type SocketScript,
  startSimulatedProvider,
  type UpstreamScript,
} from "./provider/server.js";
