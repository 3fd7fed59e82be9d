import { expect, test } from "vitest";
import {
  ConfigError,
  type ErrorCode,
  RequestRejectedError,
  ResultInvalidError,
  SourceDeadError,
  TransientError,
} from "../errors.js";
import { judge } from "./judgement.js";

const rejectedWith = (code: ErrorCode, details?: Record<string, unknown>) =>
  new RequestRejectedError("400", { code, ...(details === undefined ? {} : { details }) });

/** Spec 12 answer 3 and 02 §1: one table from class to breaker, row and loop. */
test.each([
  ["transient", new TransientError("500"), "transient", "failure", "transient"],
  ["a timeout", new TransientError("slow", { code: "timeout" }), "transient", "failure", "transient"],
  ["a cut stream", new TransientError("cut", { code: "truncated" }), "transient", "failure", "transient"],
  ["rate-limited", new TransientError("429", { rateLimited: true }), "rate_limited", "alive", "rate_limited"],
  [
    "a stale socket",
    new TransientError("reset", { code: "stale_socket" }),
    "stale_socket",
    "cancelled",
    "stale_socket",
  ],
  ["dead", new SourceDeadError("401"), "dead", "dead", "source_dead"],
  ["rejected", rejectedWith("bad_request"), "rejected", "alive", "rejected"],
  ["content filtered", rejectedWith("content_filtered"), "rejected", "alive", "rejected"],
  ["a context overflow", rejectedWith("context_length"), "rejected_by_model", "alive", "rejected"],
  ["too large for the tier", rejectedWith("request_too_large_for_tier"), "rejected_by_model", "alive", "rejected"],
  ["an unsupported modality", rejectedWith("unsupported_modality"), "rejected_by_model", "alive", "rejected"],
  [
    "a refused parameter of ours",
    rejectedWith("unsupported_param", { droppedByUs: true }),
    "param_repaired",
    "alive",
    "rejected",
  ],
  ["a refused parameter of the caller", rejectedWith("unsupported_param"), "rejected", "alive", "rejected"],
  ["invalid", new ResultInvalidError("no schema"), "invalid", "success", "invalid"],
  ["an error of ours that no transport throws", new ConfigError([]), "transient", "failure", "transient"],
  ["anything unknown", new Error("?"), "transient", "failure", "transient"],
  ["not even an error", undefined, "transient", "failure", "transient"],
])("%s", (_, error, failure, outcome, recordOutcome) => {
  expect(judge(error)).toEqual({ failure, outcome, recordOutcome });
});
