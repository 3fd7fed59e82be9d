import { describe, expect, it } from "vitest";
import type { ChatRequest, ChatResponse } from "../domain/chat.js";
import type { UnavailableReason } from "../errors.js";
import { AllSourcesExhausted, CircuitOpenError, RequestRejectedError, SourceNotConfiguredError } from "../errors.js";
import { SimulationKernel } from "../testing/kernel.js";
import { sampleResponse } from "../testing/sample-answers.js";
import type { Feed } from "./feed.js";
import { OPENAI_FORM } from "./form.js";
import { type ChatLineClient, chatLines } from "./kinds/chat.js";
import type { BatchLine } from "./lines.js";
import { type BatchLoop, createLoop } from "./loop.js";
import { createOrderedSink, createSink } from "./output.js";
import { createTally } from "./progress.js";
import type { BatchClient, BatchSummary } from "./types.js";

const line = (number: number): BatchLine => ({
  kind: "line",
  number,
  id: `id-${number}`,
  request: { kind: "chat", request: { messages: [{ role: "user", content: `${number}` }] } },
  textLength: 100,
});
const numbered = (count: number) => Array.from({ length: count }, (_, index) => line(index + 1));

function feedOf(lines: BatchLine[], chunk = 7): Feed & { closed: boolean; handedOut: number } {
  const feed = {
    closed: false,
    handedOut: 0,
    badLines: 0,
    async next() {
      if (feed.handedOut >= lines.length) return null;
      const next = lines.slice(feed.handedOut, feed.handedOut + chunk);
      feed.handedOut += next.length;
      return next;
    },
    close() {
      feed.closed = true;
    },
  };
  return feed;
}

const response = (request: ChatRequest): ChatResponse =>
  sampleResponse({ content: "ok", callId: `call-of-${request.parentCallId}`, cost: 0.5 });

const unavailable = (reason: UnavailableReason, retryAfterMs = 0) =>
  new AllSourcesExhausted(`${reason} happened`, { scope: "LLM", reason, retryAfterMs });

interface Scenario {
  lines?: BatchLine[];
  concurrency?: number;
  ordered?: boolean;
  giveUpAfterMs?: number;
  chat: (request: ChatRequest, sleep: (ms: number) => Promise<void>) => Promise<ChatResponse> | ChatResponse;
  deadSources?: boolean[];
  append?: (text: string) => Promise<void>;
  during?: (loop: BatchLoop, kernel: SimulationKernel) => Promise<void>;
}

