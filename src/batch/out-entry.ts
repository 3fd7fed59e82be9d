import type { RawLine } from "./lines.js";

/** A result line of OUT. */
export interface OutEntry {
  readonly lineId: string;
  /** Id of the attempt that answered; of a failure line, an id of its own. */
  readonly callId: string;
  readonly failed: boolean;
}

const ID_PREFIX = "batch_req_";

/** What a line of OUT says in OpenAI's form; undefined = it is no result line. */
export function entryOf(raw: RawLine): OutEntry | undefined {
  const line = objectIn(raw);
  if (line?.error === undefined) return undefined;
  const { id, custom_id: lineId } = line;
  if (typeof lineId !== "string" || typeof id !== "string" || !id.startsWith(ID_PREFIX)) return undefined;
  return { lineId, callId: id.slice(ID_PREFIX.length), failed: line.error !== null };
}

/** The JSON object that a line is; undefined = it is none. */
export function objectIn(raw: RawLine): Record<string, unknown> | undefined {
  if ("problem" in raw) return undefined;
  try {
    const line: unknown = JSON.parse(raw.text);
    return typeof line === "object" && line !== null ? (line as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
