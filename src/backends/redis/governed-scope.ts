import { priceFactors } from "../../domain/price-factors.js";
import {
  BREAKER_DEFAULTS,
  type BreakerConfig,
  REMOTE_PREFETCH_MS,
  SCHEDULING_DEFAULTS,
  type SchedulingConfig,
  type SelectorName,
} from "../../domain/scope.js";
import { type LimitConfig, NO_LIMITS, type SourceConfig } from "../../domain/source.js";
import { setupText } from "./governor-messages.js";

/** What a scope is governed by; absent settings have their defaults. */
export interface GovernedSettings {
  readonly sources: readonly SourceConfig[];
  readonly global?: Partial<LimitConfig> | undefined;
  readonly breaker?: Partial<BreakerConfig> | undefined;
  readonly selector?: SelectorName | undefined;
  readonly leaseTtlMs?: number | undefined;
  readonly scheduling?: Partial<SchedulingConfig> | undefined;
  readonly prices?: Readonly<Record<string, number>> | undefined;
}

/** The same as the script gets it. */
export interface GovernedScope {
  readonly sources: readonly SourceConfig[];
  readonly names: ReadonlyMap<string, SourceConfig>;
  readonly global: LimitConfig;
  readonly setup: string;
}

const DEFAULT_LEASE_TTL_MS = 30_000;
/** Of a source that was put together by hand: a rule must not meet what is not there. */
const SOURCE_DEFAULTS = { ...NO_LIMITS, weight: 1, priority: 0, tpmCharge: "actual", ttftTimeoutMs: 0 } as const;

export function governedScope(settings: GovernedSettings): GovernedScope {
  const { scheduling, prices } = settings;
  const sources = settings.sources.map((source) => ({ ...SOURCE_DEFAULTS, ...source }));
  const global = { ...NO_LIMITS, ...settings.global };
  const setup = setupText({
    sources,
    global,
    breaker: { ...BREAKER_DEFAULTS, ...settings.breaker },
    selector: settings.selector ?? "health_aware",
    scheduling: { ...SCHEDULING_DEFAULTS, prefetchMs: REMOTE_PREFETCH_MS, ...scheduling },
    priceFactors: priceFactors(sources, prices, scheduling?.priceWeight),
    leaseTtlMs: settings.leaseTtlMs ?? DEFAULT_LEASE_TTL_MS,
  });
  return { sources, names: new Map(sources.map((source) => [source.name, source])), global, setup };
}
