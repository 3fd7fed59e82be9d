import assert from "node:assert/strict";
import { setImmediate as nextTurn } from "node:timers/promises";
import { OPENAI_PROFILE } from "../../../domain/profile.js";
import type { BreakerConfig, SchedulingConfig, SelectorName } from "../../../domain/scope.js";
import { Secret } from "../../../domain/secret.js";
import type { LimitConfig, SourceConfig } from "../../../domain/source.js";
import type {
  Governor,
  GovernorEvent,
  Grant,
  Outcome,
  Refusal,
  ScopeSnapshot,
  Settle,
  SourceSnapshot,
  TickBatch,
  TickReply,
  Verdict,
  Want,
} from "../../../ports/governor.js";

/** One governor under test together with the clock it decides by. */
export interface GovernorBackend {
  readonly governor: Governor;
  /** Moves the store's clock forward; resolves when the governor sees the new time. */
  advance(ms: number): Promise<void>;
  /** Milliseconds of the store's clock: the one that aligned minutes are cut by. */
  now(): number;
  close(): Promise<void>;
}

/** What a governor is built from; everything left out has the default of spec 07. */
export interface GovernorSetup {
  readonly scope: string;
  readonly sources: SourceConfig[];
  readonly global?: Partial<LimitConfig>;
  readonly breaker?: Partial<BreakerConfig>;
  readonly selector?: SelectorName;
  /** Default: nothing adaptive, so that a test sees the plain rules. */
  readonly scheduling?: Partial<SchedulingConfig>;
  readonly leaseTtlMs?: number;
}

/** Builds a governor for one test; the suite closes it. */
export type Open = (setup: Omit<GovernorSetup, "scope">) => Promise<GovernorBench>;

export interface ContractTest {
  readonly name: string;
  readonly body: (open: Open) => Promise<void>;
}

export const MINUTE_MS = 60_000;
export const DEFAULT_TTL_MS = 30_000;

/** A source without any limit; a test states only what it is about. */
export function sourceConfig(name: string, overrides: Partial<SourceConfig> = {}): SourceConfig {
  return {
    name,
    provider: "contract",
    baseUrl: "http://127.0.0.1:9/v1",
    apiKey: new Secret("none"),
    model: "contract-model",
    profile: OPENAI_PROFILE,
    transport: "openai",
    ocrReader: "auto",
    ocrPrompt: undefined,
    ocrLayoutPrompt: undefined,
    timeoutMs: 120_000,
    ttftTimeoutMs: 60_000,
    interTokenTimeoutMs: 30_000,
    estTokens: undefined,
    tpmCharge: "actual",
    contextTokens: undefined,
    stream: true,
    requireDone: false,
    transient400: "off",
    thinking: undefined,
    extraBody: {},
    headers: {},
    weight: 1,
    priority: 0,
    maxConcurrency: 0,
    rpm: 0,
    tpm: 0,
    limitRule: "smooth",
    strict: true,
    burstS: 1,
    burstTokensS: 3,
    ...overrides,
  };
}

export function isRefusal(answer: Grant | Refusal): answer is Refusal {
  return "kind" in answer;
}

export function near(actual: number, expected: number, toleranceMs: number, what: string): void {
  assert.ok(
    Math.abs(actual - expected) <= toleranceMs,
    `${what}: expected ${expected} ± ${toleranceMs}, got ${String(actual)}`,
  );
}

export function within(actual: number, low: number, high: number, what: string): void {
  assert.ok(actual >= low && actual <= high, `${what}: expected ${low}..${high}, got ${String(actual)}`);
}

/** A settle that says what its grant said; `overrides` is what the attempt taught. */
export function settleOf(grant: Grant, outcome: Outcome, overrides: Partial<Settle> = {}): Settle {
  const { leaseId, source, epoch, probe, windowId, reservedTokens } = grant;
  const facts = { leaseId, source, epoch, probe, windowId, reservedTokens };
  return { ...facts, actualTokens: null, sent: true, outcome, durationMs: 100, ...overrides };
}

export function verdictOf(grant: Grant, kind: Verdict["kind"] = "first_token"): Verdict {
  const { leaseId, source, epoch, probe } = grant;
  return { leaseId, source, epoch, probe, kind };
}

/** The verbs of spec 02 §§3–4, each sent as one tick, with lease ids and seeds made here. */
export class GovernorBench {
  readonly governor: Governor;
  /** Seed of the next tick; every tick has its own. */
  seed = 1;
  readonly #backend: GovernorBackend;
  #leases = 0;

  constructor(backend: GovernorBackend) {
    this.#backend = backend;
    this.governor = backend.governor;
  }

  now(): number {
    return this.#backend.now();
  }

  advance(ms: number): Promise<void> {
    return this.#backend.advance(ms);
  }

  /** To the start of the next aligned minute; a no-op on the boundary itself. */
  async alignToMinute(): Promise<void> {
    const past = this.now() % MINUTE_MS;
    if (past > 0) await this.advance(MINUTE_MS - past);
  }

  close(): Promise<void> {
    return this.#backend.close();
  }

