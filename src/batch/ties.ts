import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { NumberedLines } from "./numbered-lines.js";
import { replaceFile } from "./replace-file.js";
import { BatchRefusedError } from "./types.js";

/** What IN was when OUT was begun. A stream is known by its first line, and by what a run that came to an end had read of it. */
export type InputIdentity =
  | { readonly kind: "file"; readonly path: string; readonly bytes: number; readonly sha256: string }
  | { readonly kind: "stream"; readonly firstLineSha256: string | null; readonly numbered?: NumberedLines };

/** `OUT.pgw.json`: ties OUT to IN and keeps the batch id over all runs. */
export interface Ties {
  readonly version: 1;
  /** session_id of every telemetry row of this batch. */
  readonly batchId: string;
  readonly startedAt: string;
  readonly input: InputIdentity;
  /** The command that writes OUT, with the options that change its lines; absent = `polygateway batch`. */
  readonly writtenBy?: string;
  /** The models whose answers OUT holds, where those of others can't stand beside them. */
  readonly models?: readonly string[];
}

/** undefined when there is no such file; throws BatchRefusedError when it can't be understood. */
export function readTies(path: string): Ties | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw unusable(path, error);
  }
  try {
    const ties = JSON.parse(text) as Ties;
    if (ties.version === 1 && typeof ties.batchId === "string" && ties.input.kind !== undefined) return ties;
  } catch (error) {
    throw unusable(path, error);
  }
  throw unusable(path, undefined);
}

function unusable(path: string, cause: unknown): BatchRefusedError {
  return new BatchRefusedError(
    "out_foreign",
    `${path} is not readable as the file that ties an output to its input. Choose another output, or move both files away.`,
    cause,
  );
}

export function writeTies(path: string, ties: Ties): Promise<void> {
  return replaceFile(path, (write) => write(`${JSON.stringify(ties, undefined, 2)}\n`));
}

export function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/**
 * Is this the IN that OUT belongs to? By content, so that a moved or touched file still is. `grown`: lines were appended.
 * `prefixSha256` is the hash of as many bytes as IN had before.
 */
export function compareInput(
  before: InputIdentity,
  now: InputIdentity,
  prefixSha256?: string,
): "same" | "grown" | "other" {
  if (before.kind === "stream" || now.kind === "stream") return compareStreams(before, now);
  if (before.sha256 === now.sha256) return "same";
  return now.bytes > before.bytes && prefixSha256 === before.sha256 ? "grown" : "other";
}

function compareStreams(before: InputIdentity, now: InputIdentity): "same" | "other" {
  if (before.kind !== "stream" || now.kind !== "stream") return "other";
  // An empty stream says nothing about which one it is.
  const known = before.firstLineSha256 !== null && now.firstLineSha256 !== null;
  return !known || before.firstLineSha256 === now.firstLineSha256 ? "same" : "other";
}
