import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { CallRecord, OpenAttempt } from "../domain/record.js";
import type { Recorder } from "../ports/recorder.js";
import type { Runtime } from "../ports/runtime.js";
import { sampleOpen, sampleRecord } from "../testing/contracts/recorder.js";
import { createTelemetry, type TelemetryOptions } from "./emitter.js";

interface FakeTime {
  readonly runtime: Runtime;
  readonly warnings: string[];
  advance(ms: number): void;
  readonly timers: () => number;
}

function fakeTime(): FakeTime {
  let nowMs = 0;
  const timers = new Set<{ dueMs: number; callback: () => void }>();
  const warnings: string[] = [];
  const runtime: Runtime = {
    now: () => nowMs,
    wallNow: () => nowMs,
    sleep: () => Promise.resolve(),
    setTimer(delayMs, callback) {
      const timer = { dueMs: nowMs + delayMs, callback };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    random: () => 0.5,
    uuid: () => "id",
    log: (_level, message) => warnings.push(message),
  };
  const advance = (ms: number) => {
    nowMs += ms;
    for (const timer of [...timers].filter(({ dueMs }) => dueMs <= nowMs)) {
      timers.delete(timer);
      timer.callback();
    }
  };
  return { runtime, warnings, advance, timers: () => timers.size };
}

interface KeepingRecorder extends Recorder {
  readonly records: { record: CallRecord; commit: boolean }[];
  readonly opens: { open: OpenAttempt; commit: boolean }[];
}

function keepingRecorder(commit: () => Promise<void> = () => Promise.resolve()): KeepingRecorder {
  const records: KeepingRecorder["records"] = [];
  const opens: KeepingRecorder["opens"] = [];
  return {
    name: "keeping",
    records,
    opens,
    open(open, wanted) {
      opens.push({ open, commit: wanted });
      return wanted ? commit() : undefined;
    },
    record(record, wanted) {
      records.push({ record, commit: wanted });
      return wanted ? commit() : undefined;
    },
    flush: () => Promise.resolve(),
    close: () => Promise.resolve(),
    stats: () => ({ written: records.length, queued: 0, dropped: 0 }),
  };
}

function telemetry(time: FakeTime, recorders: Recorder[], changes: Partial<TelemetryOptions> = {}) {
  return createTelemetry({
    recorders,
    runtime: time.runtime,
    worker: "host:1:abc",
    capture: "full",
    journal: "async",
    durability: "async",
    ...changes,
  });
}

const never = () => new Promise<void>(() => {});

describe("emitter", () => {
  test("async entries are handed on and nothing is waited for", () => {
    const recorder = keepingRecorder();
    const emitter = telemetry(fakeTime(), [recorder]);
    expect(emitter.open(sampleOpen(1))).toBeUndefined();
    expect(emitter.record(sampleRecord(1))).toBeUndefined();
    expect(recorder.opens).toEqual([{ open: sampleOpen(1), commit: false }]);
    expect(recorder.records).toEqual([{ record: sampleRecord(1), commit: false }]);
  });

  test("journal off hands on no open attempt; before_send and sync ask for commits", async () => {
    const recorder = keepingRecorder();
    const time = fakeTime();
    expect(telemetry(time, [recorder], { journal: "off" }).open(sampleOpen(1))).toBeUndefined();
    expect(recorder.opens).toEqual([]);
    const strict = telemetry(time, [recorder], { journal: "before_send", durability: "sync" });
    await strict.open(sampleOpen(2));
    await strict.record(sampleRecord(2));
    expect([recorder.opens[0]?.commit, recorder.records[0]?.commit]).toEqual([true, true]);
    expect(time.timers()).toBe(0);
  });

  test("a recorder that never confirms is waited for one second, then calls go on without waiting", async () => {
    const time = fakeTime();
    const emitter = telemetry(time, [keepingRecorder(never)], { durability: "sync" });
    let done = false;
    const wait = emitter.record(sampleRecord(1))?.then(() => {
      done = true;
    });
    time.advance(999);
    await Promise.resolve();
    expect(done).toBe(false);
    time.advance(1);
    await wait;
    expect(emitter.record(sampleRecord(2))).toBeUndefined();
    expect(emitter.stats().commitTimeouts).toBe(2);
    expect(time.warnings).toHaveLength(1);
    expect(time.timers()).toBe(0);
  });

  test("after a confirmed commit a recorder is waited for again", async () => {
    const time = fakeTime();
    const confirms: (() => void)[] = [];
    const recorder = keepingRecorder(() => new Promise<void>((resolve) => confirms.push(resolve)));
    const emitter = telemetry(time, [recorder], { durability: "sync" });
    const first = emitter.record(sampleRecord(1));
    time.advance(1_000);
    await first;
    for (const confirm of confirms) confirm();
    await new Promise((resolve) => setImmediate(resolve));
    expect(emitter.record(sampleRecord(2))).toBeInstanceOf(Promise);
  });

  test("warnings of one kind come once a minute with the number kept back", () => {
    const time = fakeTime();
    const broken = {
      ...keepingRecorder(),
      record: () => {
        throw new Error("disk on fire");
      },
    };
    const emitter = telemetry(time, [broken]);
    for (let number = 0; number < 5; number++) emitter.record(sampleRecord(number));
    expect(time.warnings).toHaveLength(1);
    expect(time.warnings[0]).toContain("disk on fire");
    time.advance(60_000);
    emitter.record(sampleRecord(6));
    expect(time.warnings).toHaveLength(2);
    expect(time.warnings[1]).toContain("4 more");
    expect(emitter.stats().failures).toBe(6);
  });

  test("one broken recorder costs the others nothing", async () => {
    const good = keepingRecorder();
    const broken = {
      ...keepingRecorder(),
      record: () => {
        throw new Error("no");
      },
    };
    const emitter = telemetry(fakeTime(), [broken, good], { durability: "sync" });
    await emitter.record(sampleRecord(1));
    expect(good.records).toHaveLength(1);
  });

  test("never throws or rejects whatever recorders do (property)", async () => {
    const behaviour = fc.constantFrom("ok", "throws", "rejects", "never", "no promise");
    const act = (kind: string): Promise<void> => {
      if (kind === "throws") throw new Error("thrown");
      if (kind === "rejects") return Promise.reject(new Error("rejected"));
      if (kind === "never") return never();
      return kind === "ok" ? Promise.resolve() : (undefined as unknown as Promise<void>);
    };
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ open: behaviour, record: behaviour, flush: behaviour, close: behaviour }), {
          maxLength: 3,
        }),
        fc.boolean(),
        async (kinds, sync) => {
          const time = fakeTime();
          const recorders = kinds.map((kind) => ({
            name: "odd",
            open: () => act(kind.open),
            record: () => act(kind.record),
            flush: () => act(kind.flush),
            close: () => act(kind.close),
            stats: () => {
              throw new Error("no stats");
            },
          }));
          const emitter = telemetry(time, recorders, sync ? { journal: "before_send", durability: "sync" } : {});
          const waits = [emitter.open(sampleOpen(1)), emitter.record(sampleRecord(1)), emitter.flush()];
          time.advance(10_000);
          await Promise.all(waits);
          const closed = emitter.close();
          time.advance(10_000);
          await closed;
          emitter.stats();
          await new Promise((resolve) => setImmediate(resolve));
          expect(time.timers()).toBe(0);
        },
      ),
      { numRuns: 100 },
    );
  });

  test("a redactor that throws loses the row, not the call", () => {
    const recorder = keepingRecorder();
    const time = fakeTime();
    const emitter = telemetry(time, [recorder], {
      redact: () => {
        throw new Error("redactor");
      },
    });
    expect(emitter.record(sampleRecord(1))).toBeUndefined();
    expect(recorder.records).toEqual([]);
    expect(emitter.stats().failures).toBe(1);
  });

  test("recorders of users get records with capture and redaction applied", () => {
    const recorder = keepingRecorder();
    const redact = (text: string) => text.replaceAll("sk-secret", "…");
    telemetry(fakeTime(), [recorder], { capture: "none", redact }).record(
      sampleRecord(1, { error: 'a_1 request rejected: 400 | {"error":"sk-secret"}', sampling: '{"user":"sk-secret"}' }),
    );
    expect(recorder.records[0]?.record).toMatchObject({ messages: null, response: null, sampling: '{"user":"…"}' });
    expect(recorder.records[0]?.record.error).toBe("a_1 request rejected: 400");
  });
});
