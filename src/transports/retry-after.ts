/**
 * How long the other side asks us to wait (spec 02 §2 "Retry-After"). Pure and linear.
 * Every source of information that is negative, zero, empty, past or garbage is passed over for the next one.
 */

export type HeaderLookup = (name: string) => string | undefined;

export interface RetryAfterInput {
  readonly header: HeaderLookup;
  /** Unabridged body, or "". */
  readonly body: string;
  /** Milliseconds since 1970, to turn a moment into a length. */
  readonly wallNowMs: number;
  /** `x-ratelimit-reset-*` says something about this failure only when it was a rate limit. */
  readonly rateLimited: boolean;
}

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  millisecond: 1,
  s: 1_000,
  sec: 1_000,
  second: 1_000,
  m: 60_000,
  min: 60_000,
  minute: 60_000,
  h: 3_600_000,
  hr: 3_600_000,
  hour: 3_600_000,
  d: 86_400_000,
  day: 86_400_000,
};

const NUMBER = /^\d{1,20}(?:\.\d{0,20})?(?:e\+?\d{1,3})?$/i;
const DURATION_PART = /\s{0,4}(\d{1,12}(?:\.\d{1,12})?)\s{0,4}([a-z]{1,12})/iy;
const HTTP_DATE = /^[a-z]{3,9},? .{10,40}$/i;
const RFC_3339 = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d/i;
const BODY_DELAY = /"retryDelay"\s{0,4}:\s{0,4}"([^"]{1,24})"/i;
const BODY_WORDING =
  /\b(?:try again|retry|retrying|wait|available)\s{1,4}(?:in|after|for)?\s{0,4}(?=\d)((?:\d{1,12}(?:\.\d{1,12})?\s{0,2}[a-z]{1,12}\s{0,2}){1,6})/i;
/** Longer texts are no error messages; the bound keeps hostile bodies cheap. */
const BODY_SCAN_UNITS = 65_536;
/** Numbers above this are moments (seconds since 1970), not lengths. */
const EPOCH_SECONDS = 1_000_000_000;

function usable(ms: number): number | null {
  if (!(ms > 0)) return null;
  return Math.min(Math.ceil(ms), Number.MAX_SAFE_INTEGER);
}

/** "6m0s", "250ms", "1m2.5s", "20 seconds" → milliseconds; null when it isn't a duration from its first character on. */
export function parseDurationMs(text: string): number | null {
  let total = 0;
  let parts = 0;
  DURATION_PART.lastIndex = 0;
  for (let match = DURATION_PART.exec(text); match !== null && parts < 6; match = DURATION_PART.exec(text)) {
    const unit = match[2]!.toLowerCase();
    const unitMs = UNIT_MS[unit] ?? UNIT_MS[unit.replace(/s$/, "")];
    if (unitMs === undefined) break;
    total += Number(match[1]) * unitMs;
    parts += 1;
  }
  return parts === 0 ? null : total;
}

function momentMs(text: string, wallNowMs: number): number | null {
  if (!HTTP_DATE.test(text) && !RFC_3339.test(text)) return null;
  const moment = Date.parse(text);
  return Number.isNaN(moment) ? null : usable(moment - wallNowMs);
}

function headerMs(text: string | undefined, plainUnitMs: number, wallNowMs: number): number | null {
  const value = text?.trim().slice(0, 64);
  if (value === undefined || value === "") return null;
  if (NUMBER.test(value)) return usable(Number(value) * plainUnitMs);
  const duration = parseDurationMs(value);
  return duration === null ? momentMs(value, wallNowMs) : usable(duration);
}

/**
 * Milliseconds to the moment of a reset header, which holds a duration, plain seconds, a date, or the moment in seconds
 * or milliseconds since 1970; null when it is past or unreadable.
 */
export function parseResetMs(text: string | undefined, wallNowMs: number): number | null {
  const value = text?.trim() ?? "";
  const number = NUMBER.test(value) ? Number(value) : Number.NaN;
  if (number >= EPOCH_SECONDS * 1_000) return usable(number - wallNowMs);
  if (number >= EPOCH_SECONDS) return usable(number * 1_000 - wallNowMs);
  return headerMs(value, 1_000, wallNowMs);
}

function rateLimitHeadersMs(header: HeaderLookup, wallNowMs: number): number | null {
  let longest: number | null = null;
  for (const dimension of ["-requests", "-tokens", ""]) {
    const remaining = header(`x-ratelimit-remaining${dimension}`)?.trim();
    if (remaining !== undefined && remaining !== "" && Number(remaining) > 0) continue;
    const wait = parseResetMs(header(`x-ratelimit-reset${dimension}`), wallNowMs);
    if (wait !== null && (longest === null || wait > longest)) longest = wait;
  }
  return longest;
}

function bodyMs(body: string): number | null {
  const text = body.length > BODY_SCAN_UNITS ? body.slice(0, BODY_SCAN_UNITS) : body;
  const delay = BODY_DELAY.exec(text)?.[1];
  const fromDelay = delay === undefined ? null : parseDurationMs(delay);
  if (fromDelay !== null && usable(fromDelay) !== null) return usable(fromDelay);
  const wording = BODY_WORDING.exec(text)?.[1];
  const fromWording = wording === undefined ? null : parseDurationMs(wording);
  return fromWording === null ? null : usable(fromWording);
}

/** Milliseconds to wait, uncapped; null when the answer holds nothing usable. Never throws. */
export function parseRetryAfterMs({ header, body, wallNowMs, rateLimited }: RetryAfterInput): number | null {
  return (
    headerMs(header("retry-after-ms"), 1, wallNowMs) ??
    headerMs(header("retry-after"), 1_000, wallNowMs) ??
    (rateLimited ? rateLimitHeadersMs(header, wallNowMs) : null) ??
    bodyMs(body)
  );
}
