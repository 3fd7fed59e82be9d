import { profileFor } from "../transports/openai/profiles.js";
import { EMBEDDING_PROVIDERS, OCR_PROVIDERS, STARTER_PROVIDERS, type StarterProvider } from "./init-providers.js";
import { DEFAULT_SCOPE } from "./scope.js";

/** An option by its path and an example of its value; lengths of time in ms. */
export type Setting = readonly [path: string, value: string | number | boolean];

/** What a scope is for: `init` writes one kind of scope a time. */
export interface Purpose {
  readonly name: (typeof PURPOSE_NAMES)[number];
  /** Name of its scope when none is given. */
  readonly scope: string;
  readonly providers: readonly StarterProvider[];
  readonly defaultProvider: string;
  /** Another server than those: what is known of it beforehand. */
  readonly custom: Omit<StarterProvider, "name" | "baseUrl" | "model">;
  /** What people change first of a source and of the scope; written as comments. */
  readonly ofASource: readonly Setting[];
  readonly ofTheScope: readonly Setting[];
  /** What has to be there. */
  settings(providers: readonly StarterProvider[]): readonly Setting[];
  /** A first call: command and what stands behind its options. */
  readonly firstCall: readonly [command: string, rest: string];
}

export const PURPOSE_NAMES = ["chat", "embeddings", "ocr"] as const;

const CUSTOM_KEY = { keyName: "CUSTOM_API_KEY" };
const LIMITS: readonly Setting[] = [
  ["maxConcurrency", 8],
  ["rpm", 60],
];
const OF_EVERY_SCOPE: readonly Setting[] = [
  ["global.maxConcurrency", 16],
  ["global.rpm", 120],
  ["retry.maxAttempts", 4],
  ["breaker.failThreshold", 5],
  ["breaker.cooldownMs", 4_000],
  ["failover", "on"],
];
const DEADLINE: Setting = ["deadlineMs", 300_000];

/** Taken by every model; where the profile knows of fewer texts, so many. */
const USUAL_BATCH = 100;

export const PURPOSES: Readonly<Record<(typeof PURPOSE_NAMES)[number], Purpose>> = {
  chat: {
    name: "chat",
    scope: DEFAULT_SCOPE,
    providers: STARTER_PROVIDERS,
    defaultProvider: "openai",
    custom: CUSTOM_KEY,
    ofASource: [...LIMITS, ["tpm", 100_000], ["timeoutMs", 120_000], ["ttftTimeoutMs", 60_000]],
    ofTheScope: [...OF_EVERY_SCOPE, DEADLINE],
    settings: () => [],
    firstCall: ["chat", ' "Hello"'],
  },
  embeddings: {
    name: "embeddings",
    scope: "EMBED",
    providers: EMBEDDING_PROVIDERS,
    defaultProvider: "openai",
    custom: CUSTOM_KEY,
    ofASource: [...LIMITS, ["tpm", 100_000], ["timeoutMs", 120_000]],
    ofTheScope: [["normalize", true], ...OF_EVERY_SCOPE, DEADLINE],
    settings: (providers) => [["batchSize", Math.min(USUAL_BATCH, ...providers.map(batchMaxOf))]],
    firstCall: ["embed", " texts.txt -o vectors.jsonl"],
  },
  ocr: {
    name: "ocr",
    scope: "OCR",
    providers: OCR_PROVIDERS,
    defaultProvider: "monkey-ocr",
    custom: { ...CUSTOM_KEY, transport: "vlm" },
    // A page may take minutes, and these servers report no tokens.
    ofASource: [
      ["maxConcurrency", 1],
      ["rpm", 60],
      ["timeoutMs", 300_000],
    ],
    ofTheScope: OF_EVERY_SCOPE,
    settings: () => [],
    firstCall: ["ocr", " scan.pdf -o read/"],
  },
};

function batchMaxOf({ baseUrl }: StarterProvider): number {
  return profileFor(baseUrl).embeddingBatchMax ?? USUAL_BATCH;
}
