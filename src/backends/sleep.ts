import type { Runtime } from "../ports/runtime.js";

/** Builds `Runtime.sleep` from a runtime's own timers: one timer and at most one listener, both gone when it settles. */
export function sleepOn(setTimer: Runtime["setTimer"]): Runtime["sleep"] {
  return function sleep(delayMs, signal) {
    if (signal === undefined) {
      return new Promise((resolve) => {
        setTimer(delayMs, resolve);
      });
    }
    if (signal.aborted) return Promise.reject(signal.reason);
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        cancelTimer();
        reject(signal.reason);
      };
      const cancelTimer = setTimer(delayMs, () => {
        signal.removeEventListener("abort", onAbort);
        resolve();
      });
      signal.addEventListener("abort", onAbort, { once: true });
    });
  };
}
