import type { Thinking } from "./chat.js";
import { modelMatches } from "./model-pattern.js";
import type { ProviderProfile, ThinkingRule, WireFields } from "./profile.js";
import { showWord } from "./secret.js";

/** Translates a wish for thinking into a provider's fields, or says why it can't be met (spec 03 "Request"). */

/** Levels in their order, with about as many tokens as they stand for: what "nearest" goes by. */
const LEVEL_TOKENS: Readonly<Record<string, number>> = {
  minimal: 512,
  low: 1_024,
  medium: 8_192,
  high: 24_576,
  xhigh: 32_768,
  max: 65_536,
};

export type ThinkingPlan = { readonly fields: WireFields } | { readonly problem: string };

export interface ThinkingWish {
  readonly thinking: Thinking;
  /** Another level or budget will do, where the one asked for doesn't exist. Never on instead of off, nor off instead of on. */
  readonly nearest?: boolean;
  readonly maxTokens?: number;
}

export interface Thinker {
  readonly profile: ProviderProfile;
  readonly model: string;
}

const rules = new WeakMap<ProviderProfile, Map<string, ThinkingRule | undefined>>();

/** Profiles never change, so the rule of a model is looked up once. */
function thinkingRule({ profile, model }: Thinker): ThinkingRule | undefined {
  let known = rules.get(profile);
  if (known === undefined) {
    known = new Map();
    rules.set(profile, known);
  }
  if (!known.has(model))
    known.set(
      model,
      profile.thinking.find((rule) => modelMatches(rule.models, model)),
    );
  return known.get(model);
}

/** Pure; never throws. A problem is half a sentence for people, without the source's name. */
export function planThinking(thinker: Thinker, wish: ThinkingWish): ThinkingPlan {
  const rule = thinkingRule(thinker);
  const { profile, model } = thinker;
  if (rule === undefined) return { problem: `profile ${profile.name} knows no thinking switch for ${model}` };
  const { thinking } = wish;
  if (thinking === false) {
    return rule.off === undefined ? { problem: `${model} can't be kept from thinking` } : { fields: rule.off };
  }
  if (thinking === true) return planOn(rule, wish, model);
  return typeof thinking === "string"
    ? planLevel(rule, thinking, wish, model)
    : planBudget(rule, thinking.budgetTokens, wish, model);
}

/** Is there anything to think of for which this source must stream? */
export function mayHaveToStream(thinker: Thinker): boolean {
  return thinkingRule(thinker)?.streams !== undefined;
}

/** Must this source stream for what is asked? `undefined` = the call says nothing about thinking. */
export function mustStream(thinker: Thinker, thinking: Thinking | undefined): boolean {
  const streams = thinkingRule(thinker)?.streams;
  if (streams === undefined || thinking === false) return false;
  return streams === "unless_off" || thinking !== undefined;
}

function planOn(rule: ThinkingRule, wish: ThinkingWish, model: string): ThinkingPlan {
  if (rule.on !== undefined) return { fields: rule.on };
  const usual = rule.budget?.usual;
  return usual === undefined ? { problem: `${model} can't be made to think` } : planBudget(rule, usual, wish, model);
}

function planLevel(rule: ThinkingRule, level: string, wish: ThinkingWish, model: string): ThinkingPlan {
  const { levels = {}, budget } = rule;
  if (Object.hasOwn(levels, level)) return { fields: levels[level] ?? {} };
  const tokens = Object.hasOwn(LEVEL_TOKENS, level) ? LEVEL_TOKENS[level] : undefined;
  if (wish.nearest && tokens !== undefined) {
    const near = nearestLevel(levels, tokens);
    if (near !== undefined) return { fields: near };
    if (budget !== undefined) return planBudget(rule, tokens, wish, model);
    if (rule.on !== undefined) return { fields: rule.on };
  }
  return { problem: `thinking "${showWord(level)}" is not among what ${model} takes (${choices(rule)})` };
}

function planBudget(rule: ThinkingRule, asked: number, wish: ThinkingWish, model: string): ThinkingPlan {
  const { budget, levels = {} } = rule;
  if (budget === undefined) {
    const near = wish.nearest ? (nearestLevel(levels, asked) ?? rule.on) : undefined;
    if (near !== undefined) return { fields: near };
    return { problem: `${model} takes no thinking budget (only ${choices(rule)})` };
  }
  const below = budget.belowMaxTokens === true ? (wish.maxTokens ?? Number.POSITIVE_INFINITY) - 1 : undefined;
  const most = Math.min(budget.max ?? Number.POSITIVE_INFINITY, below ?? Number.POSITIVE_INFINITY);
  const tokens = wish.nearest ? Math.max(budget.min, Math.min(asked, most)) : asked;
  if (tokens < budget.min || tokens > most) {
    if (below !== undefined && below < budget.min) {
      return { problem: `thinking of ${model} takes at least ${budget.min} tokens, and maxTokens must be above that` };
    }
    const range = `${budget.min} to ${Number.isFinite(most) ? most : "any number"}`;
    const why = below !== undefined && most === below ? ", since it must stay below maxTokens" : "";
    return { problem: `a thinking budget of ${tokens} is outside of what ${model} takes (${range}${why})` };
  }
  return { fields: withBudget(budget.fields, tokens) };
}

function withBudget(fields: WireFields, tokens: number): WireFields {
  const filled = Object.entries(fields).map(([name, value]) => {
    if (value === "$budget") return [name, tokens];
    return [name, typeof value === "object" && value !== null ? withBudget(value as WireFields, tokens) : value];
  });
  return Object.fromEntries(filled) as WireFields;
}

function nearestLevel(levels: Readonly<Record<string, WireFields>>, tokens: number): WireFields | undefined {
  let best: WireFields | undefined;
  let bestRatio = Number.POSITIVE_INFINITY;
  for (const [level, fields] of Object.entries(levels)) {
    const size = Object.hasOwn(LEVEL_TOKENS, level) ? LEVEL_TOKENS[level]! : undefined;
    if (size === undefined) continue;
    const ratio = Math.abs(Math.log(size / tokens));
    if (ratio >= bestRatio) continue;
    best = fields;
    bestRatio = ratio;
  }
  return best;
}

/** What can be asked for, for people. */
function choices(rule: ThinkingRule): string {
  const { on, off, levels = {}, budget } = rule;
  const words = [
    ...(on !== undefined || budget?.usual !== undefined ? ["true"] : []),
    ...(off === undefined ? [] : ["false"]),
    ...Object.keys(levels).map((level) => `"${level}"`),
    ...(budget === undefined ? [] : [`a budget from ${budget.min} to ${budget.max ?? "any number of"} tokens`]),
  ];
  return words.length === 0 ? "nothing" : words.join(", ");
}
