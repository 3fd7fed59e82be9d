import type { Field } from "../config/field.js";
import { fieldOf } from "../config/labels.js";
import { GROUPS } from "../config/schema.js";
import { PROCESS_FIELDS } from "../config/schema-process.js";
import { isPlaceholder, profileToName, type StarterProvider, sourceNameOf } from "./init-providers.js";
import type { Purpose, Setting } from "./init-purposes.js";

export interface Starter {
  readonly purpose: Purpose;
  readonly scope: string;
  readonly providers: readonly StarterProvider[];
}

const OF_THE_PROCESS: readonly Setting[] = [
  ["telemetryBackends", "sqlite"],
  ["sqlitePath", "./polygateway.db"],
  ["capture", "full"],
  ["logLevel", "warn"],
];

const LIMITS_NOTE = "Limits: take those of your account. 0, or no such line, = no limit.";
const PROFILE_NOTE = "Its dialect: the address alone doesn't tell it.";

const TRANSPORT_NOTE = "The protocol it speaks.";

/** Said above an address that stands for the user's own. */
function placeholderNote(provider: StarterProvider): string[] {
  return isPlaceholder(provider) ? [`# The address and the model are stand-ins: write ${provider.placeholder}.`] : [];
}

/** A `.env`: keys are left empty, to be filled in there. */
export function starterEnv({ purpose, scope, providers }: Starter): string {
  const sources = providers.flatMap((provider) => {
    const prefix = `${scope}__${sourceNameOf(provider).toUpperCase()}__1__`;
    const profile = profileToName(provider);
    return [
      `# ── Source ${sourceNameOf(provider)}_1 ──`,
      ...placeholderNote(provider),
      `${prefix}BASE_URL=${provider.baseUrl}`,
      ...(profile === undefined ? [] : [`# ${PROFILE_NOTE}`, `${prefix}PROFILE=${profile}`]),
      provider.keyName === undefined
        ? "# The server takes no key."
        : "# Put the key behind the =. Or leave the line out, and set the variable in the environment.",
      `${prefix}API_KEY=${provider.keyName === undefined ? "none" : ""}`,
      "# Any model of this provider.",
      `${prefix}MODEL=${provider.model}`,
      ...(provider.transport === undefined ? [] : [`# ${TRANSPORT_NOTE}`, `${prefix}TRANSPORT=${provider.transport}`]),
      `# ${LIMITS_NOTE}`,
      ...purpose.ofASource.map(([option, value]) => envLine(prefix, fieldOf(`sources[0].${option}`), value)),
      "",
    ];
  });
  return `${[
    "# PolyGateway. Every key with its meaning: docs/configuration.md. Keep this file out of version control.",
    `# A source is {SCOPE}__{PROVIDER}__{N}__{FIELD}; a second key of one provider is number 2. Lines with # are optional.`,
    "",
    ...sources,
    `# ── All sources of ${scope} together ──`,
    ...purpose.settings(providers).map(([path, value]) => envLine(`${scope}__`, fieldOf(path), value, "")),
    ...purpose.ofTheScope.map(([path, value]) => envLine(scopePrefix(scope, path), fieldOf(path), value)),
    "",
    "# ── Telemetry and messages, whatever the scope ──",
    ...OF_THE_PROCESS.map(([option, value]) => envLine("", processField(option), value)),
  ].join("\n")}\n`;
}

function scopePrefix(scope: string, path: string): string {
  const option = path.includes(".") ? path.split(".")[0] : undefined;
  const group = Object.entries(GROUPS).find(([, each]) => each.option === option)?.[0];
  return group === undefined ? `${scope}__` : `${scope}__${group}__`;
}

/** `mark` = what keeps the line from being in force. */
function envLine(prefix: string, field: Field | undefined, value: Setting[1], mark = "# "): string {
  const written = field?.kind === "duration" ? Number(value) / 1_000 : value;
  return `# ${field?.text}\n${mark}${prefix}${field?.env}=${written}`;
}

function processField(option: string): Field | undefined {
  return (PROCESS_FIELDS as Readonly<Record<string, Field>>)[option];
}

/** A `polygateway.yaml`: keys come from variables, so the file may be kept under version control. */
export function starterYaml({ purpose, scope, providers }: Starter): string {
  const sources = providers.flatMap((provider) => [
    `      - name: ${sourceNameOf(provider)}_1`,
    ...placeholderNote(provider).map((note) => `        ${note}`),
    `        baseUrl: ${provider.baseUrl}`,
    ...yamlProfile(provider),
    `        apiKey: ${provider.keyName === undefined ? "none # the server takes no key" : `\${${provider.keyName}}`}`,
    `        model: ${JSON.stringify(provider.model)} # any model of this provider`,
    ...(provider.transport === undefined ? [] : [`        transport: ${provider.transport} # ${TRANSPORT_NOTE}`]),
    `        # ${LIMITS_NOTE}`,
    ...purpose.ofASource.map(([option, value]) => yamlLine("        ", option, value, fieldOf(`sources[0].${option}`))),
    "",
  ]);
  return `${[
    "# PolyGateway. Every option with its meaning: docs/configuration.md. Lengths of time are in milliseconds.",
    "# ${NAME} is filled from the environment and .env; no secret needs to stand here. Lines with # are optional.",
    "scopes:",
    `  ${scope}:`,
    "    sources:",
    ...sources,
    "    # All sources together:",
    ...purpose.settings(providers).map(([path, value]) => `    ${path}: ${value} # ${fieldOf(path)?.text}`),
    ...groupLines(purpose.ofTheScope),
    "",
    "# Telemetry and messages, whatever the scope:",
    "# process:",
    ...OF_THE_PROCESS.map(([option, value]) => yamlLine("", `  ${option}`, value, processField(option))),
  ].join("\n")}\n`;
}

function yamlProfile(provider: StarterProvider): string[] {
  const profile = profileToName(provider);
  return profile === undefined ? [] : [`        profile: ${profile} # ${PROFILE_NOTE}`];
}

function groupLines(settings: readonly Setting[]): string[] {
  let open = "";
  return settings.flatMap(([path, value]) => {
    const [group = "", option] = path.split(".");
    if (option === undefined) return [yamlLine("    ", path, value, fieldOf(path))];
    const title = group === open ? [] : [`    # ${group}:`];
    open = group;
    return [...title, yamlLine("    ", `  ${option}`, value, fieldOf(path))];
  });
}

function yamlLine(indent: string, option: string, value: Setting[1], field: Field | undefined): string {
  return `${indent}# ${option}: ${value} # ${field?.text}`;
}
