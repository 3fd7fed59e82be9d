import { describe, expect, test } from "vitest";
import type { LedgerEntry } from "../../src/testing/provider/server.js";
import { CanaryJudge, makeCanary } from "./canaries.js";
import { entry, frozen, grant, T0, TTL_MS } from "./evidence.test-helper.js";
import { faultsWith } from "./faults.js";
import { Finding } from "./finding.js";
import { type LeaseEvidence, LeasesJudge } from "./leases-judge.js";
import { type LimitEvidence, LimitsJudge } from "./limits-judge.js";
import { isGood, type Score, scoreboard } from "./scoreboard.js";

/** A judge that finds nothing proves nothing: each invariant is broken once, on evidence made for it. */

function judge(entries: LedgerEntry[], changes: Partial<LimitEvidence> = {}, limits = {}): LimitsJudge {
  return new LimitsJudge({
    witnessed: [{ source: "a", limits, entries }],
    global: {},
    grants: new Map(entries.map(({ requestId, arrivedAtMs }) => grant(requestId ?? "", arrivedAtMs - T0 - 10))),
    lives: [],
    restarts: [],
    leaseTtlMs: TTL_MS,
    standstills: [],
    ...changes,
  });
}

const RESTARTED = { restarts: [T0 + 1_000] };
const ONE_AT_ONCE = { maxConcurrency: 1 };

describe("limits", () => {
  const spread = (count: number, everyMs: number) =>
    Array.from({ length: count }, (_, n) => entry(`r${n}`, n * everyMs, n * everyMs + 5));

  test("one request more than RPM in 60 s is found, and one less is none", () => {
    expect(judge(spread(60, 1_001), {}, { rpm: 60 }).requests.violations).toBe(0);
    expect(judge(spread(61, 980), {}, { rpm: 60 }).requests.violations).toBe(1);
  });

  test("limits over all sources are judged on all ledgers together", () => {
    expect(judge(spread(61, 980), { global: { rpm: 60 } }).requests.violations).toBe(1);
  });

  test("a pace far above RPM shows within ten seconds", () => {
    const { pace, requests } = judge(spread(40, 100), {}, { rpm: 60 });
    expect([pace.violations, requests.violations]).toEqual([1, 0]);
  });

  test("a restart of Redis allows one burst more, and no other window", () => {
    const many = spread(62, 970);
    expect(judge(many, { restarts: [T0 + 30_000] }, { rpm: 60 }).requests.violations).toBe(0);
    expect(judge(many, { restarts: [T0 - 1] }, { rpm: 60 }).requests.violations).toBe(1);
  });

  test("tokens above TPM and what was reserved are found", () => {
    const entries = Array.from({ length: 20 }, (_, n) => entry(`r${n}`, n * 100, n * 100 + 5));
    expect(judge(entries, {}, { tpm: 100 }).tokens.violations).toBe(1);
    expect(judge(entries, {}, { tpm: 200 }).tokens.violations).toBe(0);
  });

  test("of two requests at once only one that lost its permit in a freeze is allowed", () => {
    const two = [entry("long", 0, 9_000), entry("next", 4_000, 5_000)];
    const grants = new Map([grant("long", -10), grant("next", 3_990, { pid: 8 })]);
    const limits = { maxConcurrency: 1 };
    expect(judge(two, { grants }, limits).slots.violations).toBe(1);
    const lost = judge(two, { grants, lives: frozen(500, 7_000) }, limits);
    expect([lost.slots.violations, lost.overshoot, lost.lostPermits]).toEqual([0, 1, 1]);
    expect(judge(two, { grants, lives: frozen(500, 1_500) }, limits).slots.violations).toBe(1);
    expect(judge(two, { grants, lives: frozen(3_000, 9_000) }, limits).slots.violations).toBe(1);
  });

  test("what is in flight when Redis restarts empty is in nobody's books", () => {
    const two = [entry("long", 0, 9_000), entry("next", 4_000, 5_000)];
    expect(judge(two, { restarts: [T0 + 1_000] }, { maxConcurrency: 1 }).slots.violations).toBe(0);
    expect(judge(two, { restarts: [T0 + 4_500] }, { maxConcurrency: 1 }).slots.violations).toBe(1);
  });

  test("so is what the old Redis gave at its end; what the new one gives counts", () => {
    const oldOneFrom = (ms: number) =>
      judge([entry("old", ms, 9_000), entry("new", 5_000, 6_000)], RESTARTED, ONE_AT_ONCE);
    expect(oldOneFrom(1_300).slots.violations).toBe(0);
    expect(oldOneFrom(2_500).slots.violations).toBe(1);
  });

  test("two probes at once are found", () => {
    const two = [entry("p1", 0, 900), entry("p2", 800, 1_000)];
    const grants = new Map([grant("p1", -5, { probe: true }), grant("p2", 795, { probe: true })]);
    expect(judge(two, { grants }).probes.violations).toBe(1);
    expect(judge([two[0]!, entry("p2", 901, 1_000)], { grants }).probes.violations).toBe(0);
  });

  test("a request that is sent after a freeze, on a permit from before, is found", () => {
    const grants = new Map([grant("r", 0)]);
    const lives = frozen(10, 5_000);
    expect(judge([entry("r", 5_050, 5_100)], { grants, lives }).late.violations).toBe(1);
    expect(judge([entry("r", 1_050, 1_100)], { grants, lives: frozen(10, 1_000) }).late.violations).toBe(0);
    // Seen by a witness that was held up, it may have been sent before.
    const heldUp = (fromMs: number) => [{ fromMs: T0 + fromMs, toMs: T0 + 5_040 }];
    const seen = (fromMs: number) =>
      judge([entry("r", 5_050, 5_100)], { grants, lives, standstills: heldUp(fromMs) }).late.violations;
    expect([seen(4_900), seen(5_010)]).toEqual([0, 1]);
  });

  test("a client that leaves while the witness is held up has left earlier", () => {
    const two = [entry("left", 0, 2_000, { clientClosed: true }), entry("next", 1_000, 3_000)];
    const held = (fromMs: number) => [{ fromMs: T0 + fromMs, toMs: T0 + 2_000 }];
    const slots = (fromMs: number) => judge(two, { standstills: held(fromMs) }, { maxConcurrency: 1 }).slots.violations;
    expect([slots(1_200), slots(1_300)]).toEqual([0, 1]);
  });
});

