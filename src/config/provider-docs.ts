import { OPENAI_PROFILE, type ParameterRule, type ProviderProfile, type ThinkingRule } from "../domain/profile.js";
import { profileFieldsSection } from "./profile-docs.js";

/** docs/providers.md as text, made from the profiles and from what checks and explains their fields. A test compares it with the file. */

const INTRO = `<!-- Generated from src/transports/openai/profiles*.ts by \`npm run docs:generate\`; edit there. -->
# Providers

A profile says how one provider's dialect differs from OpenAI's: address, credential, how thinking is asked for, which parameters are refused, what its error codes mean. It is data: every fact on this page can be corrected in your configuration, without a new version.

- The profile is chosen by the host of \`BASE_URL\`. Servers of your own need \`PROFILE=vllm\` and the like; other hosts are taken for \`openai\`.
- \`PROFILE\` is a name or another name of it, or a JSON object that is laid over a profile: \`PROFILE={"extends":"glm","streamOptions":false}\`. Without \`extends\` it is laid over the profile of the host. Objects are joined deeply, lists are replaced as a whole. In code: \`profile: { extends: "glm", streamOptions: false }\`, or a whole object, as in \`profile: { ...profiles.glm, name: "mine" }\`.
- **Unconfirmed** names the fields of a profile of which some part is not documented by the provider. Try them before you rely on them, and correct what is wrong.
- What is not known here is sent as it is; the provider has the last word.

What a profile can say: [Fields of a profile](#fields-of-a-profile), [two profiles in full](#two-profiles-in-full). What \`thinking\` does with all this, and how to correct a fact: [Providers and thinking](guide/providers.md).`;

function json(value: unknown): string {
  return `\`${JSON.stringify(value)}\``;
}

function models(rule: { readonly models?: string }): string {
  return rule.models === undefined ? "all other models" : `\`${rule.models}\``;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}

function thinkingRow(rule: ThinkingRule): string {
  const { off, on, levels = {}, budget, streams } = rule;
  const usual = budget?.usual === undefined ? "no" : `budget of ${budget.usual}`;
  const size = budget === undefined ? "no" : `${budget.min} to ${budget.max ?? "any number"}: ${json(budget.fields)}`;
  const cells = [
    models(rule),
    off === undefined ? "no" : sent(off),
    on === undefined ? usual : sent(on),
    levelsText(levels),
    `${size}${budget?.belowMaxTokens ? ", below maxTokens" : ""}`,
    streams === undefined ? "as asked" : STREAMS[streams],
  ];
  return `| ${cells.map(cell).join(" | ")} |`;
}

const STREAMS = { when_on: "while it thinks", unless_off: "unless it is off" } as const;

function levelsText(levels: Readonly<Record<string, object>>): string {
  const entries = Object.entries(levels);
  if (entries.length === 0) return "no";
  const asWords = entries.every(([level, fields]) => JSON.stringify(fields) === `{"reasoning_effort":"${level}"}`);
  if (asWords) return `\`reasoning_effort\` = ${entries.map(([level]) => level).join(", ")}`;
  return entries.map(([level, fields]) => `${level} ${json(fields)}`).join(" · ");
}

function sent(fields: object): string {
  return Object.keys(fields).length === 0 ? "needs nothing" : json(fields);
}

function thinkingLines({ thinking }: ProviderProfile): string[] {
  if (thinking.length === 0) return ["No switch for thinking is known."];
  return [
    "| model matches | `false` | `true` | levels | budget in tokens | streams |",
    "| --- | --- | --- | --- | --- | --- |",
    ...thinking.map(thinkingRow),
  ];
}

function ruleText(rule: ParameterRule): string {
  const { names = {}, refused = [], only = {}, most = {} } = rule;
  const parts = [
    ...Object.entries(names).map(([name, wire]) => `\`${name}\` goes as \`${wire}\``),
    ...(refused.length === 0 ? [] : [`refuses ${refused.map((name) => `\`${name}\``).join(", ")}`]),
    ...Object.entries(only).map(([name, value]) => `takes only ${value} for \`${name}\``),
    ...Object.entries(most).map(([name, value]) => `takes at most ${value} for \`${name}\``),
  ];
  const when = rule.when === "thinking" ? ", while it thinks" : "";
  return `${rule.models === undefined ? "all models" : models(rule)}${when}: ${parts.join("; ")}`;
}

