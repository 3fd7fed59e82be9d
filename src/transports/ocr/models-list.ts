import type { SourceConfig } from "../../domain/source.js";
import { isFields } from "../openai/message-fields.js";
import type { WireTarget } from "../openai/source-wire.js";
import { objectsOf } from "./json-answer.js";

export const MODELS_PATH = "/models";

/** The cheapest question to a server of the OpenAI kind: it needs the key, and costs nothing. */
export const MODELS_TARGET: WireTarget = { pathOf: () => MODELS_PATH, accept: "application/json" };

/** What a list of models says of this source. A model that isn't listed may work all the same, as aliases do. */
export function describeModels({ model }: SourceConfig): (answer: unknown) => string {
  return (answer) => {
    const { objects } = objectsOf(isFields(answer) ? answer.data : undefined);
    if (objects.length === 0) return "answers";
    return objects.some(({ id }) => id === model)
      ? "answers, and lists the model"
      : "answers, but doesn't list the model";
  };
}
