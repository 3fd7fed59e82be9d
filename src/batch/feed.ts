import { createIdSet, type IdSet } from "./done-set.js";
import type { BatchForm } from "./form.js";
import type { LineReader } from "./input.js";
import { type LineKind, modelOf, withoutModel } from "./kinds/kinds.js";
import type { BatchLine, BrokenLine, RawLine } from "./lines.js";
import { createLineDigest, type NumberedLines } from "./numbered-lines.js";

export type FeedLine = BatchLine | BrokenLine;

/** How a line of IN is read. */
export interface LineRule {
  readonly parse: BatchForm["parse"];
  readonly scope: string;
  /** Lines of another kind are broken. */
  readonly kind: LineKind;
  /** Configured models of the scope. */
  readonly models: readonly string[];
  /** A line with another model is broken; else its model is left out. */
  readonly strictModel: boolean;
  /** false: the line with this id is none of this run's. Default: all are. */
  readonly isDue?: ((lineId: string) => boolean) | undefined;
  /** Called for each model that is left out. */
  readonly onIgnoredModel: (model: string) => void;
}

/** Reads a line, and settles its kind and its model against what the scope has (spec 08). */
export function readLine(raw: RawLine, rule: LineRule): FeedLine {
  const line = rule.parse(raw);
  if (line.kind === "broken") return line;
  const { request } = line;
  if (request.kind !== rule.kind) {
    const problem = `${KINDS[request.kind]} line, but scope ${rule.scope} is for ${SCOPES[rule.kind]}: name another with --scope`;
    return { kind: "broken", number: line.number, id: line.id, problem };
  }
  const model = modelOf(request);
  if (model === undefined || rule.models.includes(model)) return line;
  if (!rule.strictModel) {
    rule.onIgnoredModel(model);
    return { ...line, request: withoutModel(request) };
  }
  const problem = `no source has the model ${JSON.stringify(model)} (configured: ${rule.models.join(", ")})`;
  return { kind: "broken", number: line.number, id: line.id, problem };
}

const KINDS: Readonly<Record<LineKind, string>> = { chat: "a chat", embedding: "an embedding", ocr: "an OCR" };
const SCOPES: Readonly<Record<LineKind, string>> = { chat: "chat", embedding: "embeddings", ocr: "OCR" };

/** Lines still to be done, lazily. A broken one becomes a failure line. */
export interface Feed {
  /** null at the end; possibly empty. One call at a time. */
  next(): Promise<readonly FeedLine[] | null>;
  close(): void;
  /** Broken lines of a stream left out so far. */
  readonly badLines: number;
  /** Of a stream: what a later run has to find in it. */
  readonly numbered?: NumberedLines | undefined;
}

export interface FeedOptions extends LineRule {
  readonly done: IdSet;
  readonly skipBadLines: boolean;
  /** No first pass has looked for duplicate ids and counted the broken lines: do it here. */
  readonly isStream: boolean;
  /** What an earlier run had read of the stream. */
  readonly earlier?: NumberedLines | undefined;
}

export function createFeed(reader: LineReader, options: FeedOptions): Feed {
  const { done } = options;
  const seen = options.isStream ? createIdSet() : undefined;
  const digest = options.isStream ? createLineDigest(options.earlier) : undefined;
  let badLines = 0;

  function duplicate(line: FeedLine): BrokenLine {
    const problem = `id ${JSON.stringify(line.id)} was used by an earlier line`;
    // An id of its own: the earlier line's must stand in OUT once.
    return { kind: "broken", number: line.number, id: `line-${line.number}`, problem };
  }

  function admit(raw: RawLine): FeedLine | undefined {
    const line = readLine(raw, options);
    digest?.add(raw, line.id === `line-${raw.number}`);
    if (options.isDue?.(line.id) === false) return undefined;
    if (line.kind === "broken" && options.skipBadLines) {
      if (options.isStream) badLines++;
      return undefined;
    }
    const own = seen === undefined || seen.add(line.id) ? line : duplicate(line);
    return done.has(own.id) ? undefined : own;
  }

  return {
    async next() {
      const lines = await reader.next();
      if (lines === null) digest?.end();
      return lines === null ? null : lines.map(admit).filter((line) => line !== undefined);
    },
    close: () => reader.close(),
    get badLines() {
      return badLines;
    },
    get numbered() {
      return digest?.seen;
    },
  };
}
