import { longestTextOf, patternOf } from "../../domain/model-pattern.js";
import type { ErrorRule, ProviderProfile } from "../../domain/profile.js";
import type { ErrorCode } from "../../errors.js";
import type { HeaderLookup } from "../retry-after.js";

/** What a provider's own table says about a refusal. */
interface ProfileView {
  readonly status: number;
  readonly codes: readonly string[];
  readonly subject: string;
  readonly text: string;
  readonly header: HeaderLookup;
}

function fits(rule: ErrorRule, { status, codes, subject, text, header }: ProfileView): boolean {
  if (rule.statuses !== undefined && !rule.statuses.includes(status)) return false;
  if (rule.codes !== undefined && !rule.codes.some((code) => codes.includes(code))) return false;
  if (rule.retryAfter === true && header("retry-after") === undefined && header("retry-after-ms") === undefined) {
    return false;
  }
  if (rule.words === undefined) return true;
  // Wording stands at the beginning; the bound keeps hostile bodies cheap.
  const longest = longestTextOf(rule.words);
  const pattern = patternOf(rule.words);
  return pattern.test(subject.slice(0, longest)) || pattern.test(text.slice(0, longest));
}

/** Our code by the profile; undefined = it says nothing about this refusal. */
export function profileCode(profile: ProviderProfile, view: ProfileView): ErrorCode | undefined {
  for (const rule of profile.errorRules) if (fits(rule, view)) return rule.becomes;
  const known = view.codes.find((code) => Object.hasOwn(profile.errorCodes, code));
  return known === undefined ? undefined : profile.errorCodes[known];
}

const MOMENT = /(\d{4})[-/年](\d{1,2})[-/月](\d{1,2})日?[ T]{1,3}(\d{1,2}):(\d\d)(?::(\d\d))?/;

/** Milliseconds until the moment that an error text names, by the provider's clock; null = none, or it has passed. */
export function resetMomentMs({ resetClock }: ProviderProfile, subject: string, wallNowMs: number): number | null {
  const match = resetClock === undefined ? null : MOMENT.exec(subject);
  if (match === null) return null;
  const [, year, month = "", day = "", hour = "", minute, second = "00"] = match;
  const two = (digits: string): string => digits.padStart(2, "0");
  const moment = Date.parse(`${year}-${two(month)}-${two(day)}T${two(hour)}:${minute}:${second}${resetClock}`);
  return moment > wallNowMs ? moment - wallNowMs : null;
}
