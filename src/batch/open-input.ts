import { createReadStream } from "node:fs";
import type { LineRule } from "./feed.js";
import { type LineReader, peekFirstLine, readFileLines, readLines } from "./input.js";
import { type Places, unreadableInput } from "./places.js";
import { type ScanResult, scanInput, stoppedEarly } from "./scan.js";
import { type InputIdentity, sha256 } from "./ties.js";
import { type BatchOptions, BatchRefusedError } from "./types.js";

/** IN as the loop will read it. */
export interface OpenInput {
  readonly reader: LineReader;
  readonly identity: InputIdentity;
  /** undefined for a stream: it can be read only once. */
  readonly scan: ScanResult | undefined;
}

/** Looks through a regular file, or waits for the first line of a stream. `prefixBytes` = size of IN when OUT was begun. */
export async function openInput(
  places: Places,
  options: BatchOptions,
  rule: LineRule,
  prefixBytes: number | undefined,
): Promise<OpenInput> {
  const stopRequested = () => options.drainSignal?.aborted === true || options.abortSignal?.aborted === true;
  try {
    return places.inIsFile ? await openFile(options, rule, prefixBytes, stopRequested) : await openStream(options);
  } catch (error) {
    if (stopRequested()) throw stoppedEarly();
    throw BatchRefusedError.isInstance(error) ? error : unreadableInput(places.inName, error);
  }
}

async function openFile(
  { inPath, skipBadLines = false }: BatchOptions,
  rule: LineRule,
  prefixBytes: number | undefined,
  stopRequested: () => boolean,
): Promise<OpenInput> {
  const scan = await scanInput(inPath, { ...rule, skipBadLines, prefixBytes, stopRequested });
  const reader = readFileLines(inPath, { byteLimit: scan.bytes });
  return { reader, scan, identity: { kind: "file", path: inPath, bytes: scan.bytes, sha256: scan.sha256 } };
}

async function openStream({ inPath, stdin, drainSignal, abortSignal }: BatchOptions): Promise<OpenInput> {
  const stream = inPath === "-" && stdin !== undefined ? stdin : createReadStream(inPath);
  const whole = readLines(stream);
  const signals = [drainSignal, abortSignal].filter((signal) => signal !== undefined);
  for (const signal of signals) signal.addEventListener("abort", whole.close);
  try {
    const { first, reader } = await peekFirstLine(whole);
    const firstLineSha256 = first !== undefined && "text" in first ? sha256(first.text) : null;
    return { reader, scan: undefined, identity: { kind: "stream", firstLineSha256 } };
  } finally {
    for (const signal of signals) signal.removeEventListener("abort", whole.close);
  }
}
