import { type PolyGatewayError, RequestRejectedError, TransientError } from "../../errors.js";
import { bodyDigest, composeMessage } from "../body-digest.js";
import type { Refusal, Verdict } from "../openai/classify.js";
import { shownName } from "../openai/judge.js";
import type { WholeBody } from "../openai/whole-answer.js";
import { invalidAnswer } from "./ask.js";
import type { ServerVerdict } from "./monkey-ocr-verdict.js";

/** The typed error of a failure that a server told within a 200. `text` = its words. */
export function verdictError(answer: WholeBody, { kind, code }: ServerVerdict, text: string): PolyGatewayError {
  const { sourceName, statusCode, redact } = answer;
  const words = bodyDigest(redact(text));
  if (kind === "invalid") return invalidAnswer(answer, code, words);
  const options = { code, sourceName, statusCode, upstreamMessage: words };
  const composed = (label: Parameters<typeof composeMessage>[1]) =>
    composeMessage(shownName(answer), label, statusCode, words);
  if (kind === "rejected") return new RequestRejectedError(composed("request rejected"), options);
  if (kind === "transient") return new TransientError(composed("transient failure"), options);
  return new TransientError(composed("rate limited"), { ...options, details: LIMITED_BY, rateLimited: true });
}

/** A queue holds what is in progress: fewer at once is the cure, and it empties within moments. */
const LIMITED_BY = { limitedBy: "concurrency" };

/** Statuses by which a server tells its own failures; the others mean what they always mean. */
const OWN_STATUSES = new Set([400, 415, 422, 500]);

/** For servers that are asked for no model: whatever isn't found there is the address. */
export function notFoundIsAddress(verdict: Verdict): Verdict {
  return verdict.code === "model_not_found" ? { ...verdict, code: "endpoint_not_found" } : verdict;
}

/** The common verdict on a refusal, with what this server's words say beyond it; a failure told within a 200 is its own. */
export function refinedBy(judge: (text: string) => ServerVerdict): (verdict: Verdict, refusal: Refusal) => Verdict {
  return (seen, { statusCode, embedded, text }) => {
    const verdict = notFoundIsAddress(seen);
    if (!embedded && !OWN_STATUSES.has(statusCode)) return verdict;
    const { kind, code } = judge(verdict.upstreamMessage ?? text);
    // A status of the request's fault stays one: its words can only say which.
    if (!embedded && statusCode < 500) return code === "unsupported_modality" ? { ...verdict, code } : verdict;
    if (kind !== "limited") return { ...verdict, code, rateLimited: false };
    return { ...verdict, code, rateLimited: true, details: { ...verdict.details, ...LIMITED_BY } };
  };
}
