import type { Refusal, Verdict } from "./classify.js";

/** What only embeddings are refused for: too many texts at once, and a width that a model hasn't got. */

/** More texts in one request than the provider takes. */
const BATCH_WORDING =
  /batch[ _-]?size.{0,60}(?:invalid|larger|exceed|too (?:large|big)|maximum|at most|limit|greater|less than|between|>)|batch (?:is )?too large|max(?:imum)? (?:allowed )?batch[ _-]?size|too many (?:inputs?|texts?|documents?|items?|elements?)\b|(?:number|count) of (?:inputs?|texts?|documents?|items?|requests?).{0,60}(?:at most|exceed|max|larger|limit|must be)|array too long|\b(?:inputs?|texts?|array|list)\b.{0,40}(?:at most|maximum length|no more than|exceeds?).{0,24}\d|at most \d+ (?:requests?|inputs?|texts?|items?) can be|(?:最大|最多|不得超过|不能超过|超过).{0,12}\d+ ?[条个]/i;

const BATCH_LIMIT =
  /(?:larger than|greater than|at most|no more than|up to|max(?:imum)?(?: (?:allowed|number|length|client|batch|input|inputs|size|of|texts)){0,4}(?: is| =|:)?|exceeds?(?: the)?(?: limit| maximum)?(?: of)?|limit(?: is| of)?|between 1 and|最大|最多|超过)[^\d\n]{0,12}(\d{1,7})/i;

const DIMENSIONS_WORDING =
  /(?:does not|doesn't|do not|cannot|can't|not) support.{0,80}\bdimensions?\b|\bdimensions?\b.{0,60}(?:not supported|unsupported|not allowed|not permitted)|(?:unsupported|unknown|unrecognized|unexpected).{0,40}\bdimensions?\b/i;

/** As much of a body without a message is looked at. */
const MAX_PLAIN_UNITS = 4_096;

/** The verdict with what the words say about texts and widths. */
export function refineVerdict(verdict: Verdict, { embedded, text }: Refusal): Verdict {
  const { code, details } = verdict;
  const said = verdict.upstreamMessage ?? text.slice(0, MAX_PLAIN_UNITS);
  const isAboutRequest = code === "bad_request" || code === "unsupported_param";
  // An error without a status inside a 200 counts as the service's own, unless its words say more.
  if (!isAboutRequest && !(embedded && code === "upstream_error")) return verdict;
  if (BATCH_WORDING.test(said)) {
    const limit = BATCH_LIMIT.exec(said)?.[1];
    return {
      ...verdict,
      code: "batch_too_large",
      details: limit === undefined ? details : { ...details, limit: Number(limit) },
    };
  }
  if (isAboutRequest && (details.param === "dimensions" || DIMENSIONS_WORDING.test(said))) {
    return { ...verdict, code: "unsupported_param", details: { ...details, param: "dimensions" } };
  }
  return verdict;
}
