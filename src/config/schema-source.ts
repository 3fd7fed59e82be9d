import { OCR_READERS, OCR_TRANSPORTS } from "../domain/ocr.js";
import { Secret } from "../domain/secret.js";
import { type LimitConfig, NO_LIMITS, type SourceConfig } from "../domain/source.js";
import { choice, duration, type Fields, flag, integer, number, optional } from "./field.js";

/** The settings of one source, and of limits anywhere (spec 07); see schema.ts. */
export const LIMIT_FIELDS: Fields<LimitConfig> = {
  maxConcurrency: integer("MAX_CONCURRENCY", NO_LIMITS.maxConcurrency, "Calls in flight at once; 0 = no limit"),
  rpm: integer("RPM", NO_LIMITS.rpm, "Requests per minute; 0 = no limit"),
  tpm: integer("TPM", NO_LIMITS.tpm, "Tokens per minute; 0 = no limit"),
  limitRule: choice(
    "LIMIT_RULE",
    ["smooth", "window"],
    NO_LIMITS.limitRule,
    "smooth: paced; window: counted per aligned minute",
  ),
  strict: flag(
    "STRICT",
    NO_LIMITS.strict,
    "With smooth: no 60 s ever holds more than the limit; off allows short bursts on top",
  ),
  burstS: number("BURST_S", NO_LIMITS.burstS, "Seconds of the request rate allowed at once; only when STRICT is off", {
    max: 60,
    unit: "seconds",
  }),
  burstTokensS: number(
    "BURST_TOKENS_S",
    NO_LIMITS.burstTokensS,
    "Seconds of the token rate allowed at once; only when STRICT is off",
    {
      max: 60,
      unit: "seconds",
    },
  ),
};

/** As they are written: a profile by its name, or as fields that are laid over one. */
type SourceSettings = Omit<SourceConfig, "profile"> & { readonly profile: unknown; readonly disabled: boolean };

export const SOURCE_FIELDS: Fields<SourceSettings> = {
  name: { kind: "name", required: true, fallback: "", text: "Unique name of the source" },
  provider: { kind: "name", fallback: "", text: "Who serves it; default: the name without its trailing number" },
  baseUrl: {
    kind: "url",
    env: "BASE_URL",
    required: true,
    fallback: "",
    text: "Address of the API up to `/v1`, to which `/chat/completions` is appended; of an OCR server its root",
  },
  apiKey: {
    kind: "secret",
    env: "API_KEY",
    required: true,
    secret: true,
    fallback: new Secret(""),
    text: "Credential; `none` = no Authorization header",
  },
  model: { kind: "text", env: "MODEL", required: true, fallback: "", text: "Model name as the provider knows it" },
  profile: {
    kind: "profile",
    env: "PROFILE",
    fallback: "",
    defaultText: "by host",
    text: "Dialect of the provider, and corrections of it",
  },
  transport: choice(
    "TRANSPORT",
    ["openai", ...OCR_TRANSPORTS],
    "openai",
    "Wire protocol: openai for chat and embeddings, the others for OCR (`vlm` = a chat model that is shown the picture)",
  ),
  ocrReader: choice(
    "OCR_READER",
    OCR_READERS,
    "auto",
    "How a `vlm` source is asked and its answer read; auto: by the name of the model",
  ),
  ocrPrompt: optional<string>(
    { kind: "prompt", env: "OCR_PROMPT", fallback: "", text: "What a `vlm` source is asked for the text of a page" },
    "by the reader",
  ),
  ocrLayoutPrompt: optional<string>(
    {
      kind: "prompt",
      env: "OCR_LAYOUT_PROMPT",
      fallback: "",
      text: "What a `vlm` source is asked for a layout; the form of the answer must be the reader's",
    },
    "by the reader",
  ),
  timeoutMs: duration("TIMEOUT_S", 120_000, "Longest attempt", { above: 0 }),
  ttftTimeoutMs: duration("TTFT_TIMEOUT_S", 60_000, "Longest wait for the first token; at most TIMEOUT_S", {
    above: 0,
    defaultText: "60, or TIMEOUT_S when lower",
  }),
  interTokenTimeoutMs: duration("INTER_TOKEN_TIMEOUT_S", 30_000, "Longest silence between tokens; at most TIMEOUT_S", {
    above: 0,
    defaultText: "30, or TIMEOUT_S when lower",
  }),
  ...LIMIT_FIELDS,
  estTokens: optional(
    integer("EST_TOKENS", 0, "Tokens reserved per call; at most TPM", { min: 1 }),
    "estimated from the prompt",
  ),
  tpmCharge: choice("TPM_CHARGE", ["actual", "max"], "actual", "max: the provider charges max_tokens at admission"),
  contextTokens: optional(
    integer("CONTEXT_TOKENS", 0, "Context length of the model; a call that overflows another model may come here", {
      min: 1,
    }),
    "unknown",
  ),
  stream: flag("STREAM", true, "Ask the provider to stream, so that a hang is noticed early"),
  requireDone: flag("REQUIRE_DONE", false, "A stream without `[DONE]` counts as cut even after a finish_reason"),
  transient400: {
    kind: "transient400",
    env: "TRANSIENT_400",
    fallback: "off",
    text: "When a 400 is the service's own hiccup: never, by built-in wording, or by your pattern",
  },
  thinking: {
    kind: "thinking",
    env: "THINKING",
    fallback: undefined,
    defaultText: "–",
    text: "Thinking of calls that don't say; translated by the profile, and refused where it can't be",
  },
  extraBody: {
    kind: "object",
    env: "EXTRA_BODY",
    fallback: {},
    defaultText: "–",
    text: "Further fields of every request body; the call's own fields win",
  },
  headers: {
    kind: "headers",
    env: "HEADERS",
    fallback: {},
    secret: true,
    defaultText: "–",
    text: "Further HTTP headers",
  },
  weight: number("WEIGHT", 1, "Share of the load among sources of one priority", { min: 0.001, max: 1_000 }),
  priority: integer("PRIORITY", 0, "Lower goes first; the next is used only when no lower one has a free slot", {
    min: -1_000,
    max: 1_000,
  }),
  disabled: flag("DISABLED", false, "Leaves the source out without deleting it"),
};
