import { isLastingFailure } from "../domain/lasting-failure.js";
import { GovernanceBackendError } from "../errors.js";
import type { CancelTimer, Runtime } from "../ports/runtime.js";
import type { BatchClient, BatchProgress } from "./types.js";

/** What was last heard of the scope. */
export type ScopeNow = Pick<BatchProgress, "snapshot" | "limitsAway">;

export interface ProgressReporter {
  readonly scope: ScopeNow;
  refresh(): Promise<void>;
  stop(): void;
}

/** Calls `emit` now and then with the newest snapshot. A snapshot that is late or fails only leaves the older one. */
export function reportProgress(
  client: BatchClient,
  runtime: Runtime,
  everyMs: number,
  emit: ((scope: ScopeNow) => void) | undefined,
): ProgressReporter {
  let scope: ScopeNow = { snapshot: null, limitsAway: false };
  let cancel: CancelTimer | undefined;
  let asking = false;

  async function refresh(): Promise<void> {
    if (asking) return;
    asking = true;
    try {
      scope = { snapshot: await client.snapshot(), limitsAway: false };
    } catch (error) {
      // The figures of the last one still stand. For what no waiting mends no call waits.
      scope = { ...scope, limitsAway: GovernanceBackendError.isInstance(error) && !isLastingFailure(error) };
    } finally {
      asking = false;
    }
  }

  function tick(): void {
    void refresh();
    emit?.(scope);
    cancel = runtime.setTimer(everyMs, tick);
  }

  if (emit !== undefined) tick();
  return {
    get scope() {
      return scope;
    },
    refresh,
    stop: () => cancel?.(),
  };
}
