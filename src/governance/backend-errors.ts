import { isLastingFailure } from "../domain/lasting-failure.js";
import { isPromiseLike } from "../domain/promise-like.js";
import { GovernanceBackendError, RequestRejectedError, SourceNotConfiguredError } from "../errors.js";

/**
 * The governor is well and refuses what it was asked: an unknown source name, or something that it can't take. Asked one by
 * one, only what is to blame fails.
 */
export function isOfContent(error: unknown): error is SourceNotConfiguredError | RequestRejectedError {
  return SourceNotConfiguredError.isInstance(error) || RequestRejectedError.isInstance(error);
}

/**
 * How a failure of the governor reaches a caller: an unknown source name as itself (a wrong configuration must reach a
 * human), what it can't take of the request as a rejection, everything else as GovernanceBackendError with the diagnosis in
 * its message.
 */
export function admissionError(
  step: string,
  error: unknown,
  scope: string,
  sourceName?: string,
): SourceNotConfiguredError | RequestRejectedError | GovernanceBackendError {
  if (SourceNotConfiguredError.isInstance(error)) return error;
  // A new one for each caller: they fill in their own operation.
  if (RequestRejectedError.isInstance(error)) return new RequestRejectedError(error.message, { cause: error.cause });
  const isOwn = GovernanceBackendError.isInstance(error);
  return new GovernanceBackendError(isOwn ? error.message : `governor ${step} failed: ${textOf(error)}`, {
    scope,
    cause: isOwn ? error.cause : error,
    isLasting: isLastingFailure(error),
    ...(sourceName === undefined ? {} : { sourceName }),
  });
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Asks the governor something beside a tick; answers as it does, every failure comes as an admission error. */
export function askGovernor<T>(step: string, scope: string, question: () => T | Promise<T>): T | Promise<T> {
  const fail = (error: unknown): never => {
    throw admissionError(step, error, scope);
  };
  try {
    const answer = question();
    return isPromiseLike(answer) ? Promise.resolve(answer).catch(fail) : answer;
  } catch (error) {
    return fail(error);
  }
}
