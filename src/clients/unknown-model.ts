import type { OperationKind } from "../domain/record.js";
import type { ScopeConfig } from "../domain/scope.js";
import { RequestRejectedError } from "../errors.js";

/** A model that no source of the scope has. */
export function unknownModel(
  { sources, scope }: Pick<ScopeConfig, "sources" | "scope">,
  model: string | undefined,
  operation?: OperationKind,
): RequestRejectedError {
  const models = [...new Set(sources.map((source) => source.model))].join(", ");
  return new RequestRejectedError(
    `no source of scope ${scope} has the model ${JSON.stringify(model)}; configured: ${models || "none"}`,
    { code: "model_not_found", ...(operation === undefined ? {} : { operation }) },
  );
}