function errorTexts({ errorCodes, errorRules }: ProviderProfile): string[] {
  const byMeaning = new Map<string, string[]>();
  for (const [code, meaning] of Object.entries(errorCodes)) {
    byMeaning.set(meaning, [...(byMeaning.get(meaning) ?? []), `\`${code}\``]);
  }
  return [
    ...errorRules.map(({ statuses = [], codes = [], words, retryAfter, becomes }) => {
      const conditions = [
        ...(statuses.length === 0 ? [] : [`status ${statuses.join(", ")}`]),
        ...(codes.length === 0 ? [] : [`code ${codes.map((code) => `\`${code}\``).join(", ")}`]),
        ...(words === undefined ? [] : [`text \`${words}\``]),
        ...(retryAfter === true ? ["a Retry-After"] : []),
      ];
      return `${conditions.join(" with ")} → \`${becomes}\``;
    }),
    ...[...byMeaning].map(([meaning, codes]) => `${codes.join(", ")} → \`${meaning}\``),
  ];
}

const REASONING_PLACE = {
  inside: "",
  beside: "reasoning tokens are counted beside the completion",
  only_in_total: "reasoning tokens are counted only in the total",
} as const;

function section(profile: ProviderProfile): string {
  const { auth, usage, modalities, structuredOutput } = profile;
  const facts = [
    `Address: \`${profile.address}\`${profile.hosts.length === 0 ? " (chosen by PROFILE only)" : `; chosen for ${profile.hosts.map((host) => `\`${host}\``).join(", ")}`}`,
    ...(profile.aliases.length === 0
      ? []
      : [`Other names: ${profile.aliases.map((name) => `\`${name}\``).join(", ")}`]),
    `Credential: header \`${auth.header}\`${auth.scheme === "" ? ", the bare key" : `, \`${auth.scheme} …\``}`,
    ...(Object.keys(profile.query).length === 0 ? [] : [`Query: ${json(profile.query)}`]),
    `Structured output: ${structuredOutput.length === 0 ? "only in the prompt" : structuredOutput.map((mode) => `\`${mode}\``).join(", ")}`,
    ...(modalities === undefined
      ? []
      : [`Messages hold ${modalities.length === 0 ? "text only" : `text, ${modalities.join(", ")}`}`]),
    ...Object.entries(profile.parameterNames).map(([name, wire]) => `Parameter: \`${name}\` goes as \`${wire}\``),
    ...profile.parameters.map((rule) => `Parameters, ${ruleText(rule)}`),
    ...(profile.streamOptions ? [] : ["Usage comes without `stream_options`, which is not sent"]),
    ...(profile.doneIsProof ? [] : ["`[DONE]` without a finish reason proves nothing: such a stream counts as cut"]),
    ...(usage.reasoning === "inside" ? [] : [`Usage: ${REASONING_PLACE[usage.reasoning]}`]),
    ...(usage.cache === "inside"
      ? []
      : ["Usage: `cache_read_input_tokens` and `cache_creation_input_tokens` are counted beside the prompt"]),
    ...(profile.embeddingBatchMax === undefined
      ? []
      : [`Embeddings: at most ${profile.embeddingBatchMax} texts a request`]),
    ...errorTexts(profile).map((text) => `Error: ${text}`),
    ...profile.notes,
  ];
  const doubt = profile.unconfirmed.map((field) => `\`${field}\``).join(", ");
  return [
    `## ${profile.name}`,
    "",
    ...facts.map((fact) => `- ${fact.replace(/\.$/, "")}.`),
    ...(doubt === "" ? [] : [`- **Unconfirmed**: ${doubt}.`]),
    "",
    ...thinkingLines(profile),
  ].join("\n");
}

/** The text of docs/providers.md. `source` is that of src/domain/profile.ts, whose docstrings explain the fields. */
export function providersPage(profiles: Readonly<Record<string, ProviderProfile>>, source: string): string {
  const all = Object.values(profiles);
  const list = all.map(({ name }) => `[${name}](#${name})`).join(" · ");
  const defaults = `Whatever a profile doesn't say is as in \`${OPENAI_PROFILE.name}\`: \`POST {BASE_URL}${OPENAI_PROFILE.chatPath}\`, usage asked for with \`stream_options\`, error codes by the general table (docs/errors.md).`;
  return `${[INTRO, list, defaults, ...all.map(section), profileFieldsSection(profiles, source)].join("\n\n")}\n`;
}
