import { ConfigError } from "../errors.js";
import { CliError } from "./failure.js";
import { describeProblem, type MockFlags, type OcrServerKind, toNumber } from "./mock-options.js";

/** `mock --ocr`: one of the simulated OCR servers in place of the chat provider. */

/** What any of the servers has, whatever its kind. */
export interface StartedOcrServer {
  readonly port: number;
  readonly baseUrl: string;
  ledger(): readonly { readonly outcome: string }[];
  stop(): Promise<void>;
}

const MODELS: Readonly<Record<OcrServerKind, string>> = {
  "monkey-ocr": "MonkeyOCR",
  mineru: "mineru",
  paddle: "PaddleOCR-VL",
  mistral: "mistral-ocr-latest",
};

/** Draw failures from a seed; the others fail on demand of a test only. */
const DRAWS_FAILURES: ReadonlySet<OcrServerKind> = new Set(["monkey-ocr", "mineru"]);
const COMMON: readonly (keyof MockFlags)[] = ["ocr", "port", "host", "apiKey", "latency", "json"];
const DRAWN: readonly (keyof MockFlags)[] = ["seed", "errorRate"];

/** `set`: the flags that were given. Throws CliError for those that this server does not know. */
export async function startOcrServer(
  kind: OcrServerKind,
  flags: MockFlags,
  set: readonly (keyof MockFlags)[],
): Promise<StartedOcrServer> {
  const known = new Set([...COMMON, ...(DRAWS_FAILURES.has(kind) ? DRAWN : [])]);
  const unknown = set.filter((name) => !known.has(name));
  if (unknown.length > 0) {
    const names = [...known].filter((name) => name !== "ocr").map(flagOf);
    throw new CliError(
      `${unknown.map(flagOf).join(", ")} can't be used with --ocr ${kind}, which takes ${names.join(", ")}.`,
    );
  }
  try {
    return await start(kind, flags);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const problems = error.problems.map((problem) => `  ${describeProblem(problem, flags)}`);
    throw new CliError(["The simulated OCR server can't start:", ...problems].join("\n"));
  }
}

const flagOf = (name: keyof MockFlags): string => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

async function start(kind: OcrServerKind, flags: MockFlags): Promise<StartedOcrServer> {
  const common = {
    host: flags.host,
    port: toNumber(flags.port) as number,
    ...(flags.apiKey === undefined ? {} : { apiKeys: flags.apiKey }),
    ...(flags.latency === undefined ? {} : { latencyMs: toNumber(flags.latency) as number }),
  };
  const drawn = {
    ...common,
    ...(flags.seed === undefined ? {} : { seed: toNumber(flags.seed) as number }),
    ...(flags.errorRate === undefined ? {} : { faults: { failureRate: toNumber(flags.errorRate) as number } }),
  };
  switch (kind) {
    case "monkey-ocr":
      return (await import("../testing/ocr/monkey-ocr-server.js")).startMonkeyOcrServer(drawn);
    case "mineru":
      return (await import("../testing/ocr/mineru-server.js")).startMinerUServer(drawn);
    case "paddle":
      return (await import("../testing/ocr/paddle-server.js")).startPaddleServer(common);
    case "mistral":
      return (await import("../testing/ocr/mistral-server.js")).startMistralOcrServer(common);
  }
}

/** What a scope for OCR needs to use this server. */
export function ocrEnvironment(
  kind: OcrServerKind,
  { baseUrl }: StartedOcrServer,
  { apiKey }: MockFlags,
): Record<string, string> {
  return {
    OCR__SIM__1__BASE_URL: baseUrl,
    OCR__SIM__1__API_KEY: apiKey?.[0] ?? "none",
    OCR__SIM__1__MODEL: MODELS[kind],
    OCR__SIM__1__TRANSPORT: kind,
  };
}

export function ocrOutcomes(server: StartedOcrServer): { arrived: number; outcomes: Readonly<Record<string, number>> } {
  const outcomes: Record<string, number> = {};
  const ledger = server.ledger();
  for (const { outcome } of ledger) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  return { arrived: ledger.length, outcomes };
}