async function play(scenario: Scenario) {
  const kernel = new SimulationKernel({ seed: 7 });
  const runtime = kernel.runtime();
  const feed = feedOf(scenario.lines ?? numbered(20));
  const written: string[] = [];
  const sent: string[] = [];
  let mostInFlight = 0;
  let inFlight = 0;
  const client: ChatLineClient = {
    scope: "LLM",
    models: ["m"],
    snapshot: () =>
      ({ scope: "LLM", sources: (scenario.deadSources ?? [true]).map((dead) => ({ dead })) }) as unknown as ReturnType<
        BatchClient["snapshot"]
      >,
    leases: () => ({ live: inFlight }),
    async chat(request) {
      sent.push(request.parentCallId ?? "");
      mostInFlight = Math.max(mostInFlight, ++inFlight);
      try {
        return await scenario.chat(request, (ms) => runtime.sleep(ms, request.signal));
      } finally {
        inFlight--;
      }
    },
  };
  const file = {
    async append(bytes: Uint8Array) {
      const text = Buffer.from(bytes).toString();
      await scenario.append?.(text);
      written.push(...text.trimEnd().split("\n"));
    },
    sync: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
  const plain = createSink(file, runtime, () => {});
  const tally = createTally({ batchId: "b", skipped: 0, skippedFailed: 0, startedMs: 0 });
  const loop = createLoop({
    client: chatLines(client, runtime),
    runtime,
    feed,
    form: OPENAI_FORM,
    sink: scenario.ordered ? createOrderedSink(plain) : plain,
    ordered: scenario.ordered ?? false,
    tally,
    batchId: "b",
    concurrency: scenario.concurrency ?? 4,
    giveUpAfterMs: scenario.giveUpAfterMs ?? 900_000,
    linesToDo: undefined,
    badLines: 0,
  });
  const during = scenario.during?.(loop, kernel);
  const stop: BatchSummary["stop"] = await kernel.run(loop.run());
  await during;
  expect(inFlight).toBe(0);
  expect(feed.closed).toBe(true);
  expect(kernel.pendingTimers(), "timers left behind").toBe(0);
  const out = written.map((text) => JSON.parse(text));
  return {
    stop,
    out,
    ids: out.map((entry) => entry.custom_id as string),
    failed: out.filter((entry) => entry.error !== null),
    sent,
    mostInFlight,
    feed,
    tally,
    endMs: kernel.now(),
  };
}

const allIds = (count: number) => numbered(count).map(({ id }) => id);

describe("running lines", () => {
  it("answers every line once, at most `concurrency` at a time, and passes batch and line id on", async () => {
    const seen: ChatRequest[] = [];
    const end = await play({
      chat: async (request, sleep) => {
        seen.push(request);
        await sleep(Number(request.messages[0]!.content) % 5);
        return response(request);
      },
    });
    expect([...end.ids].sort()).toEqual([...allIds(20)].sort());
    expect(end.stop).toBeNull();
    expect(end.mostInFlight).toBe(4);
    expect(seen[0]).toMatchObject({ sessionId: "b", parentCallId: "id-1" });
    expect(end.tally.done).toBe(20);
  });

  it("pulls lines lazily: what is read ahead is one read", async () => {
    const end = await play({
      lines: numbered(1000),
      concurrency: 2,
      chat: async (request, sleep) => {
        await sleep(10);
        return response(request);
      },
      during: async (loop, kernel) => {
        kernel.runtime().setTimer(35, () => loop.stop("drained", "x"));
      },
    });
    expect(end.feed.handedOut).toBeLessThanOrEqual(14);
    expect(end.ids).toHaveLength(8);
  });

  it("writes a failure line for what the line itself caused, and goes on", async () => {
    const end = await play({
      chat: (request) => {
        const { content } = request.messages[0]!;
        if (content === "3") throw new RequestRejectedError("no", { statusCode: 400, bodyText: "why not" });
        if (content === "5") throw unavailable("deadline_exceeded");
        return response(request);
      },
    });
    expect(end.ids).toHaveLength(20);
    expect(end.failed.map((entry) => [entry.custom_id, entry.error.code, entry.error.class, entry.response])).toEqual([
      ["id-3", "bad_request", "RequestRejectedError", { status_code: 400, body: "why not" }],
      ["id-5", "deadline_exceeded", "AllSourcesExhausted", null],
    ]);
  });

  it("counts retry_exhausted as the line's own when others succeed meanwhile", async () => {
    const end = await play({
      chat: async (request, sleep) => {
        await sleep(10);
        if (request.messages[0]!.content !== "9") return response(request);
        await sleep(5);
        throw unavailable("retry_exhausted");
      },
    });
    expect(end.failed.map((entry) => entry.custom_id)).toEqual(["id-9"]);
    expect(end.sent.filter((id) => id === "id-9")).toHaveLength(1);
  });

  it("judges the bad lines at the end of a file within seconds, though nothing else succeeds any more", async () => {
    const end = await play({
      chat: async (request, sleep) => {
        const number = Number(request.messages[0]!.content);
        await sleep(number === 17 ? 100 : 10);
        if (number <= 17) return response(request);
        await sleep(4_000);
        throw unavailable("retry_exhausted");
      },
    });
    expect(end.failed).toHaveLength(3);
    expect(end.endMs).toBeLessThan(30_000);
  });

  it("tries a line at most 10 times again when nothing ever succeeds, then it is a failure line", async () => {
    const end = await play({
      lines: numbered(1),
      chat: () => {
        throw unavailable("retry_exhausted");
      },
    });
    expect(end.sent).toHaveLength(11);
    expect(end.failed).toHaveLength(1);
  });

  it("puts every other unavailability back, as often as it takes, after at least a second", async () => {
    const times: number[] = [];
    let tries = 0;
    const end = await play({
      lines: numbered(1),
      chat: async (request) => {
        if (++tries > 40) return response(request);
        throw tries % 2 ? unavailable("stalled") : new CircuitOpenError("open", { scope: "LLM", retryAfterMs: 3_000 });
      },
      during: async () => void times,
    });
    expect(end.failed).toHaveLength(0);
    expect(end.sent).toHaveLength(41);
    expect(end.endMs).toBe(20 * 1_000 + 20 * 3_000);
  });

  it("prefers lines that wait for their next try over new ones", async () => {
    let first = true;
    const end = await play({
      lines: numbered(40),
      concurrency: 1,
      chat: async (request, sleep) => {
        if (first) {
          first = false;
          throw unavailable("stalled");
        }
        await sleep(300);
        return response(request);
      },
    });
    expect(end.ids.indexOf("id-1")).toBe(4);
    expect(end.failed).toHaveLength(0);
  });
});

describe("outages", () => {
  it.each([1, 4, 8])("an outage of 6 minutes costs no line (%i in flight)", async (concurrency) => {
    let kernelNow = () => 0;
    const end = await play({
      lines: numbered(300),
      concurrency,
      during: async (_loop, kernel) => {
        kernelNow = () => kernel.now();
      },
      chat: async (request, sleep) => {
        // Ends of the first calls are spread, so that some succeed while others, begun before, run into the outage.
        const down = (atMs: number) => atMs >= 1_000 && atMs < 361_000;
        for (let fails = 0; ; ) {
          await sleep(40 + (Number(request.messages[0]!.content) % 7) * 30);
          if (!down(kernelNow())) return response(request);
          if (++fails === 4) throw unavailable("retry_exhausted");
          await sleep(200 * 2 ** fails);
        }
      },
    });
    expect(end.failed).toEqual([]);
    expect(end.ids).toHaveLength(300);
    expect(new Set(end.ids).size).toBe(300);
    expect(end.endMs).toBeGreaterThan(361_000);
  });

  it("holds a bounded number of lines while nothing works", async () => {
    const end = await play({
      lines: numbered(5_000),
      concurrency: 100,
      giveUpAfterMs: 600_000,
      chat: () => {
        throw unavailable("circuit_open", 30_000);
      },
    });
    expect(end.feed.handedOut).toBeLessThanOrEqual(1_000 + 100 + 7);
    expect(end.stop?.kind).toBe("no_success");
  });

  it("gives up when nothing succeeded for the given time, however long it ran well before", async () => {
    let now = () => 0;
    const end = await play({
      lines: numbered(50),
      during: async (_loop, kernel) => {
        now = () => kernel.now();
      },
      giveUpAfterMs: 60_000,
      chat: async (request, sleep) => {
        await sleep(20_000);
        if (now() <= 100_000) return response(request);
        throw unavailable("stalled");
      },
    });
    expect(end.stop).toEqual({ kind: "no_success", reason: expect.stringMatching(/^No line succeeded for 1 min/) });
    expect(end.ids).toHaveLength(20);
    expect(end.endMs).toBeGreaterThanOrEqual(160_000);
    expect(end.endMs).toBeLessThan(200_000);
  });

  it("stops when all sources are dead, and lets the calls in flight end", async () => {
    const end = await play({
      chat: async (request, sleep) => {
        if (request.messages[0]!.content === "2") throw unavailable("all_sources_dead", 60_000);
        await sleep(50);
        return response(request);
      },
    });
    expect(end.stop?.kind).toBe("all_sources_dead");
    expect(end.ids).toEqual(["id-1", "id-3", "id-4"]);
  });

  it("goes on when only the sources of one line's model are dead, and says so when nothing else is left", async () => {
    const end = await play({
      deadSources: [true, false],
      chat: (request) => {
        if (request.messages[0]!.content === "2") throw unavailable("all_sources_dead", 60_000);
        return response(request);
      },
    });
    expect(end.ids).toHaveLength(19);
    expect(end.stop).toEqual({ kind: "all_sources_dead", reason: expect.stringMatching(/dead sources only/) });
  });

  it.each([
    ["no_sources", unavailable("no_sources")],
    ["misconfigured", new SourceNotConfiguredError("source x is unknown")],
  ] as const)("stops at %s", async (kind, error) => {
    const end = await play({
      chat: async (request, sleep) => {
        if (request.messages[0]!.content === "3") throw error;
        await sleep(50);
        return response(request);
      },
    });
    expect(end.stop?.kind).toBe(kind);
    expect(end.ids).toHaveLength(3);
  });
});

describe("stopping", () => {
  it("drains: no new line starts, calls in flight are written", async () => {
    const end = await play({
      chat: async (request, sleep) => {
        await sleep(100);
        return response(request);
      },
      during: async (loop, kernel) => void kernel.runtime().setTimer(150, () => loop.stop("drained", "x")),
    });
    expect(end.ids).toHaveLength(8);
    expect(end.sent).toHaveLength(8);
  });

  it("aborts: calls in flight are cancelled and leave no line", async () => {
    const end = await play({
      chat: async (request, sleep) => {
        await sleep(100);
        return response(request);
      },
      during: async (loop, kernel) => void kernel.runtime().setTimer(150, () => loop.abort(new Error("gone"))),
    });
    expect(end.ids).toHaveLength(4);
    expect(end.endMs).toBe(150);
    expect(end.stop?.kind).toBe("aborted");
  });

  it("aborted while it drains: the end says that calls were cancelled and may be billed", async () => {
    const end = await play({
      chat: async (request, sleep) => {
        await sleep(100);
        return response(request);
      },
      during: async (loop, kernel) => {
        kernel.runtime().setTimer(120, () => loop.stop("drained", "x"));
        kernel.runtime().setTimer(150, () => loop.abort(new Error("gone")));
      },
    });
    expect(end.ids).toHaveLength(4);
    expect(end.stop).toEqual({ kind: "aborted", reason: expect.stringMatching(/were cancelled.*may be billed/) });
  });

  it("after a write that fails no line starts, and calls in flight end; what can still be written is", async () => {
    let full = false;
    const end = await play({
      chat: async (request, sleep) => {
        await sleep(100 + Number(request.messages[0]!.content));
        return response(request);
      },
      append: async (text) => {
        full = text.includes("id-6");
        if (full) throw new Error("ENOSPC: no space left on device");
      },
    });
    expect(end.stop).toEqual({ kind: "write_failed", reason: expect.stringMatching(/no space left/) });
    expect(end.ids).not.toContain("id-6");
    expect(end.sent.length).toBe(end.ids.length + 1);
    expect(end.tally.answersNotWritten).toBe(1);
  });
});

describe("ordered", () => {
  it("writes in input order though a line must be tried again", async () => {
    let tries = 0;
    const end = await play({
      ordered: true,
      lines: numbered(60),
      chat: async (request, sleep) => {
        await sleep((Number(request.messages[0]!.content) * 7) % 11);
        if (request.messages[0]!.content === "5" && ++tries < 4) throw unavailable("stalled");
        return response(request);
      },
    });
    expect(end.ids).toEqual(allIds(60));
    expect(end.tally.done).toBe(60);
  });

  it("stops admission at 1,000 lines held back, and goes on when the gap closes", async () => {
    let started = 0;
    let heldAtMost = 0;
    const end = await play({
      ordered: true,
      lines: numbered(3_000),
      concurrency: 50,
      chat: async (request, sleep) => {
        started++;
        if (request.parentCallId === "id-1") {
          await sleep(1_000_000);
          heldAtMost = started;
        }
        await sleep(1);
        return response(request);
      },
      giveUpAfterMs: 2_000_000,
    });
    expect(heldAtMost).toBeLessThanOrEqual(1_000);
    expect(end.ids).toEqual(allIds(3_000));
  });

  it("writes what is paid for even when the line before it was never finished", async () => {
    const end = await play({
      ordered: true,
      chat: async (request, sleep) => {
        await sleep(10);
        if (request.parentCallId === "id-1") throw unavailable("stalled", 60_000);
        return response(request);
      },
      during: async (loop, kernel) => void kernel.runtime().setTimer(35, () => loop.stop("drained", "x")),
    });
    expect(end.ids[0]).toBe("id-2");
    expect(end.ids).toHaveLength(end.sent.length - 1);
    expect(end.tally.done).toBe(end.ids.length);
  });
});
