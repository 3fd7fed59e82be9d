import type { BatchSummary, BatchWorker } from "../batch/types.js";
import { formatCount, formatDuration, plural } from "./format.js";
import type { RunWords } from "./run-words.js";

/** A worker that is asked for its state answers within a fraction of a second, unless it hangs or is stopped. */
const SILENT_MS = 5_000;

/** "" without workers. */
export function workersText(workers: readonly BatchWorker[] | undefined, { unit }: RunWords): string {
  if (workers === undefined || workers.length === 0) return "";
  const working = workers.filter(({ state }) => state === "working").length;
  const count =
    working === workers.length ? plural(working, "worker") : `${working} of ${plural(workers.length, "worker")}`;
  const silent = workers
    .filter(({ silentMs }) => silentMs > SILENT_MS)
    .map(({ pid, silentMs, inFlight }) => {
      return `${pid} is silent for ${formatDuration(silentMs)} with ${plural(inFlight, unit)}`;
    });
  const died = sumOf(workers, "deaths");
  const facts = [...silent, ...(died === 0 ? [] : [`${formatCount(died)} died`])];
  return facts.length === 0 ? count : `${count} (${facts.join(", ")})`;
}

function sumOf(workers: readonly BatchWorker[], field: "deaths" | "handedOn"): number {
  return workers.reduce((sum, worker) => sum + worker[field], 0);
}

export function deathLines({ workers = [] }: BatchSummary, { unit }: RunWords): string[] {
  const [died, handedOn] = [sumOf(workers, "deaths"), sumOf(workers, "handedOn")];
  if (died === 0) return [];
  const lines = handedOn === 0 ? "" : ` ${plural(handedOn, unit)} in flight then: run again, possibly paid twice.`;
  return [`Workers died ${plural(died, "time")} in this run.${lines}`];
}
