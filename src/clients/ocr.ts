import type { Incapability } from "../domain/capability.js";
import type {
  OcrAnswerFacts,
  OcrCallOptions,
  OcrConfig,
  OcrHealth,
  OcrImage,
  OcrInput,
  OcrOperation as OcrKind,
  OcrLayoutCompletion,
  OcrLayoutResult,
  OcrResultFacts,
  OcrTextCompletion,
  OcrTextResult,
} from "../domain/ocr.js";
import { ocrIncapability } from "../domain/ocr-ability.js";
import type { ScopeConfig } from "../domain/scope.js";
import type { SourceConfig } from "../domain/source.js";
import { RequestRejectedError } from "../errors.js";
import type { GovernEnvironment } from "../governance/call.js";
import { govern } from "../governance/govern.js";
import type { OcrTransport } from "../ports/transport.js";
import type { CallLifetime } from "./call-lifetime.js";
import { COMMON_OPTIONS, optionTrouble } from "./call-options.js";
import { readImage } from "./ocr-input.js";
import { layoutSummary, NO_TOKENS, type OcrKindOfCall, OcrOperation, type OcrSources } from "./ocr-operation.js";
import { layoutWithin, textWithin } from "./ocr-page-bound.js";
import { unknownModel } from "./unknown-model.js";

export interface OcrReader {
  recognizeText(image: OcrInput, options?: OcrCallOptions): Promise<OcrTextResult>;
  parseLayout(image: OcrInput, options?: OcrCallOptions): Promise<OcrLayoutResult>;
  checkHealth(options?: OcrHealthOptions): Promise<Readonly<Record<string, OcrHealth>>>;
}

export interface OcrHealthOptions {
  readonly signal?: AbortSignal;
  /** Longest wait for one source, in ms. Default 10 000. */
  readonly timeoutMs?: number;
}

const HEALTH_TIMEOUT_MS = 10_000;

const TEXT: OcrKindOfCall<OcrTextCompletion> = {
  kind: "ocr_text",
  send: (transport, source, image, context) => transport.recognizeText({ source, image, context }),
  within: textWithin,
  describe: ({ text }) => text,
  textOf: ({ text }) => text,
};

const LAYOUT: OcrKindOfCall<OcrLayoutCompletion> = {
  kind: "ocr_layout",
  send: (transport, source, image, context) => transport.parseLayout({ source, image, context }),
  within: layoutWithin,
  describe: ({ layout: { elements, pages, droppedElements } }) =>
    layoutSummary(elements.length, pages.length, droppedElements),
  textOf: ({ layout }) => layout.elements.map(({ text, html, latex }) => text ?? html ?? latex ?? "").join("\n"),
};

/** OCR on the governed loop: each picture or document is one call (spec 06). */
export function createOcrReader(
  environment: GovernEnvironment,
  transport: OcrTransport,
  lifetime: CallLifetime,
  { maxImageBytes }: OcrConfig,
): OcrReader {
  const { config, runtime, telemetry } = environment;
  const ableFor = createOcrSources(config, telemetry !== null);

  async function read<Completion extends OcrAnswerFacts>(
    call: OcrKindOfCall<Completion>,
    input: unknown,
    options: unknown,
  ): Promise<{ completion: Completion; facts: OcrResultFacts }> {
    lifetime.enter();
    try {
      const checked = checkOptions(options, call.kind);
      const image = await readImage(input, { operation: call.kind, maxImageBytes, signal: checked.signal });
      const operation = new OcrOperation(call, ableFor(call.kind, image, checked.model), image, transport);
      const governed = await govern(environment, operation, checked);
      const { completion, costNanos } = await governed.ended;
      const { source, callId, requestId, attempts } = governed;
      return {
        completion,
        facts: {
          pageCount: completion.pageCount,
          model: source.model,
          provider: source.provider,
          sourceName: source.name,
          modelReported: completion.modelReported,
          callId,
          requestId,
          attempts,
          latencyMs: completion.latencyMs,
          usage: completion.usage ?? NO_TOKENS,
          cost: costNanos === null ? null : Number(costNanos) / NANOS_PER_UNIT,
        },
      };
    } finally {
      lifetime.leave();
    }
  }

  return {
    async recognizeText(image, options) {
      const { completion, facts } = await read(TEXT, image, options);
      return { text: completion.text, ...facts };
    },
    async parseLayout(image, options) {
      const { completion, facts } = await read(LAYOUT, image, options);
      return { ...completion.layout, ...facts };
    },
    async checkHealth(options) {
      const { signal, timeoutMs = HEALTH_TIMEOUT_MS } = options ?? {};
      if (!(typeof timeoutMs === "number" && timeoutMs > 0 && timeoutMs < Number.POSITIVE_INFINITY)) {
        throw new RequestRejectedError("timeoutMs of checkHealth must be a number above 0", { code: "bad_request" });
      }
      lifetime.enter();
      try {
        const check = async (source: SourceConfig): Promise<readonly [string, OcrHealth]> => {
          const request = { source, runtime, timeoutMs, ...(signal === undefined ? {} : { signal }) };
          return [source.name, await transport.checkHealth(request)];
        };
        return Object.fromEntries(await Promise.all(config.sources.map(check)));
      } finally {
        lifetime.leave();
      }
    },
  };
}

const NANOS_PER_UNIT = 1e9;

/** Who can read a picture; equal selections share their arrays, since the queue knows equal calls by them. */
function createOcrSources(config: ScopeConfig, describes: boolean) {
  const countsGlobal = config.global.tpm > 0;
  const selections = new Map<string, OcrSources>();
  return (kind: OcrKind, image: OcrImage, model: string | undefined): OcrSources => {
    const sources = model === undefined ? config.sources : config.sources.filter((source) => source.model === model);
    if (sources.length === 0 && model !== undefined) throw unknownModel(config, model);
    const left: [SourceConfig, Incapability][] = [];
    for (const source of sources) {
      const trouble = ocrIncapability(source, kind, image);
      if (trouble !== null) left.push([source, trouble]);
    }
    const key = [model ?? "", ...left.map(([{ name }, { text }]) => `${name} ${text}`)].join("\n");
    let selection = selections.get(key);
    if (selection === undefined) {
      const able = sources.filter((source) => left.every(([other]) => other !== source));
      selection = {
        sources: able,
        candidates: able.map(({ name }) => name),
        countsTokens: able.some(({ transport, tpm }) => transport === "vlm" && (countsGlobal || tpm > 0)),
        describes,
        left,
      };
      selections.set(key, selection);
    }
    return selection;
  };
}

const KNOWN_OPTIONS: ReadonlySet<string> = new Set<string>(["model", ...COMMON_OPTIONS]);

function checkOptions(options: unknown, operation: string): OcrCallOptions {
  const refuse = (problem: string): never => {
    throw new RequestRejectedError(problem, { code: "bad_request", operation });
  };
  if (options === undefined) return {};
  if (typeof options !== "object" || options === null || Array.isArray(options)) refuse("options must be an object");
  const given = options as OcrCallOptions;
  for (const name in given) {
    if (KNOWN_OPTIONS.has(name) || given[name as keyof OcrCallOptions] === undefined) continue;
    refuse(`unknown option ${JSON.stringify(name)}; known: ${[...KNOWN_OPTIONS].join(", ")}`);
  }
  if (given.model !== undefined && typeof given.model !== "string") refuse("model must be a text");
  const trouble = optionTrouble(given);
  return trouble === undefined ? given : refuse(trouble);
}
