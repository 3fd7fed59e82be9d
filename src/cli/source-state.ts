import type { SourceSnapshot } from "../domain/tick.js";
import { formatDuration } from "./format.js";
import { printable, type Style } from "./terminal.js";

/** A state without its reason: `full` of "full: no free place". Colours stay. */
export function stateWord(state: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the colour ends with an escape sequence
  return state.replace(/(?:: |, next ).*?(?=\u001b\[\d+m$|$)/s, "");
}

/** What a source is doing, in words; a text of the other side stays on one line. */
export function sourceState(source: SourceSnapshot, style: Style): string {
  const last = source.lastError ? printable(source.lastError.message).replace(/\s+/g, " ") : "";
  if (source.dead) return style.red(`dead: ${last || "key, model or endpoint refused"}`);
  if (source.state === "open") {
    const resting = `resting ${formatDuration(source.openForMs)}`;
    return style.yellow(last === "" ? resting : `${resting}: ${last}`);
  }
  if (source.state === "half_open") return style.yellow(source.probeInFlight ? "probing" : "waiting for a probe");
  if (source.coolingMs > 0) return style.yellow(`rate-limited, ${formatDuration(source.coolingMs)}`);
  return style.green("ok");
}
