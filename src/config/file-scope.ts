import { PROCESS_OPTIONS } from "./env.js";
import type { ProcessReading } from "./env-process.js";
import type { EnvReading } from "./env-reading.js";
import type { Field } from "./field.js";
import { fileLabels } from "./file-labels.js";
import type { ScopePlace } from "./file-layout.js";
import { optionsFrom, refuseOption, type SectionReading } from "./file-values.js";
import { fieldOf, type Labels, lookUp } from "./labels.js";
import { GROUPS } from "./schema.js";

/** Options that are objects with methods, so they exist only in code; with what a file says instead. */
const ONLY_IN_CODE: Readonly<Record<string, string>> = {
  telemetry: "Name the places in process.telemetryBackends.",
  pricing: "Name the price table in process.pricingPath.",
  governor: "Give it in code, as an override.",
  cache: "Give it in code, as an override.",
  runtime: "Give it in code, as an override.",
  transport: "Give it in code, as an override.",
};
const GROUP_OPTIONS: ReadonlySet<string> = new Set(Object.values(GROUPS).map(({ option }) => option));

export interface FileScope {
  /** As the constructor of a client takes them, without what is broken. */
  readonly options: Record<string, unknown>;
  readonly broken: Set<string>;
  readonly labels: Labels;
}

function knownField(path: string): Field | undefined {
  const field: unknown = fieldOf(path);
  // `constructor` and the like are names that every object has.
  return typeof field === "object" ? (field as Field) : undefined;
}

/** Reads the options of one scope; process-wide settings are the floor below its own. */
export function readFileScope(
  file: string,
  scope: string,
  { tree, prefix }: ScopePlace,
  env: EnvReading,
  used: Set<string>,
  process: ProcessReading,
): FileScope {
  const labels = fileLabels(file, prefix, tree.line, knownField);
  const section: SectionReading = { file, labels, env, broken: new Set(), used, fieldOf: knownField };
  if (tree.kind !== "map") {
    section.broken.add("sources");
    const key = labels.key("").replace(/\.$/, "");
    env.problems.push({ key, problem: "is not a mapping", remedy: "Write the options of the scope below its name." });
    return { options: { scope }, broken: section.broken, labels };
  }
  const options = optionsFrom(section, tree, "");
  for (const [option, remedy] of Object.entries(ONLY_IN_CODE)) {
    if (options[option] === undefined || GROUP_OPTIONS.has(option)) continue;
    refuseOption(section, option, "can't be given in a file", remedy);
    delete options[option];
  }
  checkName(section, scope, options.scope);
  return {
    options: { ...withProcess(options, section.broken, process), scope },
    broken: section.broken,
    labels: processLabels(labels, options, process),
  };
}

/** `scope` is only a remark in a file that names its scopes. */
function checkName(section: SectionReading, scope: string, given: unknown): void {
  if (given === undefined || given === scope) return;
  refuseOption(section, "scope", `differs from ${scope}, the name above it`, "Leave it out.");
}

function withProcess(
  options: Record<string, unknown>,
  broken: Set<string>,
  { settings, given, broken: brokenSettings }: ProcessReading,
): Record<string, unknown> {
  const whole = { ...options };
  for (const [setting, path] of PROCESS_OPTIONS) {
    if (!given.has(setting) || lookUp(options, path) !== undefined || broken.has(path)) continue;
    if (brokenSettings.has(setting)) broken.add(path);
    const [owner = "", option] = path.split(".");
    const group = whole[owner];
    if (option === undefined) whole[owner] = settings[setting];
    else if (group === undefined || isObject(group)) whole[owner] = { ...group, [option]: settings[setting] };
  }
  return whole;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What came from `process:` is called by its name there. */
function processLabels(labels: Labels, options: Record<string, unknown>, { given }: ProcessReading): Labels {
  const settingOf = (path: string) => {
    const setting = PROCESS_OPTIONS.find(([, option]) => option === path)?.[0];
    return setting === undefined || lookUp(options, path) !== undefined ? undefined : given.get(setting);
  };
  return {
    ...labels,
    key: (path) => settingOf(path)?.key ?? labels.key(path),
    value: (path, value) => settingOf(path)?.shown ?? labels.value(path, value),
    given: (path) => settingOf(path)?.shown ?? labels.given(path),
  };
}
