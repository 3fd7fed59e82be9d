import { GatewayUnavailableError } from "../errors.js";
import type { BatchSnapshot } from "./types.js";

/** Why nothing is answered, in the words of the sources: what the scope makes of them rarely tells a person what to do. */

const SHOWN_SOURCES = 4;
const MAX_WORDS_CHARS = 200;

/** A server's answer may be long and have lines of its own. */
function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > MAX_WORDS_CHARS ? `${line.slice(0, MAX_WORDS_CHARS - 1)}…` : line;
}

/** "" when no source said anything. */
function inWordsOf(sources: readonly (readonly [name: string, message: string | undefined])[]): string {
  const said = sources.flatMap(([name, message]) => {
    if (message === undefined) return [];
    return [oneLine(message.startsWith(name) ? message : `${name}: ${message}`)];
  });
  const more = said.length - SHOWN_SOURCES;
  return [...said.slice(0, SHOWN_SOURCES), ...(more > 0 ? [`and ${more} more`] : [])].join("; ");
}

export function describeTrouble(error: unknown): string {
  if (GatewayUnavailableError.isInstance(error)) {
    const reasons = Object.entries(error.perSourceReasons);
    const said = inWordsOf(reasons.map(([name, { lastError }]) => [name, lastError?.message]));
    if (said !== "") return said;
  }
  return error instanceof Error ? error.message : String(error);
}

/** A sentence to go on with after why a run ends; "" when nothing is known. */
export function lastReason(trouble: string): string {
  if (trouble === "") return "";
  return ` The last reason: ${trouble}${/[.!?]$/.test(trouble) ? "" : "."}`;
}

/** What the sources said last, whoever asked them; "" when they said nothing. */
export function troubleIn({ sources }: BatchSnapshot): string {
  return inWordsOf(sources.map(({ name, lastError }) => [name, lastError?.message]));
}
