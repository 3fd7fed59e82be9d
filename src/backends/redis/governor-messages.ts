import { createHash } from "node:crypto";
import type { ScopeSetup } from "../../domain/scope-state.js";
import type { SourceConfig } from "../../domain/source.js";
import type {
  GovernorEvent,
  Grant,
  Passed,
  Refusal,
  Settle,
  SourceName,
  SourceSnapshot,
  TickBatch,
  TickReply,
  Want,
} from "../../domain/tick.js";
import type { SentBatch } from "./script/sent-batch.js";

/** How a tick travels to the script and back: JSON, in which Lua knows neither null nor an empty list. */

/** What the rules read of a source: addresses, keys and the like never leave this process. */
const RULE_FIELDS = [
  "name",
  "model",
  "priority",
  "weight",
  "maxConcurrency",
  "rpm",
  "tpm",
  "limitRule",
  "strict",
  "burstS",
  "burstTokensS",
  "estTokens",
  "tpmCharge",
  "ttftTimeoutMs",
] as const satisfies readonly (keyof SourceConfig)[];

const LIMIT_FIELDS = ["maxConcurrency", "rpm", "tpm"] as const;

/** The same for processes of the same limits. */
function limitsIdOf({ global, sources }: ScopeSetup): string {
  const limits = sources.map((source) => [source.name, ...LIMIT_FIELDS.map((field) => source[field])].join());
  const all = [LIMIT_FIELDS.map((field) => global[field]).join(), ...limits.toSorted()].join("\n");
  return createHash("sha1").update(all).digest("base64url").slice(0, 12);
}

export function setupText(setup: ScopeSetup): string {
  const sources = setup.sources.map((source) => Object.fromEntries(RULE_FIELDS.map((field) => [field, source[field]])));
  return wellFormed(JSON.stringify({ ...setup, sources, limitsId: limitsIdOf(setup) }, withoutNothing));
}

/** Half of a character that was cut apart, escaped; what stands before it is no backslash of another escape. */
const LONE_HALF = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g;

/** Redis' reader of JSON refuses a text with half a character, and with it the whole tick, of which other calls are part. */
function wellFormed(json: string): string {
  return json.includes("\\ud") ? json.replace(LONE_HALF, "$1\ufffd") : json;
}

export function batchText({ worker, seed, settles, verdicts, renew, wants }: TickBatch): string {
  const candidates: (readonly SourceName[])[] = [];
  const sent: SentBatch = {
    worker,
    seed,
    settles: settles.map(sentSettle),
    verdicts: verdicts.map(({ leaseId, source, kind, ttftMs }) => ({ leaseId, source, kind, ttftMs })),
    renew,
    wants: wants.map((want) => sentWant(want, candidates)),
    candidates,
  };
  return wellFormed(textOf(sent));
}

/** A function that is asked for each value takes three times as long: only where there may be something to leave out. */
function textOf(sent: SentBatch): string {
  const text = JSON.stringify(sent);
  return text.includes("null") ? JSON.stringify(sent, withoutNothing) : text;
}

type SentSettle = SentBatch["settles"][number];
type SentWant = SentBatch["wants"][number];
/** Field by field, none forgotten: to leave some out of a copy takes longer. */
type Complete<T> = { readonly [Field in keyof Required<T>]: T[Field] };

function sentSettle(s: Settle): Complete<SentSettle> {
  return {
    leaseId: s.leaseId,
    source: s.source,
    actualTokens: s.actualTokens ?? undefined,
    sent: s.sent,
    outcome: s.outcome,
    retryAfterMs: s.retryAfterMs,
    rateLimited: s.rateLimited,
    durationMs: s.durationMs,
    ttftMs: s.ttftMs,
    tpotMs: s.tpotMs,
    inTokens: s.inTokens,
    outTokens: s.outTokens,
    limits: s.limits,
    lastError: s.lastError,
  };
}

/** One list is shared by all calls of a client that may use the same sources. */
function sentWant(want: Want, lists: (readonly SourceName[])[]): Complete<SentWant> {
  let candidates = lists.indexOf(want.candidates);
  if (candidates < 0) candidates = lists.push(want.candidates) - 1;
  return {
    leaseId: want.leaseId,
    candidates,
    ordered: want.ordered,
    failedHere: orAbsent(want.failedHere),
    limitedHere: orAbsent(want.limitedHere),
    estTokens: want.estTokens,
    priority: want.priority,
    affinity: want.affinity,
    promptTokens: want.promptTokens,
    maxTokens: want.maxTokens,
    tag: want.tag,
    retry: want.retry,
    hedge: want.hedge,
    remainingMs: want.remainingMs,
    skips: want.skips,
  };
}

function orAbsent<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list;
}

/** What is absent is nil in Lua; null would be something. */
function withoutNothing(_key: string, value: unknown): unknown {
  if (value === null) return undefined;
  return typeof value === "number" && !Number.isFinite(value) ? undefined : value;
}

type Writable<T> = { -readonly [Field in keyof T]: T[Field] };
type Loose<T> = { readonly [Field in keyof T]?: T[Field] | undefined };

function listOf<T>(value: readonly T[] | undefined): readonly T[] {
  return Array.isArray(value) ? value : [];
}

export interface TickAnswer {
  readonly reply: TickReply;
  readonly events: readonly GovernorEvent[];
}

export function readTickAnswer(text: string): TickAnswer {
  const { reply = {}, events } = JSON.parse(text) as { reply?: Loose<TickReply>; events?: GovernorEvent[] };
  return {
    reply: {
      grants: listOf(reply.grants).map(grantOf),
      refusals: listOf(reply.refusals).map(refusalOf),
      hintMs: reply.hintMs ?? null,
      applied: listOf(reply.applied),
    },
    events: listOf(events),
  };
}

/** Filled in place: it was read for this answer alone, and a copy of each takes as long as to read it. */
function grantOf(grant: Writable<Grant>): Grant {
  grant.windowId ??= null;
  grant.firstTokenDueMs ??= null;
  grant.hedgeAfterMs ??= null;
  grant.passedOver = passedOf(grant.passedOver);
  return grant;
}

function refusalOf(refusal: Refusal): Refusal {
  return { ...refusal, passedOver: passedOf(refusal.passedOver) };
}

function passedOf(passed: readonly Passed[] | undefined): readonly Passed[] {
  return listOf(passed);
}

type Described = Loose<SourceSnapshot> & SourceSnapshot;

export function readSources(sources: readonly SourceSnapshot[]): SourceSnapshot[] {
  return listOf(sources).map((source: Described) => {
    const { adaptive } = source;
    const described = { ...source, lastError: source.lastError ?? null, passedOver: source.passedOver ?? null };
    if (adaptive === undefined) return described;
    const known = {
      window: adaptive.window ?? null,
      ratePerS: adaptive.ratePerS ?? null,
      learnedRpm: adaptive.learnedRpm ?? null,
      learnedTpm: adaptive.learnedTpm ?? null,
      lastCutAgoMs: adaptive.lastCutAgoMs ?? null,
      ttftMs: adaptive.ttftMs ?? null,
      tpotMs: adaptive.tpotMs ?? null,
      firstTokenDueMs: adaptive.firstTokenDueMs ?? null,
    };
    return { ...described, adaptive: { ...adaptive, ...known } };
  });
}
