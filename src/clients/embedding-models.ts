import type { ScopeConfig } from "../domain/scope.js";
import type { EmbedRun } from "./embedding-operation.js";
import { unknownModel } from "./unknown-model.js";

export type ModelSources = Pick<EmbedRun, "sources" | "candidates" | "countsTokens">;

/**
 * The sources that a call may go to; one object per model, because equal calls are recognised by its arrays. Throws
 * RequestRejectedError for a model that no source has.
 */
export function createModelSources(config: ScopeConfig): (model?: string) => ModelSources {
  const { sources, global } = config;
  const select = (model: string | undefined): ModelSources => {
    const able = model === undefined ? sources : sources.filter((source) => source.model === model);
    const countsTokens = global.tpm > 0 || able.some((source) => source.tpm > 0);
    return { sources: able, candidates: able.map(({ name }) => name), countsTokens };
  };
  const models = [undefined, ...sources.map(({ model }) => model)];
  const selections = new Map(models.map((model) => [model, select(model)]));
  return (model) => {
    const selection = selections.get(model);
    if (selection !== undefined) return selection;
    throw unknownModel(config, model, "embedding");
  };
}
