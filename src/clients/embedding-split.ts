import { type PolyGatewayError, RequestRejectedError, ResultInvalidError } from "../errors.js";

/**
 * What follows when a batch of texts was refused, or its answer can't be used: whether a smaller one may do better, and
 * how it is cut.
 */

export type Split =
  /** The batch as a whole failed: fewer texts would change nothing. */
  | { readonly kind: "none" }
  /** One of its texts may be to blame: parts that are tried one after the other. */
  | { readonly kind: "isolate"; readonly cuts: readonly number[] }
  /** More texts than the source takes. `isCertain`: the number was named, not halved. */
  | { readonly kind: "size"; readonly max: number; readonly isCertain: boolean };

const NONE: Split = { kind: "none" };

/** These are about a field of the request, whatever its texts. */
const NOT_ABOUT_TEXTS: ReadonlySet<string> = new Set(["unsupported_param", "unsupported_modality", "model_not_found"]);
const TEXT_PARAM = /input|text|content|prompt/i;

/** Answers to fewer texts may be whole; a width is the same for one text. */
const HEALED_BY_FEWER: ReadonlySet<string> = new Set(["count_mismatch", "bad_index", "bad_vector"]);

/** The texts themselves were refused, so that another batch without one of them may be taken. */
function isAboutTexts(error: RequestRejectedError): boolean {
  const param = error.details?.param;
  return !NOT_ABOUT_TEXTS.has(error.code) && (typeof param !== "string" || TEXT_PARAM.test(param));
}

export interface RefusedBatch {
  /** Places of its texts in the list, [from, to). */
  readonly from: number;
  readonly to: number;
  /** Texts a request of the source that refused, by its profile. */
  readonly profileMax: number | undefined;
  /** An answer that can't be used was paid for: whether the texts are sent once more. */
  readonly resendsInvalid: boolean;
}

export function splitAfter(error: unknown, { from, to, profileMax, resendsInvalid }: RefusedBatch): Split {
  const count = to - from;
  if (count < 2) return NONE;
  const half = Math.ceil(count / 2);
  const halves: Split = { kind: "isolate", cuts: [from + half] };
  if (RequestRejectedError.isInstance(error)) {
    if (!isAboutTexts(error)) return NONE;
    if (error.code !== "batch_too_large") return halves;
    const named = error.details?.limit;
    if (typeof named === "number") {
      // A number that this batch keeps is no limit of batches: something of its texts was counted.
      return named >= 1 && named < count ? { kind: "size", max: named, isCertain: true } : halves;
    }
    if (profileMax !== undefined && profileMax < count) return { kind: "size", max: profileMax, isCertain: true };
    return { kind: "size", max: half, isCertain: false };
  }
  if (!resendsInvalid || !ResultInvalidError.isInstance(error) || !HEALED_BY_FEWER.has(error.code)) return NONE;
  const index = error.details?.index;
  if (typeof index !== "number" || index < from || index >= to) return halves;
  return { kind: "isolate", cuts: [index, index + 1].filter((cut) => cut > from && cut < to) };
}

/** Whether a batch of one text failed for what this text is. */
export function isOfOneText(error: unknown): error is PolyGatewayError {
  if (RequestRejectedError.isInstance(error)) return isAboutTexts(error);
  return ResultInvalidError.isInstance(error) && HEALED_BY_FEWER.has(error.code);
}

/** The error as it was, with the place of the text in the caller's list. */
export function ofText<Failure extends PolyGatewayError>(error: Failure, index: number): Failure {
  return Object.assign(error, { details: { ...error.details, index } });
}
