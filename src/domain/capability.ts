import type { ChatMessage, Sampling, Thinking, ThinkingFallback } from "./chat.js";
import { modelMatches } from "./model-pattern.js";
import type { Modality, ParameterRule } from "./profile.js";
import type { SourceConfig } from "./source.js";
import { planThinking } from "./thinking.js";
import { thinkingOf } from "./vendor-thinking.js";

/** Why a source can't do a call as it is asked for. */
export interface Incapability {
  readonly code: "unsupported_param" | "unsupported_modality";
  readonly param: string;
  /** Half a sentence for people, without the source's name. */
  readonly text: string;
}

export interface CapabilityWish {
  readonly messages: readonly ChatMessage[];
  readonly sampling?: Sampling;
  readonly thinking?: Thinking;
  readonly thinkingFallback?: ThinkingFallback;
  readonly extraBody?: Readonly<Record<string, unknown>>;
}

const MODALITY_OF: Readonly<Record<string, Modality>> = {
  image_url: "image",
  image: "image",
  input_image: "image",
  input_audio: "audio",
  audio_url: "audio",
  file: "file",
};

/** Does this source's profile say anything about parameters, or it itself about thinking, that a call could run against? */
export function isParticular(source: SourceConfig): boolean {
  return source.thinking !== undefined || limitsOf(source).length > 0;
}

const limits = new WeakMap<SourceConfig, readonly ParameterRule[]>();

/** The rules that limit parameters of its model; a source never changes, so they are looked up once. */
function limitsOf(source: SourceConfig): readonly ParameterRule[] {
  let own = limits.get(source);
  if (own === undefined) {
    own = source.profile.parameters.filter(
      (rule) => (rule.refused ?? rule.only ?? rule.most) !== undefined && modelMatches(rule.models, source.model),
    );
    limits.set(source, own);
  }
  return own;
}

/** null = as far as its profile knows, this source can do it. Pure; never throws. */
export function incapability(source: SourceConfig, wish: CapabilityWish): Incapability | null {
  return thinkingTrouble(source, wish) ?? parameterTrouble(source, wish) ?? modalityTrouble(source, wish.messages);
}

function thinkingTrouble(source: SourceConfig, wish: CapabilityWish): Incapability | null {
  const thinking = thinkingOf(wish, source);
  if (thinking === undefined) return null;
  const { maxTokens } = wish.sampling ?? {};
  const plan = planThinking(source, {
    thinking,
    nearest: wish.thinkingFallback === "nearest",
    ...(maxTokens === undefined ? {} : { maxTokens }),
  });
  return "problem" in plan ? { code: "unsupported_param", param: "thinking", text: plan.problem } : null;
}

function parameterTrouble(source: SourceConfig, wish: CapabilityWish): Incapability | null {
  const { sampling } = wish;
  if (sampling === undefined) return null;
  const thinks = (thinkingOf(wish, source) ?? false) !== false;
  for (const rule of limitsOf(source)) {
    if (rule.when === "thinking" && !thinks) continue;
    for (const name in sampling) {
      const text = ruleTrouble(rule, name as keyof Sampling, sampling[name as keyof Sampling], source.model);
      if (text !== null) return { code: "unsupported_param", param: name, text };
    }
  }
  return null;
}

function ruleTrouble(rule: ParameterRule, name: keyof Sampling, value: unknown, model: string): string | null {
  if (value === undefined) return null;
  const while_ = rule.when === "thinking" ? " while it thinks" : "";
  if (rule.refused?.includes(name)) return `${model} refuses ${name}${while_}`;
  const only = rule.only?.[name];
  if (only !== undefined && value !== only) return `${model} takes only ${only} for ${name}${while_}`;
  const most = rule.most?.[name];
  const size = Array.isArray(value) ? value.length : typeof value === "number" ? value : 0;
  if (most === undefined || size <= most) return null;
  return `${model} takes at most ${most} for ${name}`;
}

function modalityTrouble(source: SourceConfig, messages: readonly ChatMessage[]): Incapability | null {
  const { modalities } = source.profile;
  if (modalities === undefined) return null;
  for (const { content } of messages) {
    if (!Array.isArray(content)) continue;
    for (const part of content as readonly { readonly type?: unknown }[]) {
      const type = String(part.type);
      const modality = Object.hasOwn(MODALITY_OF, type) ? MODALITY_OF[type] : undefined;
      if (modality === undefined || modalities.includes(modality)) continue;
      return { code: "unsupported_modality", param: "messages", text: `${source.model} takes no ${modality} parts` };
    }
  }
  return null;
}
