import type { ScopeConfig } from "../domain/scope.js";
import type { LimitConfig, SourceConfig } from "../domain/source.js";
import { planThinking } from "../domain/thinking.js";
import { namesThinking } from "../domain/vendor-thinking.js";
import type { ConfigProblem } from "../errors.js";
import type { Labels } from "./labels.js";

/** Something a person should know about a configuration that is valid all the same. */
export interface ConfigNote {
  readonly key: string;
  /** `warning`: probably not what was meant. */
  readonly level: "note" | "warning";
  readonly text: string;
}

export interface Subject {
  readonly config: ScopeConfig;
  /** Position of each source of `config.sources` in what the user wrote. */
  readonly positions: readonly number[];
  readonly labels: Labels;
  /** false = this value is already reported as broken: no conclusions from it. */
  readonly usable: (path: string) => boolean;
  /** Somebody knows what tokens cost. */
  readonly hasPrices: boolean;
}

interface Operand {
  readonly path: string;
  readonly value: number;
}

/** Rules between two settings (spec 07 "Invariants"), the same for code, environment and files. */
export function violations(subject: Subject): ConfigProblem[] {
  return [...sourceRules(subject), ...scopeRules(subject)];
}

function sourceRules(subject: Subject): ConfigProblem[] {
  return subject.config.sources.flatMap((source, index) => {
    const path = (option: string): string => `sources[${subject.positions[index]}].${option}`;
    const timeout = { path: path("timeoutMs"), value: source.timeoutMs };
    return [
      ...atMost(subject, { path: path("ttftTimeoutMs"), value: source.ttftTimeoutMs }, timeout),
      ...atMost(subject, { path: path("interTokenTimeoutMs"), value: source.interTokenTimeoutMs }, timeout),
      ...reservationRules(subject, source, path),
      ...leaseRules(subject, timeout),
      ...thinkingRules(subject, source, path),
    ];
  });
}

/** A reservation above a token limit would be refused for ever. */
function reservationRules(subject: Subject, source: SourceConfig, path: (option: string) => string): ConfigProblem[] {
  if (source.estTokens === undefined) return [];
  const reserved = { path: path("estTokens"), value: source.estTokens };
  const limits: Operand[] = [
    { path: path("tpm"), value: source.tpm },
    { path: "global.tpm", value: subject.config.global.tpm },
  ];
  return limits.filter((limit) => limit.value > 0).flatMap((limit) => atMost(subject, reserved, limit));
}

/** Without renewal a lease must outlive the longest attempt, else its permit returns while it still runs. */
function leaseRules(subject: Subject, timeout: Operand): ConfigProblem[] {
  const { config, labels } = subject;
  if (config.leaseRenewal || !subject.usable("leaseRenewal")) return [];
  const ttl = { path: "leaseTtlMs", value: config.leaseTtlMs };
  const renewal = `${labels.key("leaseRenewal")} = ${labels.value("leaseRenewal", false)}`;
  return atMost(subject, timeout, ttl, `Or switch renewal on (now ${renewal}).`);
}

/** A default that the source's profile can't translate would refuse every call. */
function thinkingRules(subject: Subject, source: SourceConfig, path: (option: string) => string): ConfigProblem[] {
  const { labels, usable } = subject;
  const { thinking } = source;
  const wanted = ["thinking", "profile", "model"].map(path);
  if (thinking === undefined || !wanted.every((option) => usable(option))) return [];
  const plan = planThinking(source, { thinking });
  if ("fields" in plan) return [];
  const value = labels.given(path("thinking"));
  return [
    {
      key: labels.key(path("thinking")),
      ...(value === undefined ? {} : { value }),
      problem: `can't be done: ${plan.problem}`,
      remedy: `Take something else, or correct "thinking" of the profile in ${labels.key(path("profile"))} (docs/providers.md).`,
    },
  ];
}

function scopeRules(subject: Subject): ConfigProblem[] {
  const { config } = subject;
  const stallWindow = { path: "backpressure.stallWindowMs", value: config.backpressure.stallWindowMs };
  const firstTokens = config.sources.map((source, index) => ({
    path: `sources[${subject.positions[index]}].ttftTimeoutMs`,
    value: source.ttftTimeoutMs,
  }));
  return [
    ...firstTokens.flatMap((ttft) => atMost(subject, ttft, stallWindow)),
    ...atMost(
      subject,
      { path: "retry.backoffBaseMs", value: config.retry.backoffBaseMs },
      { path: "retry.backoffMaxMs", value: config.retry.backoffMaxMs },
    ),
    ...uniqueNames(subject),
  ];
}

function atMost(subject: Subject, low: Operand, high: Operand, further = ""): ConfigProblem[] {
  const { labels, usable } = subject;
  if (low.value <= high.value || !usable(low.path) || !usable(high.path)) return [];
  const lowKey = labels.key(low.path);
  const highKey = labels.key(high.path);
  return [
    {
      key: lowKey,
      value: labels.value(low.path, low.value),
      problem: `is above ${highKey} = ${labels.value(high.path, high.value)}`,
      remedy: `Lower ${lowKey} or raise ${highKey}.${further === "" ? "" : ` ${further}`}`,
    },
  ];
}

function uniqueNames(subject: Subject): ConfigProblem[] {
  const first = new Map<string, number>();
  return subject.config.sources.flatMap(({ name }, index) => {
    const path = (at: number): string => `sources[${subject.positions[at]}].name`;
    const earlier = first.get(name);
    if (earlier === undefined) first.set(name, index);
    if (earlier === undefined || name === "" || !subject.usable(path(index))) return [];
    const { labels } = subject;
    return [
      {
        key: labels.key(path(index)),
        value: name,
        problem: `is already the name of ${labels.key(path(earlier))} = ${name}`,
        remedy: "Give each source of a scope a name of its own.",
      },
    ];
  });
}

