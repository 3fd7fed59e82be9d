import type { ErrorCode } from "../../errors.js";

/**
 * What the words of a MonkeyOCR server mean (reference-providers §1.1). It answers 200 to nearly everything: failures stand
 * in `message`, in the content itself, or within a span of a page.
 */

/**
 * `limited`: its queue is full · `transient`: it failed in a way that may pass · `rejected`: this request fails everywhere
 * on such a server · `invalid`: it works, but this answer can't be used.
 */
export interface ServerVerdict {
  readonly kind: "limited" | "transient" | "rejected" | "invalid";
  readonly code: ErrorCode;
}

const LIMITED: ServerVerdict = { kind: "limited", code: "rate_limit" };
/** It answers, but can't read anything yet: each such answer is a failure for the breaker. */
const NOT_READY: ServerVerdict = { kind: "transient", code: "overloaded" };
const FAILED: ServerVerdict = { kind: "transient", code: "upstream_error" };
/** Another server may take such a file. */
const WRONG_TYPE: ServerVerdict = { kind: "rejected", code: "unsupported_modality" };
const BAD_REQUEST: ServerVerdict = { kind: "rejected", code: "bad_request" };
const USELESS: ServerVerdict = { kind: "invalid", code: "malformed" };

const UNSUPPORTED = /unsupported file type/i;
const QUEUE_FULL = /queue (?:is )?full/i;
const UNREADY = /not (?:been )?(?:initiali[sz]ed|loaded)|model (?:is )?(?:still )?loading/i;
const TIMEOUT = /(?:request|item|batch) timeout|timed out/i;
const MEMORY = /\bcuda\b|out of memory|\boom\b|cublas|\bnccl\b/i;
/** Words that say of the server, wherever they stand, that it failed. */
const EXPLAINED = [QUEUE_FULL, UNREADY, TIMEOUT, MEMORY];
/** An inner refusal that the server wrapped in one of its own. */
const INNER_400 = /\b4(?:00|13|15|22):/;

/** What a failure says of itself, whatever its status: a 500, or `success: false` within a 200. */
export function failureVerdict(text: string): ServerVerdict {
  if (UNSUPPORTED.test(text)) return WRONG_TYPE;
  if (QUEUE_FULL.test(text)) return LIMITED;
  if (UNREADY.test(text)) return NOT_READY;
  if (TIMEOUT.test(text) || MEMORY.test(text)) return FAILED;
  return INNER_400.test(text) ? BAD_REQUEST : FAILED;
}

const ERROR_TEXT = /^Error: /;
/** A document of several pages is joined by blank lines: a page that failed stands in the middle. */
const ERROR_PAGE = /(?:^|\n\n)(Error: Request (?:queue full|timeout))(?=\n\n|$)/;

/**
 * The failure that stands where a text should be; null = this is a text. Back ends answer `Error: Request queue full`,
 * `Error: Request timeout` and `Error: <exception>` with success. What the words don't explain is a useless answer of a
 * server that works: a page may really begin so.
 */
export function contentVerdict(text: string): ServerVerdict | null {
  const page = ERROR_PAGE.exec(text)?.[1];
  if (page !== undefined) return failureVerdict(page);
  if (!ERROR_TEXT.test(text)) return null;
  return EXPLAINED.some((words) => words.test(text)) ? failureVerdict(text) : USELESS;
}

/** Stands as content where a file of the wanted kind isn't there. */
export const PLACEHOLDER = /^(?:No .{1,80} file found|Unknown return_type: )/;
