import type { Thinking } from "./chat.js";
import type { OcrReaderName } from "./ocr.js";
import type { ProviderProfile } from "./profile.js";
import type { Secret } from "./secret.js";

/** How a limit per minute is enforced (spec 02 §3): paced in any 60 s, or counted per aligned minute. */
export type LimitRule = "smooth" | "window";

/** Limits of one source, or of the whole scope. 0 = that gate is off. */
export interface LimitConfig {
  readonly maxConcurrency: number;
  /** Requests per minute. */
  readonly rpm: number;
  /** Tokens per minute. */
  readonly tpm: number;
  readonly limitRule: LimitRule;
  /** With `smooth`: no 60 s window ever exceeds the limit. Off: short bursts are allowed on top. */
  readonly strict: boolean;
  /** Seconds of the request rate allowed as a burst; only when `strict` is off. */
  readonly burstS: number;
  /** Seconds of the token rate allowed as a burst; only when `strict` is off. */
  readonly burstTokensS: number;
}

/** When a 400 is about the service rather than the request: never, by built-in wording, or by a pattern on the unabridged body. */
export type Transient400 = "off" | "relay" | RegExp;

/** One endpoint + credential + model, every default filled in. */
export interface SourceConfig extends LimitConfig {
  readonly name: string;
  readonly provider: string;
  /** Without a trailing slash. */
  readonly baseUrl: string;
  /** `none` = no Authorization header. */
  readonly apiKey: Secret;
  readonly model: string;
  /** This provider's dialect. */
  readonly profile: ProviderProfile;
  readonly transport: string;
  /** Of a source with transport `vlm`. */
  readonly ocrReader: OcrReaderName;
  /** Asked in place of the reader's own words; undefined = those. */
  readonly ocrPrompt: string | undefined;
  readonly ocrLayoutPrompt: string | undefined;
  readonly timeoutMs: number;
  readonly ttftTimeoutMs: number;
  readonly interTokenTimeoutMs: number;
  /** Reserved tokens a call; undefined = estimated from the prompt. Only a reservation: never usage, cost or telemetry. */
  readonly estTokens: number | undefined;
  /** `max`: the provider charges max_tokens at admission, so nothing is refunded. */
  readonly tpmCharge: "actual" | "max";
  readonly contextTokens: number | undefined;
  readonly stream: boolean;
  /** A stream without `[DONE]` counts as cut, even with a finish_reason. */
  readonly requireDone: boolean;
  readonly transient400: Transient400;
  /** For calls that don't say; undefined = nothing is sent. */
  readonly thinking: Thinking | undefined;
  readonly extraBody: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly weight: number;
  /** Lower goes first; a higher tier is used only when no lower one has a free slot. */
  readonly priority: number;
}

/** The defaults of spec 07: no limit. */
export const NO_LIMITS: LimitConfig = {
  maxConcurrency: 0,
  rpm: 0,
  tpm: 0,
  limitRule: "smooth",
  strict: true,
  burstS: 1,
  burstTokensS: 3,
};
