import { maskSecret } from "../domain/secret.js";
import type { Field } from "./field.js";
import { type Labels, written } from "./labels.js";
import { accepted, printable } from "./values.js";

/** Keys and values as they stand in a configuration file: `polygateway.yaml:12 scopes.LLM.sources[0].rpm`. */
export interface FileLabels extends Labels {
  /** Says where an option stands; `name` = how it is called there when that is not its path. */
  locate(path: string, line: number, name?: string): void;
  /** Says how what was given is shown, worked out when somebody asks; undefined = not to be shown. */
  show(path: string, shown: (() => string) | undefined): void;
  shown(path: string): string | undefined;
}

/** `prefix`: what stands above the options in the file, such as `scopes.LLM.`; `line`: where that is. */
export function fileLabels(
  file: string,
  prefix: string,
  line: number,
  fieldOf: (path: string) => Field | undefined,
): FileLabels {
  const places = new Map<string, { readonly line: number; readonly name: string }>();
  const values = new Map<string, () => string>();
  const lineOf = (path: string): number => {
    const place = places.get(path);
    if (place !== undefined) return place.line;
    // What is missing is looked for where its owner stands.
    const owner = path.replace(/(\.[^.[\]]*|\[\d+\])$/, "");
    return owner === path ? line : lineOf(owner);
  };
  const keyOf = (path: string): string =>
    `${printable(file)}:${lineOf(path)} ${shownPath(`${prefix}${places.get(path)?.name ?? path}`)}`;
  return {
    key: keyOf,
    within: (path, place) => (place === "" ? undefined : keyOf(`${path}.${place}`)),
    value(path, value) {
      const given = places.has(path);
      return given
        ? (values.get(path)?.() ?? written(fieldOf(path), value, "ms"))
        : `${written(fieldOf(path), value, "ms")} (default)`;
    },
    given: (path) => values.get(path)?.(),
    unknown: (path) => values.get(path)?.(),
    accepted: acceptedInFile,
    locate(path, at, name = path) {
      places.set(path, { line: at, name });
    },
    show(path, shown) {
      if (shown === undefined) values.delete(path);
      else values.set(path, shown);
    },
    shown: (path) => values.get(path)?.(),
  };
}

/** An option path for people: a secret may have landed where a name belongs. */
export function shownPath(path: string): string {
  return printable(path.replace(/\b(sk|pk|rk)-[\w-]{8,}/g, maskSecret));
}

/** What a field takes in a file, for people. */
export function acceptedInFile(field: Field): string {
  switch (field.kind) {
    case "flag":
      return "true or false (also on, off)";
    case "object":
      return "a mapping like { top_k: 20 }";
    case "headers":
      return "a mapping of texts like { x-team: search }";
    case "transient400":
      return "off, relay or /pattern/";
    case "list":
      return accepted(field, "ms").replace("a list with commas", "a list");
    default:
      return accepted(field, "ms");
  }
}
