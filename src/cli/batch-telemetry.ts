import { existsSync, statSync } from "node:fs";
import type { BatchOptions, EarlierAttempt } from "../batch/types.js";
import type { Runtime } from "../ports/runtime.js";
import { openTelemetryFile } from "../telemetry/reader.js";
import { type ReconcileReport, reconcileStore } from "../telemetry/reconcile.js";
import { TelemetryFileError } from "../telemetry/store.js";
import type { TelemetryStore } from "./client.js";
import { plural } from "./format.js";

/** What a batch does with the telemetry of earlier runs: close their books, and find what will be paid twice. */
export function batchHooks(
  store: TelemetryStore,
  runtime: Pick<Runtime, "wallNow">,
  note: (text: string) => void,
  answersInOut = true,
): Pick<BatchOptions, "onReady" | "earlierAttempts"> {
  const said = onceEach(note);
  let isAway = false;
  const complain: Complain = (what, error) => {
    isAway ||= error instanceof TelemetryFileError && error.isAway;
    said(what, error);
  };
  return {
    onReady: ({ outPath }) =>
      balanceBooks(store, answersInOut ? outPath : null, "earlier runs", runtime, note, complain),
    // A server that answered nobody a moment ago would only be waited for once more.
    earlierAttempts: (batchId) => (isAway ? NONE_KNOWN : earlierAttempts(store, batchId, complain)),
  };
}

const NONE_KNOWN: readonly EarlierAttempt[] = [];

type Complain = (what: string, error: unknown) => void;

/** What keeps the books from being read, keeps it from being read twice. */
function onceEach(note: (text: string) => void): Complain {
  const said = new Set<string>();
  return (what, error) => {
    const reason = error instanceof Error ? error.message : String(error);
    if (!said.has(reason)) note(`${what}: ${reason}`);
    said.add(reason);
  };
}

/** A file that isn't there yet has no earlier runs. */
function mayHold({ kind, path }: TelemetryStore): boolean {
  return kind === "postgres" || existsSync(path);
}

/**
 * Closes what dead processes left open. `whose` books they are, for the reader. `outPath` null = OUT says nothing of what
 * its answers took.
 */
export async function balanceBooks(
  store: TelemetryStore,
  outPath: string | null,
  whose: string,
  runtime: Pick<Runtime, "wallNow">,
  note: (text: string) => void,
  complain: Complain = onceEach(note),
): Promise<void> {
  if (!mayHold(store)) return;
  try {
    // A device gives back nothing that was written, and may never end.
    const isFile = outPath !== null && statSync(outPath, { throwIfNoEntry: false })?.isFile() === true;
    const answers = isFile ? { outPath } : {};
    const report = await reconcileStore({ store: store.path, ...answers, now: runtime.wallNow() });
    for (const line of describeReconciled(report, whose)) note(line);
  } catch (error) {
    // Telemetry never stops a call: the books can be balanced later.
    complain(`The books of ${whose} could not be checked`, error);
  }
}

function describeReconciled({ repaired, differences }: ReconcileReport, whose: string): string[] {
  const lines: string[] = [];
  if (repaired.abandoned > 0) {
    const attempts = plural(repaired.abandoned, "attempt");
    lines.push(
      `${attempts} of processes that were killed: sent, outcome unknown, possibly billed. Recorded as abandoned.`,
    );
  }
  if (repaired.answered > 0) {
    lines.push(`${plural(repaired.answered, "answer")} of processes that were killed had no row yet: recorded now.`);
  }
  if (differences.length > 0) {
    lines.push(
      `The books of ${whose} show ${plural(differences.length, "difference")}: see \`polygateway reconcile\`.`,
    );
  }
  return lines;
}

function outcomeOf(value: unknown): EarlierAttempt["outcome"] | undefined {
  return value === "success" || value === "abandoned" ? value : undefined;
}

async function* earlierAttempts(
  store: TelemetryStore,
  batchId: string,
  complain: Complain,
): AsyncGenerator<EarlierAttempt> {
  if (!mayHold(store)) return;
  try {
    yield* readAttempts(store.path, batchId);
  } catch (error) {
    complain("What earlier runs paid for is not known", error);
  }
}

async function* readAttempts(path: string, batchId: string): AsyncGenerator<EarlierAttempt> {
  const file = openTelemetryFile(path);
  try {
    for await (const row of file.rows({ sessionId: batchId, withoutTexts: true })) {
      const outcome = outcomeOf(row.outcome);
      if (outcome === undefined || row.attempt === null || typeof row.parent_call_id !== "string") continue;
      yield { lineId: row.parent_call_id, outcome };
    }
  } finally {
    file.close();
  }
}
