import { SAMPLING_KEYS } from "../domain/chat.js";
import { type ProviderProfile, REFUSAL_CODES } from "../domain/profile.js";
import { OPTIONAL_FIELDS, PROFILE_FIELDS } from "./profile-shape.js";
import type { Shape } from "./shape.js";

/**
 * The last part of docs/providers.md: what a profile can say. Names and accepted forms come from the table that checks
 * them, meanings from the docstrings of src/domain/profile.ts, so neither is written twice.
 */

interface Documented {
  readonly text: string;
  readonly type: string;
}

/** Interface → field → its docstring and type. */
type Docstrings = ReadonlyMap<string, ReadonlyMap<string, Documented>>;

function docstrings(source: string): Docstrings {
  const interfaces = source.matchAll(/^export interface (\w+) \{\n([\s\S]*?)^\}$/gm);
  return new Map([...interfaces].map(([, name = "", body = ""]) => [name, fieldsOf(body)]));
}

function fieldsOf(body: string): ReadonlyMap<string, Documented> {
  const fields = body.matchAll(/(?:^ {2}\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n)?^ {2}readonly (\w+)\??: ([^;]+);$/gm);
  return new Map(
    [...fields].map(([, comment = "", name = "", type = ""]) => [
      name,
      { text: comment.replace(/\s*\n\s*\* ?/g, " ").trim(), type },
    ]),
  );
}

const HEAD = `| field | accepted | meaning | laid over another profile |
| --- | --- | --- | --- |
| \`extends\` | a text | The profile to lay these fields over, by name. Without it: the one of the host. | – |`;

function table(known: Docstrings): string {
  return [HEAD, ...rows(PROFILE_FIELDS, { known, owner: "ProviderProfile", place: "", isInList: false })].join("\n");
}

interface Level {
  readonly known: Docstrings;
  /** The interface whose docstrings tell these fields. */
  readonly owner: string;
  readonly place: string;
  /** Below a list there is nothing to join: it comes and goes as a whole. */
  readonly isInList: boolean;
  readonly required?: readonly string[];
}

function rows(fields: Readonly<Record<string, Shape>>, level: Level): string[] {
  const { known, owner, place, isInList, required = [] } = level;
  return Object.entries(fields).flatMap(([name, shape]) => {
    const documented = known.get(owner)?.get(name);
    if (documented === undefined || documented.text === "") {
      throw new Error(`src/domain/profile.ts has no docstring for ${owner}.${name}`);
    }
    const accepted = `${shape.accepted.replaceAll("<", "\\<")}${required.includes(name) ? "; required" : ""}`;
    const laid = isInList ? "with its list" : shape.joined ? "joined" : "replaced";
    const cells = [`\`${place}${name}\``, accepted, documented.text, laid].map((cell) => cell.replaceAll("|", "\\|"));
    return [`| ${cells.join(" | ")} |`, ...innerRows(shape, documented, { ...level, place: `${place}${name}` })];
  });
}

function innerRows({ fields, required, joined }: Shape, { type }: Documented, level: Level): string[] {
  if (fields === undefined) return [];
  const owner = type.match(/\w+/g)?.find((word) => level.known.has(word));
  if (owner === undefined) throw new Error(`the type of ${level.place} is no interface of src/domain/profile.ts`);
  return rows(fields, {
    known: level.known,
    owner,
    place: joined ? `${level.place}.` : `${level.place}[].`,
    isInList: level.isInList || joined !== true,
    ...(required !== undefined && { required }),
  });
}

const LINE_LENGTH = 110;

/** JSON for people: what fits stays on one line. */
function readableJson(value: unknown, indent = "", before = 0): string {
  const flat = flatJson(value);
  if (typeof value !== "object" || value === null || indent.length + before + flat.length < LINE_LENGTH) return flat;
  const inner = `${indent}  `;
  const lines = Array.isArray(value)
    ? value.map((entry) => `${inner}${readableJson(entry, inner)}`)
    : Object.entries(value).map(([name, entry]) => {
        const key = `${JSON.stringify(name)}: `;
        return `${inner}${key}${readableJson(entry, inner, key.length)}`;
      });
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return `${open}\n${lines.join(",\n")}\n${indent}${close}`;
}

function flatJson(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(flatJson).join(", ")}]`;
  const fields = Object.entries(value).map(([name, entry]) => `${JSON.stringify(name)}: ${flatJson(entry)}`);
  return fields.length === 0 ? "{}" : `{ ${fields.join(", ")} }`;
}

/** With the fields in the order of the table. */
function inOrder(profile: ProviderProfile): object {
  const names = Object.keys(PROFILE_FIELDS) as (keyof ProviderProfile)[];
  return Object.fromEntries(names.flatMap((name) => (profile[name] === undefined ? [] : [[name, profile[name]]])));
}

const IN_FULL = ["glm", "vllm"] as const;

const codes = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(", ");

/** `source` is the text of src/domain/profile.ts. Throws Error for a field without a docstring. */
export function profileFieldsSection(profiles: Readonly<Record<string, ProviderProfile>>, source: string): string {
  const whole = IN_FULL.map((name) => {
    const profile = profiles[name];
    if (profile === undefined) throw new Error(`there is no profile ${name}`);
    return `\`${name}\`:\n\n\`\`\`json\n${readableJson(inOrder(profile))}\n\`\`\``;
  });
  return [
    "## Fields of a profile",
    "Give the fields that you correct, in code, in `PROFILE` or in a file; [worked examples](guide/providers.md#correct-a-fact). A field that is *joined* keeps what you don't name. One that is *replaced*, such as every list, is as you write it and nothing else: to change one rule of `thinking`, `parameters` or `errorRules`, write all rules you want. `[]` stands for each entry of a list.",
    table(docstrings(source)),
    `- Parameters: ${codes(SAMPLING_KEYS)}.\n- Error codes: ${codes(REFUSAL_CODES)}.\n- An object that has every field but ${codes(OPTIONAL_FIELDS)} (and no \`extends\`) is a whole profile, with nothing below it: \`notes: []\` and \`unconfirmed: []\` are part of it too. A fact that a correction states leaves \`unconfirmed\` by itself: \`polygateway check\` then no longer notes that \`thinking\` isn't confirmed.`,
    "## Two profiles in full",
    "As JSON, which is YAML too. Copy one, change it, and give it as `profile`.",
    ...whole,
  ].join("\n\n");
}
