import type { CancelTimer, Runtime } from "../ports/runtime.js";
import type { BatchClient, BatchProgress, BatchSnapshot } from "./types.js";

/** Calls `emit` now and then with the newest snapshot. A snapshot that is late or fails only leaves the older one. */
export function reportProgress(
  client: BatchClient,
  runtime: Runtime,
  everyMs: number,
  emit: ((snapshot: BatchProgress["snapshot"]) => void) | undefined,
): { readonly snapshot: BatchProgress["snapshot"]; refresh(): Promise<void>; stop(): void } {
  let snapshot: BatchSnapshot | null = null;
  let cancel: CancelTimer | undefined;
  let asking = false;

  async function refresh(): Promise<void> {
    if (asking) return;
    asking = true;
    try {
      snapshot = await client.snapshot();
    } catch {
      // The figures of the last one still stand.
    } finally {
      asking = false;
    }
  }

  function tick(): void {
    void refresh();
    emit?.(snapshot);
    cancel = runtime.setTimer(everyMs, tick);
  }

  if (emit !== undefined) tick();
  return {
    get snapshot() {
      return snapshot;
    },
    refresh,
    stop: () => cancel?.(),
  };
}
