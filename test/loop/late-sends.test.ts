import { expect, it } from "vitest";
import type { TickReply } from "../../src/domain/tick.js";
import type { Governor } from "../../src/ports/governor.js";
import type { Runtime } from "../../src/ports/runtime.js";
import type { ChatTransport } from "../../src/ports/transport.js";
import { SimulationKernel } from "../../src/testing/kernel.js";
import { startSimulatedProvider } from "../../src/testing/provider/server.js";
import { createScriptedTransport } from "../../src/testing/scripted-transport.js";
import { createHttpClient, type HttpObserver } from "../../src/transports/http.js";
import { hi, patient, simulate, storeFor } from "./harness.js";

/** A grant older than its lease is never sent (spec 02 §3), wherever the process was frozen on the way. */

/** As over HTTP: nothing is sent where `markSent` ends the attempt. */
function connecting(scripted: ReturnType<typeof createScriptedTransport>, forMs: number): ChatTransport {
  return {
    async complete(attempt) {
      await attempt.context.runtime.sleep(forMs);
      attempt.context.markSent();
      if (attempt.context.aborted) throw attempt.context.abortReason;
      return scripted.complete(attempt);
    },
    close: () => scripted.close(),
  };
}

it("a permit that grew older than its lease while a connection was opened is given back unsent", async () => {
  const kernel = new SimulationKernel();
  const one = { sources: [{ ...patient, maxConcurrency: 1, rpm: 60, limitRule: "window" as const }] };
  const store = storeFor(kernel, one);
  const runtime = kernel.runtime();
  const governor = store.connect(runtime, { thereMs: () => 1, backMs: () => 1 });
  const scripted = createScriptedTransport(() => ({ afterMs: 1_000 }));
  const frozen = simulate({ kernel, ...one, options: { runtime, governor, transport: connecting(scripted, 200) } });
  const call = frozen.client.chat(hi);
  await kernel.advance(100);
  kernel.freeze(runtime);
  await kernel.advance(40_000);
  kernel.thaw(runtime);
  const reply = await kernel.run(call);
  expect(scripted.sends.map(({ callId }) => callId)).toEqual([reply.callId]);
  expect(frozen.recorder.rows.map(({ outcome, final }) => [outcome, final])).toEqual([
    ["cancelled", false],
    ["success", true],
  ]);
  expect(frozen.recorder.rows[0]!.error).toContain("unsent");
  await kernel.advance(100);
  expect((await store.inner.snapshot()).sources[0]!.inflight).toBe(0);
});

it("a permit that grew older than its lease right after it came is given back unsent", async () => {
  const kernel = new SimulationKernel();
  const one = { sources: [{ ...patient, maxConcurrency: 1, rpm: 60, limitRule: "window" as const }] };
  const store = storeFor(kernel, one);
  const living = kernel.runtime();
  let frozenMs = 0;
  const runtime: Runtime = { ...living, now: () => living.now() + frozenMs };
  const connected = store.connect(runtime, { thereMs: () => 1, backMs: () => 1 });
  const governor: Governor = {
    ...connected,
    scope: connected.scope,
    tick: (batch) => Promise.resolve(connected.tick(batch)).then(frozenAfterReading),
  };
  /** Frozen when every permit of the reply has been handed out, and nobody has begun with one. */
  function frozenAfterReading(reply: TickReply): TickReply {
    if (frozenMs > 0 || reply.grants.length === 0) return reply;
    const grants = [...reply.grants];
    grants[Symbol.iterator] = function* () {
      yield* reply.grants;
      frozenMs = 40_000;
    } as never;
    return { ...reply, grants };
  }
  const scripted = createScriptedTransport(() => ({ afterMs: 1_000 }));
  const worker = simulate({ kernel, ...one, options: { runtime, governor, transport: connecting(scripted, 1) } });
  const reply = await kernel.run(worker.client.chat(hi));
  expect(frozenMs).toBe(40_000);
  expect(scripted.sends.map(({ callId }) => callId)).toEqual([reply.callId]);
  expect(worker.recorder.rows.map(({ outcome, final }) => [outcome, final])).toEqual([
    ["cancelled", false],
    ["success", true],
  ]);
});

it("not a byte leaves for an exchange that is aborted as its connection opens", async () => {
  await using provider = await startSimulatedProvider();
  const http = createHttpClient();
  const request = {
    ...{ origin: provider.origin, path: "/v1/chat/completions", maxDecodedBytes: 1_000_000 },
    ...{ headers: ["content-type", "application/json"], body: "{}" },
  };
  const observer = (onSent: () => void, onEnd: () => void): HttpObserver => ({
    ...{ onSent, onHeaders() {}, onData() {}, onEnd, onFailure: onEnd },
  });
  const late = await new Promise<boolean>((resolve) => {
    const exchange = http.send(
      request,
      observer(
        () => {
          exchange.abort();
          resolve(true);
        },
        () => resolve(false),
      ),
    );
  });
  expect(late).toBe(true);
  await new Promise<void>((resolve) =>
    http.send(
      request,
      observer(() => {}, resolve),
    ),
  );
  expect(provider.stats().arrived).toBe(1);
  await http.close();
});