describe("permits in Redis", () => {
  const leases = (changes: Partial<LeaseEvidence> = {}, entries = [entry("r", 0, 5_000)]) => {
    const { booked, untold, ended } = new LeasesJudge({
      witnessed: [{ source: "a", limits: {}, entries }],
      grants: new Map([grant("r", 0)]),
      ...{ given: [told("r", 0)], doubts: [], sightings: seen("r", 0, 5_000) },
      counts: [{ atMs: T0 + 6_000, count: 1 }],
      ...{ restarts: [], leaseTtlMs: TTL_MS, ...changes },
    });
    return [booked.violations, untold.violations, ended.violations];
  };
  const told = (id: string, atMs: number) => ({ id, atMs: T0 + atMs });
  const seen = (id: string, firstMs: number, lastMs: number) =>
    new Map([[id, { source: "a", firstMs: T0 + firstMs, lastMs: T0 + lastMs }]]);

  test("one that was counted once, and ended with its request", () => expect(leases()).toEqual([0, 0, 0]));
  test("a grant that was booked twice", () =>
    expect(leases({ counts: [{ atMs: T0 + 6_000, count: 2 }] })).toEqual([1, 0, 0]));
  test("a grant that nobody was told of is counted, and gone in time", () => {
    const counts = [{ atMs: T0 + 6_000, count: 2 }];
    const sightings = (lastMs: number) => new Map([...seen("r", 0, 5_000), ...seen("lost", 100, lastMs)]);
    expect(leases({ counts, sightings: sightings(4_000) })).toEqual([0, 0, 0]);
    expect(leases({ counts, sightings: sightings(4_200) })).toEqual([0, 1, 0]);
    // Its process asks, and hears nothing.
    expect(leases({ counts, sightings: sightings(4_200), doubts: [told("lost", 300)] })).toEqual([0, 0, 0]);
  });
  test("a permit that outlives its request", () => {
    expect(leases({ sightings: seen("r", 0, 10_000) })).toEqual([0, 0, 0]);
    expect(leases({ sightings: seen("r", 0, 10_001) })).toEqual([0, 0, 1]);
  });
  test("a permit that was never used, and never given back", () => {
    expect(leases({ sightings: seen("r", 0, 25_000) }, [])).toEqual([0, 0, 0]);
    expect(leases({ sightings: seen("r", 0, 25_001) }, [])).toEqual([0, 0, 1]);
  });
  test("what was counted before a restart is forgotten", () => {
    const counts = [
      { atMs: T0 + 6_000, count: 1 },
      { atMs: T0 + 9_000, count: 1 },
    ];
    expect(leases({ counts, restarts: [T0 + 7_000] })).toEqual([1, 0, 0]);
    const given = [told("r", 0), told("s", 8_000)];
    expect(leases({ counts, given, restarts: [T0 + 7_000] })).toEqual([0, 0, 0]);
  });
  test("an answer that was lost, and asked for again in time, is the same grant", () => {
    const counts = [{ atMs: T0 + 6_000, count: 2 }];
    const again = (atMs: number) => ({ counts, doubts: [told("r", 0)], given: [told("r", atMs)] });
    expect(leases(again(500))).toEqual([1, 0, 0]);
    // By then the first one had ended by itself.
    expect(leases(again(2_600))).toEqual([0, 0, 0]);
  });
  test("an answer that was lost, and never asked for again, may have been a grant", () => {
    const counts = [{ atMs: T0 + 6_000, count: 2 }];
    expect(leases({ counts, doubts: [told("s", 0)] })).toEqual([0, 0, 0]);
    // Seen in Redis, it is counted already.
    const sightings = new Map([...seen("r", 0, 5_000), ...seen("s", 0, 2_900)]);
    const three = [{ atMs: T0 + 6_000, count: 3 }];
    expect(leases({ counts: three, doubts: [told("s", 0)], sightings })).toEqual([1, 0, 0]);
  });
});

