import { createWarningLimiter } from "../domain/warning-limiter.js";
import type { Runtime } from "../ports/runtime.js";

/** Answers whether it was said. */
export type Warn = (component: string, kind: string, message: string) => boolean;

/** Warnings of one client: each kind at most once a minute, with the number of those left out (spec 02 §2). */
export function createWarn(runtime: Runtime): Warn {
  const limiter = createWarningLimiter();
  return (component, kind, message) => {
    const said = limiter(component, kind, runtime.now());
    if (said === null) return false;
    const more = said.suppressed === 0 ? "" : ` (${said.suppressed} more of this kind since the last time)`;
    runtime.log("warn", `${message}${more}`, { component, kind, suppressed: said.suppressed });
    return true;
  };
}
