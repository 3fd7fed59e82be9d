import type { Feed } from "../../src/batch/feed.js";
import { OPENAI_FORM } from "../../src/batch/form.js";
import { chatLines } from "../../src/batch/kinds/chat.js";
import type { BatchLine } from "../../src/batch/lines.js";
import { createLoop } from "../../src/batch/loop.js";
import { createSink } from "../../src/batch/output.js";
import { createTally } from "../../src/batch/progress.js";
import type { BatchSummary } from "../../src/batch/types.js";
import { batchDefaults } from "../../src/cli/client.js";
import type { GatewayOptions, SourceOptions } from "../../src/config/options.js";
import { GatewayClient } from "../../src/gateway.js";
import { SimulationKernel } from "../../src/testing/kernel.js";
import { createMemoryRecorder, type MemoryRecorder } from "../../src/testing/memory-recorder.js";
import { createScriptedTransport, type Script, type ScriptedTransport } from "../../src/testing/scripted-transport.js";
import type { OutLine } from "./out-file.js";

/** The batch loop over the public client on virtual time: only the provider, the clock and the two files are not real. */
export interface SimulatedBatch {
  readonly seed: number;
  readonly lines: number;
  readonly concurrency: number;
  readonly giveUpAfterMs?: number;
  /** When the first Ctrl-C comes. */
  readonly drainAtMs?: number;
  readonly sources?: readonly Partial<SourceOptions>[];
  readonly script: Script;
}

export interface SimulatedRun {
  readonly out: readonly OutLine[];
  readonly stop: BatchSummary["stop"];
  readonly tookMs: number;
  readonly requeues: number;
  readonly recorder: MemoryRecorder;
  readonly transport: ScriptedTransport;
  /** What the client and the clock still held when the run was over. */
  readonly leftBehind: { readonly leases: number; readonly waiting: number; readonly timers: number };
}

const READ_LINES = 100;
const GIVE_UP_AFTER_MS = 15 * 60_000;

export async function simulateBatch(batch: SimulatedBatch): Promise<SimulatedRun> {
  const kernel = new SimulationKernel({ seed: batch.seed });
  const runtime = kernel.runtime();
  const transport = createScriptedTransport(batch.script);
  const recorder = createMemoryRecorder();
  const options: GatewayOptions = {
    scope: "LLM",
    sources: (batch.sources ?? [{}]).map((source, index) => ({
      name: `s_${index + 1}`,
      baseUrl: "http://127.0.0.1:9/v1",
      apiKey: "sk-simulated-key",
      model: "m",
      ...source,
    })),
  };
  // Exactly what `polygateway batch` sets; nothing of the process is looked at for it.
  const defaults = batchDefaults(options, {} as Parameters<typeof batchDefaults>[1]);
  const client = new GatewayClient({ ...options, ...defaults, runtime, transport, telemetry: recorder });
  const tally = createTally({ batchId: "batch", skipped: 0, skippedFailed: 0, startedMs: runtime.now() });
  let text = "";
  const file = {
    append: async (bytes: Uint8Array) => {
      text += Buffer.from(bytes).toString();
    },
    sync: async () => {},
    close: async () => {},
  };
  const loop = createLoop({
    client: chatLines(client, runtime),
    runtime,
    feed: memoryFeed(batch.lines),
    form: OPENAI_FORM,
    sink: createSink(file, runtime, () => {}),
    ordered: false,
    tally,
    batchId: "batch",
    concurrency: batch.concurrency,
    giveUpAfterMs: batch.giveUpAfterMs ?? GIVE_UP_AFTER_MS,
    linesToDo: batch.lines,
    badLines: 0,
  });
  if (batch.drainAtMs !== undefined) kernel.runtime().setTimer(batch.drainAtMs, () => loop.stop("drained", "Stopped."));
  const stop = await kernel.run(loop.run());
  const tookMs = kernel.now();
  const { leases, waiting } = await kernel.run(client.snapshot());
  await kernel.run(client.close());
  return {
    out:
      text === ""
        ? []
        : text
            .trimEnd()
            .split("\n")
            .map((line) => JSON.parse(line) as OutLine),
    stop,
    tookMs,
    requeues: tally.report(runtime.now(), loop.counts(), { snapshot: null, limitsAway: false }).requeues,
    recorder,
    transport,
    leftBehind: { leases: leases.live, waiting: waiting.count, timers: kernel.pendingTimers() },
  };
}

function memoryFeed(count: number): Feed {
  let read = 0;
  return {
    badLines: 0,
    async next() {
      if (read >= count) return null;
      const length = Math.min(READ_LINES, count - read);
      const lines = Array.from({ length }, (_, index): BatchLine => lineNumber(read + index + 1));
      read += length;
      return lines;
    },
    close() {
      read = count;
    },
  };
}

function lineNumber(number: number): BatchLine {
  const messages = [{ role: "user", content: `question ${number}` }];
  const request = { kind: "chat", request: { messages } } as const;
  return { kind: "line", number, id: `q${number}`, request, textLength: 60 };
}
