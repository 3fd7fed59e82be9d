import { didYouMean } from "../domain/did-you-mean.js";
import { judgeProcess, type ProcessReading } from "./env-process.js";
import type { EnvReading, GivenText } from "./env-reading.js";
import type { Field } from "./field.js";
import { acceptedInFile, fileLabels } from "./file-labels.js";
import type { Tree } from "./file-tree.js";
import { fromFolderOf, optionsFrom, refuseOption, type SectionReading } from "./file-values.js";
import { PROCESS_FIELDS, type ProcessSettings } from "./schema-process.js";
import { checkValue } from "./values.js";

const FIELDS = PROCESS_FIELDS as Readonly<Record<string, Field>>;

function fieldOf(path: string): Field | undefined {
  return Object.hasOwn(FIELDS, path) ? FIELDS[path] : undefined;
}

/** Reads `process:`, the settings of the whole process by their names in code. `tree` absent = all defaults. */
export function readFileProcess(
  file: string,
  tree: Tree | undefined,
  env: EnvReading,
  used: Set<string>,
): ProcessReading & { readonly section: SectionReading } {
  const labels = fileLabels(file, "process.", tree?.line ?? 1, fieldOf);
  const section: SectionReading = { file, labels, env, broken: new Set(), used, fieldOf };
  const values = Object.fromEntries(Object.entries(FIELDS).map(([option, field]) => [option, field.fallback]));
  const given = new Map<keyof ProcessSettings, GivenText>();
  for (const [option, value] of Object.entries(optionsOf(section, tree))) {
    const field = fieldOf(option);
    if (field === undefined) {
      refuseUnknown(section, option);
      continue;
    }
    given.set(option as keyof ProcessSettings, {
      key: labels.key(option),
      text: String(value),
      shown: labels.shown(option) ?? "",
    });
    const checked = checkValue(field, value);
    if ("problem" in checked) refuseOption(section, option, checked.problem, `Accepted: ${acceptedInFile(field)}.`);
    else values[option] = option.endsWith("Path") ? fromFolderOf(file, String(checked.value)) : checked.value;
  }
  const broken = section.broken as ReadonlySet<keyof ProcessSettings>;
  const process = { settings: values as unknown as ProcessSettings, given, broken };
  judgeProcess(env, process, labels.key);
  return { ...process, section };
}

function optionsOf(section: SectionReading, tree: Tree | undefined): Record<string, unknown> {
  if (tree === undefined) return {};
  if (tree.kind === "map") return optionsFrom(section, tree, "");
  const key = section.labels.key("").replace(/\.$/, "");
  const remedy = `Give a mapping with any of ${Object.keys(FIELDS).join(", ")}.`;
  for (const option of Object.keys(FIELDS)) section.broken.add(option);
  section.env.problems.push({ key, problem: "is not a mapping", remedy });
  return {};
}

const ENV_NAMES = new Map(Object.entries(FIELDS).map(([option, { env }]) => [env ?? "", option]));

function refuseUnknown(section: SectionReading, option: string): void {
  const meant = ENV_NAMES.get(option) ?? didYouMean(option, Object.keys(FIELDS));
  // What was meant for a setting is not in force there.
  if (meant !== undefined) section.broken.add(meant);
  const known = `Known are ${Object.keys(FIELDS).join(", ")}.`;
  refuseOption(section, option, "is not a known setting", meant ? `Did you mean process.${meant}?` : known);
}
