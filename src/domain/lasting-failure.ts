import { GovernanceBackendError } from "../errors.js";

/** The governance backend refuses, and no waiting mends it. */
export function isLastingFailure(error: unknown): error is GovernanceBackendError {
  return GovernanceBackendError.isInstance(error) && error.isLasting;
}
