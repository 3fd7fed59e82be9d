import { createHash, type Hash } from "node:crypto";
import { countOf } from "../domain/count-of.js";
import { createIdSet } from "./done-set.js";
import { type LineRule, readLine } from "./feed.js";
import { readFileLines } from "./input.js";
import { BatchRefusedError } from "./types.js";

export interface ScanResult {
  /** Lines of this run that can be sent. */
  readonly lines: number;
  readonly badLines: number;
  readonly bytes: number;
  readonly sha256: string;
  /** Hash of the first `prefixBytes`; undefined when the file is shorter. */
  readonly prefixSha256: string | undefined;
}

export interface ScanOptions extends LineRule {
  readonly skipBadLines: boolean;
  /** How long IN was when OUT was begun. */
  readonly prefixBytes: number | undefined;
  /** Asked between reads; true ends the pass with BatchRefusedError `stopped`. */
  readonly stopRequested: () => boolean;
}

const SHOWN_PROBLEMS = 10;

/** The first pass over a regular file: counts its lines and refuses what would cost money for nothing (spec 08). */
export async function scanInput(path: string, options: ScanOptions): Promise<ScanResult> {
  const fingerprint = createFingerprint(options.prefixBytes);
  const reader = readFileLines(path, { onBytes: fingerprint.add });
  const problems: string[] = [];
  const ids = createIdSet();
  let refused = 0;
  let duplicates = 0;
  let badLines = 0;
  let others = 0;
  const refuse = (number: number, problem: string): void => {
    if (refused++ < SHOWN_PROBLEMS) problems.push(`  line ${number}: ${problem}`);
  };
  try {
    for (let raws = await reader.next(); raws !== null; raws = await reader.next()) {
      if (options.stopRequested()) throw stoppedEarly();
      for (const raw of raws) {
        const line = readLine(raw, options);
        const isDue = options.isDue?.(line.id) !== false;
        if (line.kind === "broken") {
          if (!isDue) continue;
          badLines++;
          if (!options.skipBadLines) refuse(line.number, line.problem);
        } else if (!ids.add(line.id)) {
          duplicates++;
          refuse(line.number, `id ${JSON.stringify(line.id)} was used by an earlier line`);
        } else if (!isDue) others++;
      }
    }
  } finally {
    reader.close();
  }
  if (refused > 0) throw brokenInput(path, problems, refused, duplicates);
  return { lines: ids.size - others, badLines, ...fingerprint.end() };
}

export function stoppedEarly(): BatchRefusedError {
  return new BatchRefusedError("stopped", "Stopped before anything was sent.");
}

function brokenInput(path: string, problems: string[], refused: number, duplicates: number): BatchRefusedError {
  const count = countOf(refused, "line");
  const rest = refused > problems.length ? [`  … and ${refused - problems.length} more`] : [];
  return new BatchRefusedError(
    "in_broken",
    [
      `${path} has ${count} that can't be run; nothing was sent:`,
      ...problems,
      ...rest,
      remedyOf(refused - duplicates, duplicates),
    ].join("\n"),
  );
}

function remedyOf(broken: number, duplicates: number): string {
  const unique = "Give every line an id of its own.";
  const fix = "Fix the broken lines, or leave them out with --skip-bad-lines.";
  if (broken === 0) return unique;
  if (duplicates === 0) return fix;
  const repeated = duplicates === 1 ? "the repeated id" : `the ${duplicates} repeated ids`;
  return `${fix} That doesn't help against ${repeated}: a file with them is refused either way. ${unique}`;
}

function createFingerprint(prefixBytes: number | undefined) {
  const hash = createHash("sha256");
  let bytes = 0;
  let prefix: Hash | undefined;
  return {
    add(chunk: Uint8Array): void {
      const cut = prefixBytes === undefined || prefix !== undefined ? -1 : prefixBytes - bytes;
      if (cut >= 0 && cut <= chunk.length) {
        hash.update(chunk.subarray(0, cut));
        prefix = hash.copy();
        hash.update(chunk.subarray(cut));
      } else hash.update(chunk);
      bytes += chunk.length;
    },
    end: () => ({ bytes, sha256: hash.digest("hex"), prefixSha256: prefix?.digest("hex") }),
  };
}
