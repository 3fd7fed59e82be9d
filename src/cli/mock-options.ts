import { OCR_TRANSPORTS, type OcrTransportName } from "../domain/ocr.js";
import type { ConfigProblem } from "../errors.js";
import type { SimulatedProviderOptions } from "../testing/provider/options.js";
import type { SimulatedProvider } from "../testing/provider/server.js";

/** Servers with a protocol of their own; a chat model that reads pictures is the chat provider. */
export type OcrServerKind = Exclude<OcrTransportName, "vlm">;
export const OCR_SERVER_KINDS: readonly OcrServerKind[] = OCR_TRANSPORTS.filter((name) => name !== "vlm");

/** Every option as commander hands it over: texts, so that all of them are checked together. */
export interface MockFlags {
  readonly port: string;
  readonly host: string;
  readonly model: string;
  readonly apiKey?: readonly string[];
  readonly seed?: string;
  readonly rpm?: string;
  readonly tpm?: string;
  readonly maxConcurrency?: string;
  readonly limitRule?: "bucket" | "window";
  readonly bucketSeconds?: string;
  readonly rateLimitHeaders: boolean;
  /** One of the simulated OCR servers, in place of the chat provider. */
  readonly ocr?: OcrServerKind;
  readonly latency?: string;
  readonly ttft?: string;
  readonly ttftSigma?: string;
  readonly tokenTime?: string;
  readonly outputTokens?: string;
  readonly outputSigma?: string;
  readonly maxOutputTokens?: string;
  readonly errorRate?: string;
  readonly rateLimitRate?: string;
  readonly cutRate?: string;
  readonly hangRate?: string;
  readonly hangAt?: "start" | "middle" | "either";
  readonly resetRate?: string;
  readonly retryAfter?: string;
  readonly slowStart?: string;
  readonly deadKey?: true;
  readonly ledger?: string;
  readonly script?: string;
  readonly scriptForever?: true;
  readonly json?: true;
}

/** Which flag sets which option of the provider: problems are told in the words of the command line. */
const FLAG_OF: Readonly<Record<string, readonly [flag: string, name: keyof MockFlags]>> = {
  port: ["--port", "port"],
  seed: ["--seed", "seed"],
  latencyMs: ["--latency", "latency"],
  "faults.failureRate": ["--error-rate", "errorRate"],
  "limits.rpm": ["--rpm", "rpm"],
  "limits.tpm": ["--tpm", "tpm"],
  "limits.maxConcurrency": ["--max-concurrency", "maxConcurrency"],
  "limits.bucketSeconds": ["--bucket-seconds", "bucketSeconds"],
  "latency.ttftMedianMs": ["--ttft", "ttft"],
  "latency.ttftSigma": ["--ttft-sigma", "ttftSigma"],
  "latency.tokenMs": ["--token-time", "tokenTime"],
  "output.medianTokens": ["--output-tokens", "outputTokens"],
  "output.sigma": ["--output-sigma", "outputSigma"],
  "output.maxTokens": ["--max-output-tokens", "maxOutputTokens"],
  "faults.errorRate": ["--error-rate", "errorRate"],
  "faults.rateLimitRate": ["--rate-limit-rate", "rateLimitRate"],
  "faults.cutRate": ["--cut-rate", "cutRate"],
  "faults.hangRate": ["--hang-rate", "hangRate"],
  "faults.resetRate": ["--reset-rate", "resetRate"],
  "faults.rateLimitRetryAfterMs": ["--retry-after", "retryAfter"],
  "faults.slowStartMs": ["--slow-start", "slowStart"],
};

/** What is no number becomes NaN, which no option accepts. */
export function toNumber(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [, digits, percent] = /^\s*(-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(%?)\s*$/i.exec(text) ?? [];
  return digits === undefined ? Number.NaN : Number(digits) / (percent === "%" ? 100 : 1);
}

/** Leaves out what was not given, so that the provider's own defaults apply. */
function given<T extends object>(fields: { [K in keyof T]: T[K] | undefined }): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}

/** The provider that the flags describe; numbers that are none are left for the check to refuse. */
export function toProviderOptions(flags: MockFlags): SimulatedProviderOptions {
  const hasOutput = [flags.outputTokens, flags.outputSigma, flags.maxOutputTokens].some((text) => text !== undefined);
  return given<SimulatedProviderOptions>({
    name: "mock",
    host: flags.host,
    port: toNumber(flags.port),
    seed: toNumber(flags.seed),
    apiKeys: flags.apiKey,
    models: [flags.model],
    limits: given({
      rpm: toNumber(flags.rpm),
      tpm: toNumber(flags.tpm),
      maxConcurrency: toNumber(flags.maxConcurrency),
      rule: flags.limitRule,
      bucketSeconds: toNumber(flags.bucketSeconds),
      announce: flags.rateLimitHeaders,
    }),
    latency: given({
      ttftMedianMs: toNumber(flags.ttft),
      ttftSigma: toNumber(flags.ttftSigma),
      tokenMs: toNumber(flags.tokenTime),
    }),
    output: hasOutput ? outputOf(flags) : undefined,
    faults: given({
      errorRate: toNumber(flags.errorRate),
      rateLimitRate: toNumber(flags.rateLimitRate),
      cutRate: toNumber(flags.cutRate),
      hangRate: toNumber(flags.hangRate),
      hangAt: flags.hangAt,
      resetRate: toNumber(flags.resetRate),
      rateLimitRetryAfterMs: toNumber(flags.retryAfter),
      slowStartMs: toNumber(flags.slowStart),
      deadKey: flags.deadKey,
    }),
    ledger: given({ file: flags.ledger, keep: 0 }),
    answer: undefined,
    clock: undefined,
  });
}

function outputOf(flags: MockFlags): NonNullable<SimulatedProviderOptions["output"]> {
  return given<NonNullable<SimulatedProviderOptions["output"]>>({
    medianTokens: toNumber(flags.outputTokens) ?? Number.NaN,
    sigma: toNumber(flags.outputSigma),
    maxTokens: toNumber(flags.maxOutputTokens),
  });
}

/** A problem of the provider's options in the words of the command line. */
export function describeProblem({ key, value, problem, remedy }: ConfigProblem, flags: MockFlags): string {
  const names = key.split(" + ").map((path) => FLAG_OF[path]?.[0] ?? path);
  const name = FLAG_OF[key]?.[1];
  const text = name === undefined ? value : (flags[name] as string | undefined);
  return text === undefined
    ? `${names.join(" + ")}: missing. ${remedy}`
    : `${names.join(" + ")} ${text}: ${problem}. ${remedy}`;
}

/** What a source of a `.env` needs to use this provider, its limits included. */
export function sourceEnvironment(
  provider: Pick<SimulatedProvider, "baseUrl">,
  options: SimulatedProviderOptions,
): Record<string, string> {
  const { limits = {} } = options;
  const fields: Record<string, string | undefined> = {
    BASE_URL: provider.baseUrl,
    API_KEY: options.apiKeys?.[0] ?? "none",
    MODEL: options.models?.[0] ?? "sim-model",
    MAX_CONCURRENCY: limits.maxConcurrency ? String(limits.maxConcurrency) : undefined,
    RPM: limits.rpm ? String(limits.rpm) : undefined,
    TPM: limits.tpm ? String(limits.tpm) : undefined,
    LIMIT_RULE: limits.rule === "window" ? "window" : undefined,
  };
  const entries = Object.entries(fields).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return Object.fromEntries(entries.map(([field, value]) => [`LLM__SIM__1__${field}`, value]));
}
