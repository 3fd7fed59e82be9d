import type { FinishReason } from "../domain/chat.js";
import { OPENAI_PROFILE } from "../domain/profile.js";
import type { AnswerSchema, Fit } from "./answer-schema.js";
import { type AnswerIssue, preview } from "./issues.js";
import { repairJson } from "./repair.js";
import { type Region, scanText } from "./scan.js";
import { isContainer, parseJson } from "./strict-json.js";

/**
 * Finds the answer in what a model wrote (spec 04 "Reading"): whole text, then what code fences hold, then bracketed
 * regions, then the best of these repaired. Cut output is never completed into an answer.
 */

export type Read =
  | { readonly ok: true; readonly value: unknown }
  | {
      readonly ok: false;
      /** truncated = the output limit cut it · malformed = no whole JSON · schema = JSON that doesn't fit. */
      readonly code: "truncated" | "malformed" | "schema";
      readonly issues: readonly AnswerIssue[];
    };

/** A text that quotes more documents than this is searched in its longest ones. */
const MAX_CANDIDATES = 256;
const MAX_PREVIEW_UNITS = 200;

/** Reasoning that was written into the answer, at its very start only. */
function withoutThinking(text: string): string {
  for (const [open, close] of OPENAI_PROFILE.reasoningTags) {
    if (!text.startsWith(open)) continue;
    const end = text.indexOf(close, open.length);
    return end === -1 ? "" : text.slice(end + close.length).trim();
  }
  return text;
}

function unreadable(code: "truncated" | "malformed", expected: string, text: string): Read {
  const got = text === "" ? "nothing" : preview(text.slice(0, MAX_PREVIEW_UNITS));
  return { ok: false, code, issues: [{ path: "", expected, got }] };
}

function misfit(fit: Fit & { ok: false }): Read {
  return { ok: false, code: "schema", issues: fit.issues };
}

const lengthOf = ({ start, end }: Region): number => end - start;

/** Fenced ones first, each kind in the order of the text. */
function inOrder(regions: readonly Region[]): Region[] {
  let kept = [...regions];
  if (kept.length > MAX_CANDIDATES) {
    kept.sort((a, b) => Number(b.fenced) - Number(a.fenced) || lengthOf(b) - lengthOf(a));
    kept = kept.slice(0, MAX_CANDIDATES).sort((a, b) => a.start - b.start);
  }
  return [...kept.filter((region) => region.fenced), ...kept.filter((region) => !region.fenced)];
}

async function readRepaired(text: string, schema: AnswerSchema): Promise<Read> {
  const { parsed, hadNaN } = repairJson(text);
  if (!parsed.ok) return unreadable("malformed", "valid JSON", text);
  const fit = await schema.fit(parsed.value);
  if (fit.ok) return fit;
  return hadNaN ? unreadable("malformed", "JSON, in which NaN and Infinity are no numbers", text) : misfit(fit);
}

async function readRegions(text: string, regions: readonly Region[], schema: AnswerSchema): Promise<Read> {
  let closest: Read | undefined;
  let broken: Region | undefined;
  for (const region of inOrder(regions)) {
    const parsed = parseJson(text.slice(region.start, region.end));
    if (parsed.ok) {
      const fit = await schema.fit(parsed.value);
      if (fit.ok) return fit;
      closest ??= misfit(fit);
    } else if (broken === undefined || (!broken.fenced && lengthOf(region) > lengthOf(broken))) {
      broken = region;
    }
  }
  if (broken === undefined) return closest ?? unreadable("malformed", "JSON", text);
  const repaired = await readRepaired(text.slice(broken.start, broken.end), schema);
  return repaired.ok || closest === undefined ? repaired : closest;
}

/** Never rejects. `ended` = the finish reason; after `length` only a whole document counts. */
export async function readAnswer(given: string, ended: FinishReason, schema: AnswerSchema): Promise<Read> {
  const text = withoutThinking(given.trim());
  const whole = parseJson(text);
  // The digits of a number may have gone on; a closed bracket ends a document for certain.
  if (whole.ok && (ended !== "length" || isContainer(whole.value))) {
    const fit = await schema.fit(whole.value);
    return fit.ok ? fit : misfit(fit);
  }
  if (ended === "length") return unreadable("truncated", "a complete answer within the output limit", text);
  if (!whole.ok && whole.problem !== "no JSON") return unreadable("malformed", `JSON without ${whole.problem}`, text);
  const { regions, cut } = scanText(text);
  if (cut) return unreadable("malformed", "JSON that is closed at its end", text);
  return readRegions(text, regions, schema);
}
