import { existsSync, readFileSync } from "node:fs";
import type { ScriptChunk } from "../../src/testing/index.js";

/** Whole streams, one JSON chunk a line: the repository's own, and recorded ones where they are. */

export interface ExpectedAnswer {
  readonly name: string;
  readonly content: string;
  readonly thinking: string;
  readonly toolCalls: readonly unknown[];
  readonly finishReason: string;
  readonly usage: Readonly<
    Record<"promptTokens" | "completionTokens" | "reasoningTokens" | "cachedPromptTokens", number | null>
  >;
  readonly modelReported: string;
}

export interface Recording extends ExpectedAnswer {
  readonly frames: readonly string[];
}

function load(directory: URL): Recording[] {
  const expected = JSON.parse(readFileSync(new URL("expected.json", directory), "utf8")) as ExpectedAnswer[];
  return expected.map((entry) => {
    const lines = readFileSync(new URL(`${entry.name}.jsonl`, directory), "utf8").split("\n");
    return { ...entry, frames: lines.filter((line) => line !== "") };
  });
}

export const writtenStreams = load(new URL("../data/streams/", import.meta.url));

/** Third-party data beside the repository: present in CI, never copied. null = not here. */
export function recordedCaptures(): readonly Recording[] | null {
  const directory = new URL("../../../shared/captures/", import.meta.url);
  if (existsSync(directory)) return load(directory);
  if (process.env.CI) throw new Error("../shared/captures is missing, but CI must have it");
  console.log("captures skipped: ../shared/captures is not here (third-party data, not part of the repository)");
  return null;
}

export interface Framing {
  readonly newline?: string;
  /** A comment before every event. */
  readonly comments?: boolean;
}

/** The bytes a server sends for these frames, `[DONE]` included. */
export function wireBytes({ frames }: Recording, { newline = "\n", comments = false }: Framing = {}): Buffer {
  const lead = comments ? `: keep-alive${newline}${newline}` : "";
  return Buffer.from([...frames, "[DONE]"].map((frame) => `${lead}data: ${frame}${newline}${newline}`).join(""));
}

/** One chunk a write. */
export function slices(bytes: Buffer, size: number): ScriptChunk[] {
  const chunks: ScriptChunk[] = [];
  for (let at = 0; at < bytes.length; at += size) {
    chunks.push({ base64: bytes.toString("base64", at, Math.min(bytes.length, at + size)) });
  }
  return chunks;
}

/** Byte offset behind every event. */
export function eventEnds({ frames }: Recording): number[] {
  let at = 0;
  return [...frames, "[DONE]"].map((frame) => {
    at += Buffer.byteLength(`data: ${frame}\n\n`);
    return at;
  });
}

/** Where the last finish_reason of the stream is complete: from here on nothing of the answer is missing. */
export function finishedAt(recording: Recording): number {
  const last = recording.frames.findLastIndex((frame) => /"finish_reason":\s*"[^"]/.test(frame));
  return eventEnds(recording)[last]! - 2;
}
