import { didYouMean } from "../domain/did-you-mean.js";
import { OPENAI_PROFILE, type ProviderProfile } from "../domain/profile.js";
import { isPlainWord } from "../domain/secret.js";
import { isWholeProfile, profileProblems } from "./profile-shape.js";
import type { OptionReader } from "./reader.js";
import { isPlainObject } from "./values.js";

export interface ProfileContext {
  /** Known profiles by name; default: `openai` alone. */
  readonly profiles?: Readonly<Record<string, ProviderProfile>>;
  /** The profile for an address; default: always `openai`. */
  readonly profileFor?: (baseUrl: string) => ProviderProfile;
}

/** The profile of one source: by its host, by name, as it is given, or with the given fields laid over another. */
export function readProfile(
  reader: OptionReader,
  path: string,
  given: unknown,
  baseUrl: string,
  context: ProfileContext,
): ProviderProfile {
  const byHost = (baseUrl === "" ? undefined : context.profileFor?.(baseUrl)) ?? OPENAI_PROFILE;
  if (given === undefined || !reader.usable(path)) return byHost;
  if (typeof given === "string") return namedProfile(reader, path, given, context) ?? byHost;
  if (!isPlainObject(given)) return byHost;
  const problems = profileProblems(given);
  for (const { problem, remedy, place } of problems) reader.report(path, problem, remedy, place);
  const { extends: base, ...fields } = given;
  const below = typeof base === "string" ? namedProfile(reader, path, base, context, "extends") : byHost;
  if (problems.length > 0 || below === undefined) return byHost;
  if (isWholeProfile(given)) return laidOver({}, fields) as unknown as ProviderProfile;
  const whole = laidOver(below, fields) as unknown as ProviderProfile;
  if (given.unconfirmed !== undefined) return whole;
  return { ...whole, unconfirmed: whole.unconfirmed.filter((field) => !statesAll(below, given, field)) };
}

/** What the user says himself he has tried; of an object that is joined deeply, only when nothing below is left of it. */
function statesAll(below: object, given: object, field: string): boolean {
  const [said, under] = [given, below].map((owner) => (owner as Readonly<Record<string, unknown>>)[field]);
  if (said === undefined) return false;
  if (!isPlainObject(said) || !isPlainObject(under)) return true;
  return Object.keys(under).every((name) => statesAll(under, said, name));
}

function namedProfile(
  reader: OptionReader,
  path: string,
  name: string,
  { profiles = { openai: OPENAI_PROFILE } }: ProfileContext,
  place = "",
): ProviderProfile | undefined {
  const wanted = name.trim().toLowerCase();
  const all = Object.values(profiles);
  const known = all.find((profile) => profile.name === wanted || profile.aliases.includes(wanted));
  if (known !== undefined) return known;
  const meant = didYouMean(
    wanted,
    all.flatMap((profile) => [profile.name, ...profile.aliases]),
  );
  const remedy = `Known are ${all.map((profile) => profile.name).join(", ")}.`;
  const problem = `is not a known profile${name === wanted || !isPlainWord(name) ? "" : ` ("${name}")`}`;
  reader.report(path, problem, meant === undefined ? remedy : `Did you mean ${meant}? ${remedy}`, place);
  return undefined;
}

/** A copy of ours, so that nothing a caller changes later reaches a source. Objects deeply, lists as a whole. */
function laidOver(below: object, over: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const result: Record<string, unknown> = { ...below };
  for (const [name, value] of Object.entries(over)) {
    if (value === undefined) continue;
    const under = Object.hasOwn(result, name) ? result[name] : undefined;
    result[name] = isPlainObject(value) ? laidOver(isPlainObject(under) ? under : {}, value) : copied(value);
  }
  return result;
}

function copied(value: unknown): unknown {
  return typeof value === "object" && value !== null ? structuredClone(value) : value;
}
