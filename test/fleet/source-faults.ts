import { setTimeout as sleep } from "node:timers/promises";
import type { FaultOptions, LedgerOutcome, ResponseScript } from "../../src/testing/provider/server.js";
import { type Arena, any, draw, type Fault, type Met } from "./fault.js";
import type { Upstream } from "./sources.js";

const seenAs =
  (outcome: LedgerOutcome) =>
  ({ requests }: Met): number =>
    requests((entry) => entry.outcome === outcome);

async function worsenOne(arena: Arena, faults: FaultOptions, fromMs: number, toMs: number): Promise<boolean> {
  return onOne(arena, async (upstream) => {
    upstream.worsen(faults);
    await sleep(draw(arena.next, fromMs, toMs));
    upstream.restore();
  });
}

/** Of the providers that live, one that nothing else is done to; rather one that has something to do. */
async function onOne({ upstreams, busy, next }: Arena, work: (upstream: Upstream) => Promise<void>): Promise<boolean> {
  const free = upstreams.filter(({ plan }) => plan.name !== "dead" && !busy.has(plan.name));
  const working = free.filter(({ provider }) => provider.stats().inProgress > 0);
  const upstream = any(next, working.length > 0 ? working : free);
  if (upstream === undefined) return false;
  busy.add(upstream.plan.name);
  await work(upstream);
  busy.delete(upstream.plan.name);
  return true;
}

const HUNG_429: ResponseScript = {
  status: 429,
  headers: { "retry-after": "1" },
  chunks: [{ utf8: '{"error"' }],
  end: "hang",
};

/** A provider that tells the key it was given: once as a hiccup, once as a rejection that the caller gets. */
function telling({ apiKey }: Upstream, status: number): ResponseScript {
  const message = `the key ${apiKey} (Bearer ${Buffer.from(`key:${apiKey}`).toString("base64")}) may not do this`;
  const chunks = [{ utf8: JSON.stringify({ error: { message, type: "invalid_request_error", param: apiKey } }) }];
  return { status, headers: { "content-type": "application/json", "x-echo": apiKey }, chunks, end: "close" };
}

export const DOWN: Fault = {
  id: "F66",
  what: "a source down (503), so that its breaker opens",
  met: seenAs("outage"),
  inject: (arena) =>
    onOne(arena, async ({ provider }) => {
      const refused = (): number => provider.stats().outcomes.outage ?? 0;
      const before = refused();
      await provider.setOutage("503");
      await sleep(draw(arena.next, 1_500, 3_000));
      // As many as it takes to open a breaker.
      for (let waited = 0; refused() < before + 5 && waited < 20; waited += 1) await sleep(100);
      await provider.setOutage("off");
    }),
};

export const STORM: Fault = {
  id: "F18",
  what: "a storm of 429s",
  met: seenAs("rate_limited"),
  inject: (arena) => worsenOne(arena, { rateLimitRate: 0.8, rateLimitRetryAfterMs: 300 }, 800, 1_600),
};

export const SILENT: Fault = {
  id: "F3",
  what: "a source that falls silent",
  met: seenAs("hang"),
  inject: (arena) => worsenOne(arena, { hangRate: 0.5 }, 500, 900),
};

export const HUNG: Fault = {
  id: "F19",
  what: "429s whose body never ends",
  met: ({ requests }) => requests(({ outcome, status }) => outcome === "scripted" && status === 429),
  inject: (arena) => onOne(arena, async ({ provider }) => provider.script(HUNG_429, 3)),
};

export const TELLING: Fault = {
  id: "F83",
  what: "errors that tell the key they were asked with",
  met: ({ requests }) => requests(({ outcome, status }) => outcome === "scripted" && status !== 429),
  inject: (arena) =>
    onOne(arena, async (upstream) => {
      for (const status of [500, 400, 400]) upstream.provider.script(telling(upstream, status));
    }),
};

export const ALL_ALONG: readonly Fault[] = [
  { id: "F7", what: "connections of a source reset", met: seenAs("reset"), always: true },
  { id: "F8", what: "answers cut", met: seenAs("cut"), always: true },
  { id: "F20", what: "a source that fails one time in four", met: seenAs("error"), always: true },
  { id: "F21", what: "a dead source (401)", met: seenAs("unauthorized"), always: true },
];
