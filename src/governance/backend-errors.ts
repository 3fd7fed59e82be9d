import { GovernanceBackendError, SourceNotConfiguredError } from "../errors.js";

/**
 * How a failure of the governor reaches a caller: an unknown source name as itself (a wrong configuration must reach a
 * human), everything else as GovernanceBackendError with the diagnosis in its message.
 */
export function admissionError(
  step: string,
  error: unknown,
  scope: string,
  sourceName?: string,
): SourceNotConfiguredError | GovernanceBackendError {
  if (SourceNotConfiguredError.isInstance(error) || GovernanceBackendError.isInstance(error)) return error;
  return new GovernanceBackendError(`governor ${step} failed: ${textOf(error)}`, {
    scope,
    cause: error,
    ...(sourceName === undefined ? {} : { sourceName }),
  });
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Asks the governor something beside a tick; every failure comes as an admission error. */
export async function askGovernor<T>(step: string, scope: string, question: () => T | Promise<T>): Promise<T> {
  try {
    return await question();
  } catch (error) {
    throw admissionError(step, error, scope);
  }
}
