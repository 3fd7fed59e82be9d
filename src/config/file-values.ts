import { dirname, isAbsolute, join } from "node:path";
import { type EnvReading, readSecretFile, show } from "./env-reading.js";
import { parseText } from "./env-values.js";
import type { Field } from "./field.js";
import { acceptedInFile, type FileLabels } from "./file-labels.js";
import { below, type MapTree, type ScalarTree, type Tree } from "./file-tree.js";
import { interpolate, isInterpolated } from "./interpolate.js";
import { readFlags } from "./profile-shape.js";
import { quoted, unknownField } from "./values.js";

/** One part of a file being read: the options of a scope, or the settings of the process. */
export interface SectionReading {
  /** As it was given; relative paths in the file start at its folder. */
  readonly file: string;
  readonly labels: FileLabels;
  readonly env: EnvReading;
  /** Option paths that are reported as broken. */
  readonly broken: Set<string>;
  /** Variables that `${…}` asked for. */
  readonly used: Set<string>;
  readonly fieldOf: (path: string) => Field | undefined;
}

const PLAIN: Field = { kind: "text", fallback: undefined, mayBeEmpty: true, text: "" };

/** The entries of a mapping as the options a constructor would be given. */
export function optionsFrom(section: SectionReading, tree: MapTree, path: string): Record<string, unknown> {
  const options: Record<string, unknown> = {};
  for (const [key, value] of tree.entries) {
    const secret = secretOption(section, path, key);
    const option = secret ?? key;
    const at = below(path, option);
    section.labels.locate(at, value.line, below(path, key));
    const read = secret === undefined ? readValue(section, value, at) : secretFrom(section, tree, value, at, option);
    if (read !== undefined) options[option] = read;
  }
  return options;
}

/** `apiKeyFile` stands for `apiKey`, as API_KEY_FILE does in the environment. */
function secretOption({ fieldOf }: SectionReading, path: string, key: string): string | undefined {
  const option = key.endsWith("File") ? key.slice(0, -"File".length) : "";
  return option !== "" && fieldOf(below(path, option))?.secret === true ? option : undefined;
}

/** undefined = reported. */
function readValue(section: SectionReading, tree: Tree, path: string): unknown {
  const field = section.fieldOf(path);
  if (tree.kind === "scalar") return scalarOf(section, tree, path, field);
  section.labels.show(path, () => (tree.kind === "list" ? "(a list)" : "(an object)"));
  // Content of the user's own, such as extraBody: nothing in it is an option of ours.
  if (field !== undefined) {
    const content = contentOf(section, tree, path, field);
    if (field.kind === "profile") readProfileContent(section, tree, path, content);
    return content;
  }
  return tree.kind === "map" ? optionsFrom(section, tree, path) : itemsOf(section, tree.items, path);
}

function itemsOf(section: SectionReading, items: readonly Tree[], path: string): unknown[] {
  return items.map((item, index) => {
    const at = `${path}[${index}]`;
    section.labels.locate(at, item.line);
    return readValue(section, item, at);
  });
}

/** The part of a value that may be anything. `field` = the option it belongs to. */
function contentOf(section: SectionReading, tree: Tree, path: string, field: Field): unknown {
  if (tree.kind === "list") return tree.items.map((item) => contentOf(section, item, path, field));
  if (tree.kind === "map") {
    return Object.fromEntries([...tree.entries].map(([key, value]) => [key, contentOf(section, value, path, field)]));
  }
  if (typeof tree.value !== "string" || !isInterpolated(tree.value)) return tree.value;
  const filled = fill(section, tree, path, field);
  if (filled === undefined) return null;
  // Unquoted it is read as if it stood there; a header is text in any case.
  const isText = tree.quoted || !filled.whole || field.kind === "headers";
  return isText ? filled.text : plainValue(filled.text);
}

/** A profile is the one content whose facts we know: each has its line, and flags are words as everywhere in a file. */
function readProfileContent(section: SectionReading, tree: Tree, path: string, content: unknown): void {
  locateBelow(section, tree, path);
  readFlags(content, (text) => {
    const form = parseText({ ...PLAIN, kind: "flag", mayBeEmpty: false }, text);
    return "value" in form ? (form.value as boolean) : undefined;
  });
}

function locateBelow(section: SectionReading, tree: Tree, path: string): void {
  if (tree.kind === "scalar") return;
  const parts: [string, Tree][] =
    tree.kind === "list"
      ? tree.items.map((item, index) => [`${path}[${index}]`, item])
      : [...tree.entries].map(([key, value]) => [below(path, key), value]);
  for (const [at, part] of parts) {
    section.labels.locate(at, part.line);
    locateBelow(section, part, at);
  }
}

