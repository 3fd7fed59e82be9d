import { type ResponseScript, scriptForSocket, type UpstreamScript } from "./script.js";

export type ScriptTimes = number | "always";

/** Scripts waiting for requests: queued ones first, in order, then the permanent one. */
export interface ScriptQueue {
  add(script: UpstreamScript, times: ScriptTimes): void;
  clear(): void;
  /**
   * What the next request gets: null = no script, `"reset"` = this reused socket is to be reset; the script then stays
   * for the fresh socket.
   */
  take(earlierRequestsOnSocket: number): ResponseScript | "reset" | null;
}

export function createScriptQueue(): ScriptQueue {
  let queued: { script: UpstreamScript; left: number }[] = [];
  let permanent: UpstreamScript | null = null;
  return {
    add(script, times) {
      if (times === "always") permanent = script;
      else if (Number.isSafeInteger(times) && times >= 1) queued.push({ script, left: times });
      else throw new RangeError(`times must be a whole number of at least 1, or "always"; got ${String(times)}`);
    },
    clear() {
      queued = [];
      permanent = null;
    },
    take(earlierRequestsOnSocket) {
      const next = queued[0];
      const script = next?.script ?? permanent;
      if (script === null || script === undefined) return null;
      const chosen = scriptForSocket(script, earlierRequestsOnSocket);
      if (chosen === null) return "reset";
      if (next !== undefined) {
        next.left -= 1;
        if (next.left === 0) queued.shift();
      }
      return chosen;
    },
  };
}
