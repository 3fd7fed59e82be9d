import { RequestRejectedError } from "../../errors.js";
import { OUTPUT_LIMIT, THINKING, type VlmChoices } from "./vlm-request.js";

/**
 * A refusal of what we chose is remembered in `dropped`, and told as `unsupported_param` with `details.droppedByUs`: the
 * next attempt leaves it out. Every other error is handed back as it is.
 */
export function repaired(error: unknown, choices: VlmChoices, dropped: Set<string>): unknown {
  if (!RequestRejectedError.isInstance(error)) return error;
  const { details = {} } = error;
  if (error.code === "unsupported_param" && details.droppedByUs === true) {
    const { param } = details;
    if (typeof param === "string" && choices.ownFields.includes(param)) dropped.add(param);
    return error;
  }
  if (choices.switchesThinking && details.translation === true) return again(error, THINKING, dropped);
  // Room for the longest page may be more than this server has; without a limit it takes what is left.
  if (choices.limitsOutput && error.code === "context_length") return again(error, OUTPUT_LIMIT, dropped);
  return error;
}

function again(error: RequestRejectedError, param: string, dropped: Set<string>): RequestRejectedError {
  dropped.add(param);
  const { message, sourceName, statusCode, bodyText, upstreamMessage } = error;
  return new RequestRejectedError(message, {
    code: "unsupported_param",
    ...(sourceName === undefined ? {} : { sourceName }),
    ...(statusCode === undefined ? {} : { statusCode }),
    bodyText,
    ...(upstreamMessage === undefined ? {} : { upstreamMessage }),
    details: { ...error.details, param, droppedByUs: true },
    cause: error,
  });
}