const SHARED_LIMITS = ["maxConcurrency", "rpm", "tpm"] as const;

/** Valid, but probably not meant. */
export function warnings(subject: Subject): ConfigNote[] {
  const { config, labels, positions, usable } = subject;
  const notes = config.sources.flatMap((source, index) =>
    SHARED_LIMITS.flatMap((limit): ConfigNote[] => {
      const path = `sources[${positions[index]}].${limit}`;
      const globalPath = `global.${limit}`;
      const global = config.global[limit];
      if (global === 0 || source[limit] <= global || !usable(path) || !usable(globalPath)) return [];
      const text = `is above ${labels.key(globalPath)} = ${labels.value(globalPath, global)}, so it can never be used up`;
      return [{ key: labels.key(path), level: "warning", text: `${labels.value(path, source[limit])} ${text}` }];
    }),
  );
  return [
    ...notes,
    ...config.sources.flatMap((source, index) => thinkingNotes(subject, source, index)),
    ...idleSettings(subject),
  ];
}

function thinkingNotes({ labels, positions, usable }: Subject, source: SourceConfig, index: number): ConfigNote[] {
  const path = (option: string): string => `sources[${positions[index]}].${option}`;
  const { thinking, profile } = source;
  if (thinking === undefined || !usable(path("thinking")) || !usable(path("profile"))) return [];
  const key = labels.key(path("thinking"));
  if (namesThinking(source.extraBody)) {
    const extra = labels.key(path("extraBody"));
    return [{ key, level: "warning", text: `is overruled by the provider's own thinking fields in ${extra}` }];
  }
  if (!profile.unconfirmed.includes("thinking")) return [];
  const text = `how profile ${profile.name} asks for it is not confirmed for every model; try it (docs/providers.md)`;
  return [{ key, level: "note", text }];
}

function idleSettings(subject: Subject): ConfigNote[] {
  const { config, labels } = subject;
  const { cooldownMs, cooldownMaxMs } = config.breaker;
  const notes: ConfigNote[] = [];
  if (cooldownMs > cooldownMaxMs && subject.usable("breaker.cooldownMs") && subject.usable("breaker.cooldownMaxMs")) {
    const max = `${labels.key("breaker.cooldownMaxMs")} = ${labels.value("breaker.cooldownMaxMs", cooldownMaxMs)}`;
    notes.push({
      key: labels.key("breaker.cooldownMs"),
      level: "warning",
      text: `${labels.value("breaker.cooldownMs", cooldownMs)} is above ${max}, which wins`,
    });
  }
  return [...notes, ...priceNotes(subject)];
}

function priceNotes({ config, labels, usable, hasPrices }: Subject): ConfigNote[] {
  const path = "scheduling.priceWeight";
  const { priceWeight } = config.scheduling;
  if (hasPrices || priceWeight === 0 || !usable(path)) return [];
  const text = `${labels.value(path, priceWeight)} has no effect without a price table: name one in PGW_PRICING_PATH, or in code as pricing`;
  return [{ key: labels.key(path), level: "warning", text }];
}

/** Valid for embeddings too, but probably not meant. */
export function embeddingWarnings({ config, labels, positions }: Subject, batchSize: number): ConfigNote[] {
  const notes = config.sources.flatMap((source, index): ConfigNote[] => {
    const { embeddingBatchMax, name } = source.profile;
    const found: ConfigNote[] = [];
    if (embeddingBatchMax !== undefined && batchSize > embeddingBatchMax) {
      const text = `${labels.value("batchSize", batchSize)} is more than ${source.name} takes in one request: ${embeddingBatchMax} by its profile ${name}`;
      found.push({ key: labels.key("batchSize"), level: "warning", text });
    }
    if (Object.keys(source.extraBody).length > 0) {
      const key = labels.key(`sources[${positions[index]}].extraBody`);
      found.push({ key, level: "warning", text: "is not sent with embeddings: it applies to chat alone" });
    }
    return found;
  });
  const models = new Set(config.sources.map(({ model }) => model));
  if (models.size < 2) return notes;
  const text = `the sources have different models (${[...models].join(", ")}), whose vectors can't be compared with each other`;
  return [...notes, { key: config.scope, level: "warning", text }];
}

const LIMIT_KEYS = ["maxConcurrency", "rpm", "tpm", "limitRule", "strict", "burstS", "burstTokensS"] as const;

/** true = two clients may share one governor as far as these limits go. */
export function sameLimits(a: LimitConfig, b: LimitConfig): boolean {
  return LIMIT_KEYS.every((key) => a[key] === b[key]);
}

/**
 * What keeps two configurations from sharing one governor in a process: the same source, or the scope as a whole,
 * with other limits (spec 02 §3). Empty = they may share.
 */
export function limitConflicts(mine: ScopeConfig, governors: ScopeConfig): ConfigProblem[] {
  const theirs = new Map(governors.sources.map((source) => [source.name, source]));
  const pairs: [string, LimitConfig, LimitConfig | undefined][] = [
    ["global", mine.global, governors.global],
    ...mine.sources.map((source): [string, LimitConfig, LimitConfig | undefined] => [
      `source ${source.name}`,
      source,
      theirs.get(source.name),
    ]),
  ];
  return pairs.flatMap(([owner, given, other]) =>
    other === undefined || sameLimits(given, other)
      ? []
      : LIMIT_KEYS.filter((key) => given[key] !== other[key]).map((key) => ({
          key: `${owner}: ${key}`,
          value: String(given[key]),
          problem: `the shared governor counts with ${String(other[key])}`,
          remedy: "Give clients that share a governor the same limits.",
        })),
  );
}
