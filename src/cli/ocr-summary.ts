import type { BatchExitCode, BatchSummary } from "../batch/types.js";
import type { UnreadFile } from "../documents/pages.js";
import { plural } from "./format.js";
import type { ExportedFiles } from "./ocr-files.js";

/** How a run over pages ended, for people and for programs. */

export interface OcrEnd {
  readonly summary: BatchSummary;
  readonly exported: ExportedFiles;
  readonly unreadFiles: readonly UnreadFile[];
}

/** 0 all read · 1 could not run · 2 pages or files were not read · 3 gave up or was stopped. */
export function exitCodeOf({ summary, unreadFiles }: OcrEnd): BatchExitCode {
  return summary.exitCode === 0 && unreadFiles.length > 0 ? 2 : summary.exitCode;
}

const MOST_SHOWN = 20;

/** What was not read and why, and where everything is. */
export function endLines({ exported, unreadFiles }: OcrEnd): string[] {
  const { unread, documents } = exported;
  const written = documents.flatMap((document) => document.written);
  const left = documents.reduce((sum, document) => sum + document.left, 0);
  return [
    ...atMost(unreadFiles, "more file", ({ message }) => `Not read: ${message}`),
    ...atMost(unread, "more page", ({ document, page, message }) => `Not read: ${document}, page ${page}: ${message}`),
    ...(left > 0 ? [`${plural(left, "page")} still to be read.`] : []),
    ...(written.length > 0 ? [`Written: ${written.join(", ")}`] : []),
  ];
}

function atMost<T>(items: readonly T[], more: string, text: (item: T) => string): string[] {
  const hidden = items.length - MOST_SHOWN;
  return [
    ...items.slice(0, MOST_SHOWN).map(text),
    ...(hidden > 0 ? [`… and ${plural(hidden, more)}; --json and the .json files name all.`] : []),
  ];
}

/** Documented in docs/guide/ocr.md; fields are only ever added. */
export function ocrJson(end: OcrEnd, folder: string): string {
  const { summary, exported, unreadFiles } = end;
  const total = (field: "pages" | "read" | "failed" | "left"): number =>
    exported.documents.reduce((sum, document) => sum + document[field], 0);
  return JSON.stringify(
    {
      exitCode: exitCodeOf(end),
      stop: summary.stop,
      folder,
      session: summary.batchId,
      pages: {
        total: total("pages"),
        read: total("read"),
        failed: total("failed"),
        left: total("left"),
        fromEarlierRuns: summary.skipped,
      },
      files: exported.documents.map(({ name, ...document }) => ({ file: name, ...document })),
      failedPages: exported.unread.map(({ document, ...page }) => ({ file: document, ...page })),
      unreadFiles: unreadFiles.map(({ given, message }) => ({ file: given, message })),
      attempts: summary.attempts,
      tokens: summary.tokens,
      cost: summary.cost,
      elapsedMs: Math.round(summary.elapsedMs),
    },
    null,
    2,
  );
}