describe("secrets", () => {
  const secret = makeCanary("api");
  const hits = (text: string) => {
    const judge = new CanaryJudge({ api: secret });
    judge.look("redis", text);
    expect(judge.findings.redis.checks).toBe(1);
    expect(judge.findings.redis.examples.join()).not.toContain(secret.slice(-12));
    return judge.findings.redis.violations;
  };

  test("a text without them", () => expect(hits(`key sk-canary-api-[redacted] ${makeCanary("api")}`)).toBe(0));
  test("a secret, whole or in part", () => {
    expect(hits(`the key ${secret} is wrong`)).toBe(1);
    expect(hits(`…${secret.slice(-12)}`)).toBe(1);
  });
  test("in base64, wherever it begins", () => {
    for (const before of ["", "k:", "user:", "Bearer "])
      expect(hits(Buffer.from(`${before}${secret}!`).toString("base64"))).toBe(1);
  });
  test("in two pieces of what a process writes", () => {
    const judge = new CanaryJudge({ api: secret });
    judge.hear(1, `a line with ${secret.slice(0, 25)}`);
    judge.hear(2, "another process");
    judge.hear(1, `${secret.slice(25)} in it`);
    judge.hear(1, "and more");
    expect(judge.findings.output.violations).toBe(1);
  });
});

describe("the scoreboard", () => {
  const good = new Finding("held");
  good.check(true, () => "");
  const [fault] = faultsWith("postgres");
  const score: Score = {
    ...{ seed: 1, seconds: 1, processes: 1, admissions: 1, tally: { answered: 1, failed: {} } },
    ...{
      overshoot: 0,
      lostPermits: 0,
      toldLost: 0,
      diedInHand: 0,
      longestStandstillMs: 0,
      scripts: { perAdmission: 1, meanUs: 1 },
    },
    findings: [good],
    faults: [{ fault: fault!, injected: 1, met: null }],
  };

  test("a run with everything looked at and nothing broken is good", () => {
    expect(isGood(score)).toBe(true);
    expect(scoreboard(score)).toContain("0 violations");
  });

  test("a fault that never fired, and one that no request met, fail", () => {
    const silent = { ...score, faults: [{ fault: fault!, injected: 0, met: null }] };
    expect(isGood(silent)).toBe(false);
    expect(scoreboard(silent)).toContain("never fired: F51");
    expect(isGood({ ...score, faults: [{ fault: fault!, injected: 3, met: 0 }] })).toBe(false);
  });

  test("an invariant that was never looked at, or broken, fails", () => {
    expect(isGood({ ...score, findings: [good, new Finding("blind")] })).toBe(false);
    const broken = new Finding("limits");
    broken.check(false, () => "61 of 60");
    expect(isGood({ ...score, findings: [broken] })).toBe(false);
    expect(scoreboard({ ...score, findings: [broken] })).toMatch(/limits .* 1 {2}BROKEN\n {4}61 of 60/);
  });
});
