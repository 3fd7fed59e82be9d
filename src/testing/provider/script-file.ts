import type { ResponseScript, UpstreamScript } from "./script.js";

/** Scripts written by hand are checked before they are played: a typing error would otherwise look like a network fault. */

const RESPONSE_KEYS = ["status", "headers", "headersDelayMs", "chunks", "end", "keepAlive", "closeIdleAfterMs"];
const CHUNK_KEYS = ["delayMs", "utf8", "base64"];
const ENDS = ["close", "reset", "hang"];

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isDelay(value: unknown): boolean {
  return value === undefined || (typeof value === "number" && Number.isFinite(value) && value >= 0);
}

function isHeaderValue(value: unknown): boolean {
  const isSafe = (text: unknown): boolean => typeof text === "string" && !/[\r\n\0]/.test(text);
  return isSafe(value) || (Array.isArray(value) && value.every(isSafe));
}

function unknownKey(record: Record<string, unknown>, known: readonly string[]): string | undefined {
  return Object.keys(record).find((key) => !known.includes(key));
}

function chunkProblem(chunk: unknown): string | null {
  if (!isRecord(chunk)) return "each chunk must be an object";
  const stranger = unknownKey(chunk, CHUNK_KEYS);
  if (stranger !== undefined) return `a chunk has the unknown key ${JSON.stringify(stranger)}`;
  const texts = [chunk.utf8, chunk.base64].filter((text) => text !== undefined);
  if (texts.length !== 1 || typeof texts[0] !== "string") return "each chunk needs one text, utf8 or base64";
  return isDelay(chunk.delayMs) ? null : "delayMs of a chunk must be a number of at least 0";
}

function responseProblem(script: Record<string, unknown>): string | null {
  const { status, headers, chunks, end, keepAlive } = script;
  const stranger = unknownKey(script, RESPONSE_KEYS);
  if (stranger !== undefined) return `unknown key ${JSON.stringify(stranger)}`;
  if (!ENDS.includes(end as string)) return `end must be ${ENDS.join(", ")}`;
  if (status !== undefined && !(Number.isInteger(status) && Number(status) >= 200 && Number(status) <= 599)) {
    return "status must be a whole number from 200 to 599";
  }
  if (headers !== undefined && !(isRecord(headers) && Object.values(headers).every(isHeaderValue))) {
    return "headers must be an object of texts or lists of texts, without line breaks";
  }
  if (!isDelay(script.headersDelayMs)) return "headersDelayMs must be a number of at least 0";
  if (!isDelay(script.closeIdleAfterMs)) return "closeIdleAfterMs must be a number of at least 0";
  if (keepAlive !== undefined && typeof keepAlive !== "boolean") return "keepAlive must be true or false";
  if (chunks === undefined) return null;
  if (!Array.isArray(chunks)) return "chunks must be a list";
  return chunks.map(chunkProblem).find((problem) => problem !== null) ?? null;
}

function readScript(value: unknown): UpstreamScript | string {
  if (!isRecord(value)) return "a script must be an object";
  if (isRecord(value.upstream)) return readScript(value.upstream);
  if (!("reusedSocket" in value)) return responseProblem(value) ?? (value as unknown as ResponseScript);
  const stranger = unknownKey(value, ["reusedSocket", "freshSocket"]);
  if (stranger !== undefined) return `unknown key ${JSON.stringify(stranger)}`;
  if (value.reusedSocket !== "reset-before-response") return "reusedSocket must be reset-before-response";
  if (!isRecord(value.freshSocket)) return "freshSocket must be a script";
  return responseProblem(value.freshSocket) ?? (value as unknown as UpstreamScript);
}

/**
 * Reads upstream scripts from text: one JSON object, a JSON list, or one object a line; records with an `upstream` field
 * count as that field. @throws Error that names the script and what is wrong with it.
 */
export function parseScripts(text: string): UpstreamScript[] {
  return valuesIn(text).map((value, index) => {
    const script = readScript(value);
    if (typeof script === "string") throw new Error(`script ${index + 1}: ${script}`);
    return script;
  });
}

function valuesIn(text: string): unknown[] {
  let values: unknown[];
  try {
    const whole: unknown = JSON.parse(text);
    values = Array.isArray(whole) ? whole : [whole];
  } catch {
    const lines = text.split("\n").filter((line) => line.trim() !== "");
    values = lines.map((line, index) => parseLine(line, index + 1));
  }
  if (values.length === 0) throw new Error("it holds no script");
  return values;
}

function parseLine(line: string, number: number): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new Error(`line ${number} is not valid JSON`);
  }
}
