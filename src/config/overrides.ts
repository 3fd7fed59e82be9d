import { codeLabels, type Labels, lookUp } from "./labels.js";
import type { EmbeddingOptions, GatewayOptions, OcrOptions } from "./options.js";
import { isPlainObject } from "./values.js";

/** Options in code above those of an environment or a file. */
export type Overrides = Partial<Omit<GatewayOptions, "scope">>;
export type EmbeddingOverrides = Partial<Omit<EmbeddingOptions, "scope">>;
export type OcrOverrides = Partial<Omit<OcrOptions, "scope">>;

/** The given options under the overrides: groups (`retry`, `global`, …) field by field, the rest as a whole. */
export function merged(options: Record<string, unknown>, overrides: Record<string, unknown>): GatewayOptions {
  const result: Record<string, unknown> = { ...options };
  for (const [key, value] of Object.entries(overrides)) {
    if (value === undefined) continue;
    const below = result[key];
    result[key] = isPlainObject(below) && isPlainObject(value) ? { ...below, ...value } : value;
  }
  // Its shape is what inspectScope judges next.
  return result as unknown as GatewayOptions;
}

/** What is broken below is of no interest where it was overridden. */
export function notOverridden(broken: ReadonlySet<string>, overrides: Record<string, unknown>): Set<string> {
  return new Set([...broken].filter((path) => lookUp(overrides, path) === undefined));
}

/** What was overridden in code keeps its path and value of code. */
export function overriddenLabels(labels: Labels, overrides: Record<string, unknown>): Labels {
  const code = codeLabels(overrides);
  const of = (path: string): Labels => {
    const isCode =
      lookUp(overrides, path) !== undefined || (path.startsWith("sources") && overrides.sources !== undefined);
    return isCode ? code : labels;
  };
  return {
    key: (path) => of(path).key(path),
    value: (path, value) => of(path).value(path, value),
    given: (path) => of(path).given(path),
    within: (path, place) => of(path).within?.(path, place),
    unknown: (path) => of(path).unknown?.(path),
    accepted: labels.accepted,
  };
}
