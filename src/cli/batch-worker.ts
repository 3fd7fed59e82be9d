import { createSystemRuntime } from "../backends/system.js";
import type { FromWorker, ToWorker, WorkerSetup } from "../batch/workers/messages.js";
import { createOutbox } from "../batch/workers/outbox.js";
import { type Serving, serveCalls } from "../batch/workers/serve.js";
import { type OpenedLines, openLines } from "./client.js";
import { describeFailure, EXIT } from "./failure.js";

/** One worker process of `polygateway batch --workers`: it makes calls that its parent hands it, and ends with it. */

/** Calls that are cut and rows that are written are done long before. */
const END_WITHIN_MS = 10_000;

if (process.send === undefined) {
  process.stderr.write("This program is started by `polygateway batch --workers`; it does nothing alone.\n");
  process.exit(EXIT.couldNotRun);
}
const outbox = createOutbox<FromWorker>((messages, written) => {
  process.send?.([...messages], undefined, undefined, written);
});

let opened: OpenedLines | undefined;
let serving: Serving | undefined;
let ending = false;

function setUp(setup: WorkerSetup): void {
  const terminal = { env: process.env, stderr: process.stderr };
  // What is to be said of the configuration the parent has said.
  const note = (text: string, topic?: string): void => {
    if (opened !== undefined) outbox.put({ kind: "note", text, ...(topic === undefined ? {} : { topic }) });
  };
  try {
    opened = openLines({ ...setup, terminal, batch: true, note });
    serving = serveCalls(opened.lines, outbox.put, () => void end());
    outbox.put({ kind: "ready" });
  } catch (error) {
    outbox.put({ kind: "refused", reason: describeFailure(error).text });
  }
}

/** Writes the telemetry and ends, whatever hangs. */
async function end(): Promise<void> {
  if (ending) return;
  ending = true;
  createSystemRuntime().setTimer(END_WITHIN_MS, () => process.exit(EXIT.gaveUp));
  await opened?.close();
  process.exit(EXIT.ok);
}

// Ctrl-C goes to every process of a terminal, and so does its end: what becomes of the calls the parent decides.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {});
process.stderr.on("error", () => {});
process.on("uncaughtException", (error) => {
  process.stderr.write(`${describeFailure(error).text}\n`);
  process.exit(EXIT.couldNotRun);
});
process.on("message", (messages) => {
  for (const message of messages as ToWorker[]) {
    if (message.kind === "setup") setUp(message.setup);
    else if (serving !== undefined) serving.receive(message);
    else if (message.kind === "end") void end();
  }
});
// The parent is gone, however it ended: nobody waits for an answer any more.
process.on("disconnect", () => {
  serving?.abort(new Error("the batch is gone"));
  void end();
});