  async tick(batch: Partial<TickBatch>): Promise<TickReply> {
    const seed = Math.imul(this.seed++, 0x9e3779b1) >>> 0;
    const empty = { settles: [], verdicts: [], renew: [], wants: [] };
    return await this.governor.tick({ worker: "contract:1:a", seed, ...empty, ...batch });
  }

  newWant(candidates: string | readonly string[], overrides: Partial<Want> = {}): Want {
    const id = `lease-${++this.#leases}`;
    const names = typeof candidates === "string" ? [candidates] : candidates;
    const neutral = { failedHere: [], limitedHere: [], estTokens: 100, priority: 0, waitedMs: 0 };
    return { leaseId: id, callId: `call-${id}`, candidates: names, ...neutral, ...overrides };
  }

  /** One tick with these wants; the answers in the order of the wants. */
  async ask(wants: readonly Want[]): Promise<(Grant | Refusal)[]> {
    const reply = await this.tick({ wants });
    assert.equal(reply.grants.length + reply.refusals.length, wants.length, "one answer for each want");
    return wants.map((want) => {
      const answers = [...reply.grants, ...reply.refusals].filter((answer) => answer.leaseId === want.leaseId);
      assert.ok(answers[0], `no answer for ${want.leaseId}`);
      return answers[0];
    });
  }

  async want(candidates: string | readonly string[], overrides: Partial<Want> = {}): Promise<Grant | Refusal> {
    const [answer] = await this.ask([this.newWant(candidates, overrides)]);
    assert.ok(answer);
    return answer;
  }

  async granted(candidates: string | readonly string[], overrides: Partial<Want> = {}): Promise<Grant> {
    const answer = await this.want(candidates, overrides);
    assert.ok(!isRefusal(answer), `expected a grant, got ${JSON.stringify(answer)}`);
    return answer;
  }

  async refused(candidates: string | readonly string[], overrides: Partial<Want> = {}): Promise<Refusal> {
    const answer = await this.want(candidates, overrides);
    assert.ok(isRefusal(answer), `expected a refusal, got ${JSON.stringify(answer)}`);
    if (answer.kind !== "never") {
      assert.ok(Number.isFinite(answer.waitHintMs) && answer.waitHintMs > 0, `waitHintMs: ${answer.waitHintMs}`);
    }
    return answer;
  }

  /** Wants one after the other until one is refused. */
  async fill(
    candidates: string | readonly string[],
    overrides: Partial<Want> = {},
  ): Promise<{ grants: Grant[]; refusal: Refusal }> {
    const grants: Grant[] = [];
    for (let count = 0; count < 500; count++) {
      const answer = await this.want(candidates, overrides);
      if (isRefusal(answer)) return { grants, refusal: answer };
      grants.push(answer);
    }
    throw new assert.AssertionError({ message: "500 grants and no refusal" });
  }

  async settle(grant: Grant, outcome: Outcome, overrides: Partial<Settle> = {}): Promise<boolean> {
    const { applied } = await this.tick({ settles: [settleOf(grant, outcome, overrides)] });
    assert.equal(applied.length, 1);
    return applied[0] === true;
  }

  async verdict(grant: Grant, kind: Verdict["kind"] = "first_token"): Promise<boolean> {
    const { applied } = await this.tick({ verdicts: [verdictOf(grant, kind)] });
    assert.equal(applied.length, 1);
    return applied[0] === true;
  }

  async renew(grant: Grant): Promise<boolean> {
    const { applied } = await this.tick({ renew: [grant.leaseId] });
    assert.equal(applied.length, 1);
    return applied[0] === true;
  }

  /** One attempt from want to settle. */
  async attempt(source: string, outcome: Outcome, overrides: Partial<Settle> = {}): Promise<Grant> {
    const grant = await this.granted(source);
    await this.settle(grant, outcome, overrides);
    return grant;
  }

  async attempts(source: string, outcome: Outcome, count: number): Promise<void> {
    for (let done = 0; done < count; done++) await this.attempt(source, outcome);
  }

  async snapshot(): Promise<ScopeSnapshot> {
    return await this.governor.snapshot();
  }

  async source(name: string): Promise<SourceSnapshot> {
    const found = (await this.snapshot()).sources.find((source) => source.name === name);
    assert.ok(found, `snapshot has no source ${name}`);
    return found;
  }

  async progressAgeMs(): Promise<number> {
    return await this.governor.progressAgeMs();
  }

  /** Advances until the source's open time is over; the next want may probe. */
  async waitOutOpen(source: string): Promise<void> {
    await this.advance(Math.ceil((await this.source(source)).openForMs));
  }

  /** The probe of a source whose open time is waited out first. */
  async probe(source: string): Promise<Grant> {
    await this.waitOutOpen(source);
    const grant = await this.granted(source);
    assert.equal(grant.probe, true, "the first grant after the open time is the probe");
    return grant;
  }

  /** Events seen until `enough`; a remote governor may deliver them a few turns later. */
  async eventually(events: readonly GovernorEvent[], enough: (event: GovernorEvent) => boolean): Promise<void> {
    for (let turn = 0; turn < 1_000; turn++) {
      if (events.some(enough)) return;
      await this.snapshot();
      await nextTurn();
    }
    assert.fail(`event missing; seen: ${JSON.stringify(events)}`);
  }
}