const NUMBER = /^-?(0|[1-9]\d{0,14})(\.\d{1,15})?(e[+-]?\d{1,2})?$/i;
const WORDS: Readonly<Record<string, boolean | null>> = { true: true, false: false, null: null, "~": null };

function plainValue(text: string): string | number | boolean | null {
  if (NUMBER.test(text)) return Number(text);
  return Object.hasOwn(WORDS, text) ? (WORDS[text] ?? null) : text;
}

function scalarOf(section: SectionReading, tree: ScalarTree, path: string, field: Field | undefined): unknown {
  const wanted = field ?? nameless(path);
  const { value } = tree;
  if (value === null) {
    if (field === undefined) return null;
    return refuseOption(section, path, "has no value", "Give it one, or leave the key out.");
  }
  if (typeof value !== "string") return typedScalar(section, tree, path, wanted);
  if (!isInterpolated(value)) {
    section.labels.show(path, () => `"${show(section.env, wanted, value)}"`);
    return isWordOf(wanted) ? parsed(section, wanted, value, path) : value;
  }
  const filled = fill(section, tree, path, wanted);
  return filled === undefined ? undefined : parsed(section, wanted, filled.text, path);
}

/** A name of no field may still hold a secret. */
function nameless(path: string): Field {
  return { ...unknownField(path.split(".").at(-1) ?? ""), kind: "text", mayBeEmpty: true };
}

function typedScalar(section: SectionReading, { value }: ScalarTree, path: string, field: Field): unknown {
  section.labels.show(path, () => (field.secret ? show(section.env, field, String(value)) : quoted(field, value)));
  const isText = ["text", "prompt", "name", "url", "secret", "dsn", "redis_url"].includes(field.kind);
  if (!isText || section.fieldOf(path) === undefined) return value;
  return refuseOption(section, path, "is not a text", "Put it in quotes.");
}

/** Kinds whose values are words in YAML: on and off are no booleans there. */
function isWordOf({ kind }: Field): boolean {
  return kind === "flag" || kind === "list" || kind === "transient400";
}

/** A text as the environment would give it, but with lengths of time in milliseconds. */
function parsed(section: SectionReading, field: Field, text: string, path: string): unknown {
  const form = parseText(field.kind === "duration" ? { ...field, kind: "number" } : field, text);
  if ("value" in form) return form.value;
  return refuseOption(section, path, form.problem, `Accepted: ${acceptedInFile(field)}.`);
}

function fill(
  section: SectionReading,
  tree: ScalarTree,
  path: string,
  field: Field,
): { text: string; whole: boolean } | undefined {
  const written = String(tree.value);
  const { text, names, whole, problems } = interpolate(written, section.env.env);
  for (const name of names) section.used.add(name);
  const isSecret = field.secret === true || names.some((name) => unknownField(name).secret);
  const shown = (): string => `"${show(section.env, isSecret ? { ...field, secret: true } : field, text)}"`;
  if (section.labels.shown(path) === undefined) {
    section.labels.show(path, () => (names.length === 0 ? shown() : `${shown()} from ${references(names)}`));
  }
  if (problems.length === 0) return { text, whole };
  // The text may be half a secret: what was asked for is enough.
  section.labels.show(path, names.length === 0 ? undefined : () => references(names));
  section.labels.locate(path, tree.line);
  for (const [problem, remedy] of problems) refuseOption(section, path, problem, remedy);
  return undefined;
}

function references(names: readonly string[]): string {
  return [...new Set(names)].map((name) => `\${${name}}`).join(", ");
}

function secretFrom(section: SectionReading, owner: MapTree, tree: Tree, path: string, option: string): unknown {
  if (tree.kind !== "scalar" || typeof tree.value !== "string" || tree.value.trim() === "") {
    return refuseOption(
      section,
      path,
      "is not the path of a file",
      "Give the path of a file that holds the secret alone.",
    );
  }
  if (owner.entries.has(option))
    return refuseOption(section, path, `is given beside ${option}`, "Keep one of the two.");
  const filled = fill(section, tree, path, PLAIN);
  if (filled === undefined) return undefined;
  const field = section.fieldOf(path) ?? PLAIN;
  const read = readSecretFile(section.env, section.labels.key(path), fromFolderOf(section.file, filled.text), field);
  if (read === undefined) {
    section.broken.add(path);
    return undefined;
  }
  section.labels.show(path, () => read.shown);
  return parsed(section, field, read.text, path);
}

/** A path in a file starts at the file's folder. */
export function fromFolderOf(file: string, path: string): string {
  return isAbsolute(path) ? path : join(dirname(file), path);
}

export function refuseOption(section: SectionReading, path: string, problem: string, remedy: string): undefined {
  const value = section.labels.shown(path);
  section.broken.add(path);
  const key = section.labels.key(path);
  section.env.problems.push({ key, ...(value === undefined ? {} : { value }), problem, remedy });
  return undefined;
}
