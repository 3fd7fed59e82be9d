import type { UpstreamLimits } from "../domain/upstream-limits.js";
import type { Runtime } from "../ports/runtime.js";
import { parseResetMs } from "./retry-after.js";

/**
 * What an answer's headers say of the account's limits (spec 10 §3). Runs with every answer: one pass over the names, and
 * nothing is made where no header is of this kind.
 */

const NAME = 0;
const VALUE = 1;

/** Where a header's text is kept: three for requests, three for tokens, three of the form that names neither. */
const REQUESTS = 0;
const TOKENS = 3;
const PLAIN = 6;
const LIMIT = 0;
const REMAINING = 1;
const RESET = 2;

const SLOTS: ReadonlyMap<string, number> = new Map(
  [REQUESTS, TOKENS, PLAIN].flatMap((owner) => {
    const dimension = owner === REQUESTS ? "requests" : "tokens";
    return ["limit", "remaining", "reset"].flatMap((fact, kind): [string, number][] =>
      owner === PLAIN
        ? [[`x-ratelimit-${fact}`, owner + kind]]
        : [
            [`x-ratelimit-${fact}-${dimension}`, owner + kind],
            [`anthropic-ratelimit-${dimension}-${fact}`, owner + kind],
          ],
    );
  }),
);

const LENGTHS = [...SLOTS.keys()].map(({ length }) => length);
const SHORTEST = Math.min(...LENGTHS);
const LONGEST = Math.max(...LENGTHS);
const LOWER_CASE = 0x20;
/** The first letters of "ratelimit", and where they stand. */
const LETTER_R = 0x72;
const LETTER_A = 0x61;
const AFTER_X = "x-".length;
const AFTER_ANTHROPIC = "anthropic-".length;

const PLAIN_NUMBER = /^\d{1,18}(?:\.\d{1,18})?$/;
/** No rounding and no clock that is wrong by a little makes a minute this long. */
const MORE_THAN_A_MINUTE_MS = 90_000;
/** Nor does a bucket that is in debt. */
const NEVER_A_MINUTE_MS = 600_000;
/** Less than this share of the limit left: the reset may be that of a debt. */
const NEARLY_NONE = 0.02;

type Texts = (string | undefined)[];
type Found = { -readonly [K in keyof UpstreamLimits]: UpstreamLimits[K] };

/** `raw`: name, value, name, value…; undefined = nothing usable was said. Never throws. */
export function readUpstreamLimits(
  raw: readonly Buffer[],
  runtime: Pick<Runtime, "wallNow">,
): UpstreamLimits | undefined {
  let texts: Texts | undefined;
  for (let at = 0; at + VALUE < raw.length; at += 2) {
    const name = raw[at + NAME]!;
    if (!mayBeRateLimit(name)) continue;
    const slot = SLOTS.get(name.toString("latin1").toLowerCase());
    if (slot === undefined) continue;
    texts ??= [];
    texts[slot] ??= raw[at + VALUE]!.toString("latin1").trim();
  }
  return texts === undefined ? undefined : limitsIn(texts, runtime.wallNow());
}

/** Told by length and two letters, before a text is made of the name. */
function mayBeRateLimit(name: Buffer): boolean {
  const { length } = name;
  if (length < SHORTEST || length > LONGEST) return false;
  return hasLettersAt(name, AFTER_X) || hasLettersAt(name, AFTER_ANTHROPIC);
}

function hasLettersAt(name: Buffer, at: number): boolean {
  return (name[at]! | LOWER_CASE) === LETTER_R && (name[at + 1]! | LOWER_CASE) === LETTER_A;
}

function limitsIn(texts: Texts, wallNowMs: number): UpstreamLimits | undefined {
  const found: Found = {};
  const named = numberAt(texts, REQUESTS, LIMIT) ?? numberAt(texts, REQUESTS, REMAINING);
  const requests = named === undefined ? PLAIN : REQUESTS;
  if (hasAllowance(texts, requests)) {
    const limit = limitOfMinute(texts, requests, wallNowMs);
    const remaining = numberAt(texts, requests, REMAINING);
    if (limit !== undefined) found.limitRequests = limit;
    if (remaining !== undefined) found.remainingRequests = remaining;
  }
  if (hasAllowance(texts, TOKENS)) {
    const limit = limitOfMinute(texts, TOKENS, wallNowMs);
    const remaining = numberAt(texts, TOKENS, REMAINING);
    if (limit !== undefined) found.limitTokens = limit;
    if (remaining !== undefined) found.remainingTokens = remaining;
  }
  return Object.keys(found).length === 0 ? undefined : found;
}

/** A limit of 0 on an account that answers is none: with it the remainder says nothing either. */
function hasAllowance(texts: Texts, owner: number): boolean {
  return numberAt(texts, owner, LIMIT) !== 0;
}

function numberAt(texts: Texts, owner: number, kind: number): number | undefined {
  const text = texts[owner + kind];
  return text !== undefined && PLAIN_NUMBER.test(text) ? Number(text) : undefined;
}

/** Some providers count requests by the hour or the day under the same name: only the time to the reset tells. */
function limitOfMinute(texts: Texts, owner: number, wallNowMs: number): number | undefined {
  const limit = numberAt(texts, owner, LIMIT);
  const resetMs = limit === undefined ? null : parseResetMs(texts[owner + RESET], wallNowMs);
  if (limit === undefined || resetMs === null || resetMs <= MORE_THAN_A_MINUTE_MS) return limit;
  const remaining = numberAt(texts, owner, REMAINING);
  const mayBeDebt = remaining !== undefined && remaining <= NEARLY_NONE * limit && resetMs <= NEVER_A_MINUTE_MS;
  return mayBeDebt ? limit : undefined;
}
