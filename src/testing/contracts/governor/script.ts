import type { LimitConfig, SourceConfig } from "../../../domain/source.js";
import type { Grant, Outcome, Settle, TickBatch, TickReply, Want } from "../../../ports/governor.js";
import { type GovernorBench, type GovernorSetup, settleOf, sourceConfig, verdictOf } from "./bench.js";
import { GovernorModel } from "./model.js";

/** Sources are meant by index, leases by position modulo what is there: any numbers make a valid script. */
export interface WantStep {
  readonly candidates: number;
  readonly failedHere: number;
  readonly limitedHere: number;
  readonly ordered: boolean;
  readonly estTokens: number;
}

export interface SettleStep {
  readonly pick: number;
  readonly outcome: Outcome;
  readonly sent: boolean;
  /** Share of the reservation that was used; null = no correction. Above 100 it overfills. */
  readonly actualPercent: number | null;
  readonly rateLimited: boolean;
  readonly retryAfterMs: number | undefined;
}

export type Step =
  | {
      readonly type: "tick";
      readonly wants: readonly WantStep[];
      readonly settles: readonly SettleStep[];
      readonly renew: number;
      readonly firstToken: number | null;
    }
  | { readonly type: "settle_again"; readonly pick: number }
  | { readonly type: "ask_again"; readonly pick: number }
  | { readonly type: "advance"; readonly ms: number }
  | { readonly type: "advance_to_hint" };

export interface Script {
  readonly sources: readonly Partial<SourceConfig>[];
  readonly global: Partial<LimitConfig>;
  readonly failThreshold: number;
  readonly cooldownMs: number;
  readonly selector: "least_inflight" | "round_robin";
  readonly leaseTtlMs: number;
  readonly steps: readonly Step[];
}

export function setupOf(script: Script): Omit<GovernorSetup, "scope"> {
  const { failThreshold, cooldownMs, selector, leaseTtlMs, global } = script;
  const sources = script.sources.map((source, index) => sourceConfig(`s${index}`, source));
  return { sources, global, selector, leaseTtlMs, breaker: { failThreshold, cooldownMs } };
}

function picked<T>(items: readonly T[], pick: number): T | undefined {
  return items[pick % Math.max(1, items.length)];
}

function byMask<T>(items: readonly T[], mask: number): T[] {
  return items.filter((_, index) => (mask >> index) & 1);
}

function wantOf(bench: GovernorBench, names: readonly string[], step: WantStep): Want {
  const chosen = byMask(names, step.candidates);
  return bench.newWant(chosen.length > 0 ? chosen : names, {
    failedHere: byMask(names, step.failedHere),
    limitedHere: byMask(names, step.limitedHere),
    estTokens: step.estTokens,
    ...(step.ordered ? { ordered: true } : {}),
  });
}

function settleFor(grant: Grant, step: SettleStep): Settle {
  const { sent, actualPercent, retryAfterMs } = step;
  const outcome = !sent && step.outcome !== "failure" ? "cancelled" : step.outcome;
  const used = actualPercent === null ? null : Math.round((grant.reservedTokens * actualPercent) / 100);
  return settleOf(grant, outcome, {
    sent,
    actualTokens: sent ? used : 0,
    ...(step.rateLimited && outcome === "alive" ? { rateLimited: "unknown" as const } : {}),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

function batchOf(
  bench: GovernorBench,
  model: GovernorModel,
  step: Extract<Step, { type: "tick" }>,
): Partial<TickBatch> {
  const live = model.liveGrants(bench.now());
  const settled = new Map<string, Settle>();
  for (const settleStep of step.settles) {
    const grant = picked(live, settleStep.pick);
    if (grant) settled.set(grant.leaseId, settleFor(grant, settleStep));
  }
  const judged = step.firstToken === null ? undefined : picked(live, step.firstToken);
  return {
    settles: [...settled.values()],
    verdicts: judged ? [verdictOf(judged)] : [],
    renew: byMask(live, step.renew).map((grant) => grant.leaseId),
    wants: step.wants.map((want) => wantOf(bench, model.names, want)),
  };
}

/** Sends one tick and has the model check the reply and the state before and after. */
async function checkedTick(bench: GovernorBench, model: GovernorModel, batch: Partial<TickBatch>): Promise<TickReply> {
  const before = await bench.snapshot();
  const reply = await bench.tick(batch);
  model.apply({ batch, reply, before, after: await bench.snapshot(), now: bench.now() });
  return reply;
}

/** Past the end of every lease that is neither surely live nor surely gone: TTL to TTL + 1 s is the governor's own choice. */
async function leaveGrace(bench: GovernorBench, model: GovernorModel): Promise<void> {
  for (let wait = model.graceMs(bench.now()); wait > 0; wait = model.graceMs(bench.now())) await bench.advance(wait);
}

async function advance(bench: GovernorBench, model: GovernorModel, ms: number): Promise<void> {
  await bench.advance(ms);
  await leaveGrace(bench, model);
  model.check(await bench.snapshot(), bench.now());
}

/**
 * Plays a script and checks every answer against the model; returns the replies,
 * so that two implementations can be asked for equal ones.
 */
export async function playScript(bench: GovernorBench, script: Script): Promise<TickReply[]> {
  const model = new GovernorModel(setupOf(script));
  const replies: TickReply[] = [];
  let hintMs = 0;
  for (const step of script.steps) {
    if (step.type === "advance") await advance(bench, model, step.ms);
    else if (step.type === "advance_to_hint") {
      await advance(bench, model, Math.ceil(Math.min(hintMs, 3_600_000)));
      hintMs = 0;
    } else {
      const batch = step.type === "tick" ? batchOf(bench, model, step) : repeatOf(model, step, bench.now());
      const reply = await checkedTick(bench, model, batch);
      hintMs = reply.hintMs ?? hintMs;
      replies.push(reply);
    }
  }
  await finish(bench, model);
  return replies;
}

function repeatOf(
  model: GovernorModel,
  step: Extract<Step, { type: "settle_again" | "ask_again" }>,
  now: number,
): Partial<TickBatch> {
  if (step.type === "settle_again") {
    const settle = picked(model.settles, step.pick);
    return settle ? { settles: [settle] } : {};
  }
  const grant = picked(model.liveGrants(now), step.pick);
  return grant ? { wants: [model.wantOf(grant)] } : {};
}

/** Whatever happened: leases end by themselves, and every source can be used again after a finite wait. */
async function finish(bench: GovernorBench, model: GovernorModel): Promise<void> {
  await bench.advance(model.leaseTtlMs + 1_000);
  model.checkNothingHeld(await bench.snapshot(), bench.now());
  for (const name of model.names) {
    let granted = false;
    for (let tries = 0; tries < 60 && !granted; tries++) {
      const reply = await checkedTick(bench, model, { wants: [bench.newWant(name, { estTokens: 1 })] });
      granted = reply.grants.length === 1;
      if (!granted) await advance(bench, model, Math.ceil(reply.hintMs ?? Number.NaN));
    }
    model.require(granted, `${name} is never usable again`);
  }
  model.checkRates();
}
