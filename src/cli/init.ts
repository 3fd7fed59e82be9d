import { existsSync } from "node:fs";
import { type Command, Option } from "commander";
import type { Field } from "../config/field.js";
import { SOURCE_FIELDS } from "../config/schema-source.js";
import { accepted, checkValue, NAME_PATTERN, quoted } from "../config/values.js";
import { parsePath } from "./arguments.js";
import { DEFAULT_CONFIG_FILES } from "./configuration.js";
import { CliError, describeFailure } from "./failure.js";
import { type Starter, starterEnv, starterYaml } from "./init-files.js";
import {
  CUSTOM_PROVIDER,
  isPlaceholder,
  namesOf,
  SIMULATED_PROVIDER,
  type StarterProvider,
  sourceNameOf,
} from "./init-providers.js";
import { PURPOSE_NAMES, PURPOSES, type Purpose } from "./init-purposes.js";
import { type Conversation, namesFault, splitNames, startConversation } from "./init-questions.js";
import { processTerminal, type Terminal } from "./terminal.js";
import { writeNew } from "./write-new.js";

const FORMATS = ["env", "yaml"] as const;
type Format = (typeof FORMATS)[number];

interface InitFlags {
  readonly provider?: readonly string[];
  readonly model?: string;
  readonly baseUrl?: string;
  readonly scope?: string;
  readonly for?: Purpose["name"];
  readonly format?: Format;
  readonly out?: string;
  readonly yes?: boolean;
}

const FILES: Readonly<Record<Format, { readonly name: string; readonly mode: number; readonly flag: string }>> = {
  // Keys will stand in it.
  env: { name: ".env", mode: 0o600, flag: "--env" },
  yaml: { name: "polygateway.yaml", mode: 0o644, flag: "--config" },
};
const DEFAULT_PURPOSE = PURPOSES.chat;

const EXAMPLES = `
Providers for chat: ${namesOf(PURPOSES.chat.providers).join(", ")}.
For embeddings: ${namesOf(PURPOSES.embeddings.providers).join(", ")}.
For OCR: ${namesOf(PURPOSES.ocr.providers).join(", ")}.

Examples:
  polygateway init                                   asks; without a terminal: ${DEFAULT_PURPOSE.defaultProvider}
  polygateway init --provider deepseek,qwen          a .env for two providers
  polygateway init --provider openai --format yaml   a polygateway.yaml, keys from the environment
  polygateway init --for embeddings --provider qwen  a scope EMBED for \`polygateway embed\`
  polygateway init --for ocr --provider monkey-ocr   a scope OCR for \`polygateway ocr\`
  polygateway init --provider custom --base-url http://10.0.0.7:8000/v1 --model my-model

Keys are never asked for and never written. A file that exists is never overwritten: exit code 1.`;

/** `init`: a commented first configuration (spec 08). */
export function registerInit(program: Command, terminal: Terminal = processTerminal): void {
  program
    .command("init")
    .summary("write a first, commented configuration")
    .description("Writes a commented .env, or a polygateway.yaml, for the chosen providers; never over another file.")
    .addOption(
      new Option("--for <what>", `what the scope is for (default: ${DEFAULT_PURPOSE.name})`).choices(PURPOSE_NAMES),
    )
    .option("--provider <names...>", "providers, separated by commas or spaces")
    .option("--model <name>", "model, when there is one provider")
    .option("--base-url <address>", "address of the API, when there is one provider")
    .option("--scope <name>", `name of the scope (default: ${scopeNames()})`)
    .addOption(
      new Option("--format <format>", "env: a .env to put keys in; yaml: keys from variables").choices(FORMATS),
    )
    .option("-o, --out <file>", "write this file (default: .env, or polygateway.yaml)", parsePath)
    .option("-y, --yes", "ask nothing")
    .addHelpText("after", EXAMPLES)
    .action((flags: InitFlags) => init(flags, terminal));
}

async function init(flags: InitFlags, terminal: Terminal): Promise<void> {
  const { scope } = flags;
  if (scope !== undefined && (!NAME_PATTERN.test(scope) || scope.includes("__"))) {
    throw new CliError("--scope takes 1 to 64 of the characters A-Z a-z 0-9 _ . - without a double underscore.");
  }
  const isAsking = terminal.stdin.isTTY === true && flags.yes !== true && flags.provider === undefined;
  const chosen = isAsking ? await asked(flags, terminal) : given(flags);
  const format = chosen.format;
  const path = flags.out ?? FILES[format].name;
  const { purpose, providers } = chosen;
  const starter = { purpose, scope: scope ?? purpose.scope, providers };
  write(path, format === "env" ? starterEnv(starter) : starterYaml(starter), FILES[format].mode);
  terminal.stdout.write(`${nextSteps(path, format, starter).join("\n")}\n`);
}

/** `LLM; EMBED for embeddings; OCR for ocr` */
function scopeNames(): string {
  return Object.values(PURPOSES)
    .map(({ name, scope }) => (name === DEFAULT_PURPOSE.name ? scope : `${scope} for ${name}`))
    .join("; ");
}

interface Choice {
  readonly purpose: Purpose;
  readonly format: Format;
  readonly providers: readonly StarterProvider[];
}

function formatOf({ format, out }: InitFlags): Format | undefined {
  if (out !== undefined && /\.json$/i.test(out)) throw new CliError("JSON has no comments: give --out a .yaml file.");
  return format ?? (out !== undefined && /\.ya?ml$/i.test(out) ? "yaml" : undefined);
}

function given(flags: InitFlags): Choice {
  const format = formatOf(flags) ?? "env";
  const purpose = PURPOSES[flags.for ?? DEFAULT_PURPOSE.name];
  const names = splitNames((flags.provider ?? [purpose.defaultProvider]).join(","));
  const fault = namesFault(names.join(","), namesOf(purpose.providers));
  if (fault !== undefined) throw new CliError(fault);
  const { model, baseUrl } = flags;
  if (names.length > 1 && (model ?? baseUrl) !== undefined) {
    throw new CliError("--model and --base-url are of one provider: name one, or correct the file afterwards.");
  }
  const providers = names.map((name) => {
    const known = providerNamed(name, purpose);
    const provider = { ...known, baseUrl: baseUrl ?? known.baseUrl, model: model ?? known.model };
    for (const [flag, field, value] of [
      ["--base-url", SOURCE_FIELDS.baseUrl, provider.baseUrl],
      ["--model", SOURCE_FIELDS.model, provider.model],
    ] as const) {
      const wrong = faultOf(field, value);
      if (wrong !== undefined) throw new CliError(`${flag} for ${name}: ${wrong}`);
    }
    return provider;
  });
  return { purpose, format, providers };
}

async function asked(flags: InitFlags, terminal: Terminal): Promise<Choice> {
  const wanted = formatOf(flags);
  const conversation = startConversation(terminal);
  try {
    const purpose = PURPOSES[flags.for ?? (await askedPurpose(conversation))];
    const known = namesOf(purpose.providers);
    terminal.stderr.write(`Providers: ${known.join(", ")}\n`);
    const fault = (answer: string) => namesFault(answer, known);
    const names = await conversation.ask("Which of them, separated by commas", purpose.defaultProvider, fault);
    const providers: StarterProvider[] = [];
    for (const name of splitNames(names)) providers.push(await askedProvider(name, purpose, conversation));
    const isFormat = (answer: string) => (FORMATS.includes(answer as Format) ? undefined : "Write env or yaml.");
    const format = wanted ?? (await conversation.ask("As .env or as polygateway.yaml (env, yaml)", "env", isFormat));
    return { purpose, format: format as Format, providers };
  } finally {
    conversation.close();
  }
}

async function askedPurpose({ ask }: Conversation): Promise<Purpose["name"]> {
  const isPurpose = (answer: string) =>
    Object.hasOwn(PURPOSES, answer) ? undefined : `Write ${PURPOSE_NAMES.join(", ")}.`;
  const answer = await ask(`What for (${PURPOSE_NAMES.join(", ")})`, DEFAULT_PURPOSE.name, isPurpose);
  return answer as Purpose["name"];
}

async function askedProvider(name: string, purpose: Purpose, { ask }: Conversation): Promise<StarterProvider> {
  const known = providerNamed(name, purpose);
  const isOwn = known.keyName === undefined || known.placeholder !== undefined || name === CUSTOM_PROVIDER;
  const baseUrl = isOwn
    ? await ask(`Address of ${name}`, known.baseUrl, (answer) => faultOf(SOURCE_FIELDS.baseUrl, answer))
    : known.baseUrl;
  const model = await ask(`Model of ${name}`, known.model, (answer) => faultOf(SOURCE_FIELDS.model, answer));
  return { ...known, baseUrl, model };
}

function providerNamed(name: string, { providers, custom }: Purpose): StarterProvider {
  const known = providers.find((provider) => provider.name === name);
  return known ?? { name: CUSTOM_PROVIDER, baseUrl: "", model: "", ...custom };
}

/** Both end up in a file: what YAML or dotenv would read otherwise is refused too. */
function faultOf(field: Field, value: string): string | undefined {
  const checked = checkValue(field, value);
  if ("problem" in checked) return `${quoted(field, value)} ${checked.problem}. Accepted: ${accepted(field, "ms")}.`;
  return /^[\w./:@+-]+$/.test(value)
    ? undefined
    : `${quoted(field, value)} has characters that need quoting: write it into the file.`;
}

function write(path: string, text: string, mode: number): void {
  try {
    writeNew(path, text, mode);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") {
      throw new CliError(
        `${path} exists and is never overwritten. Write another file with --out, or move it away first.`,
      );
    }
    // Not the temporary name, which says nothing to the user.
    const told = describeFailure(Object.assign(error as Error, { path }));
    throw new CliError(`Nothing was written. ${told.text}`);
  }
}

const START_MOCK = "polygateway mock           starts the simulated provider; leave it running in another terminal";

/** At its usual address: elsewhere somebody else has started it. */
const isOurs = ({ name, baseUrl }: StarterProvider): boolean =>
  name === SIMULATED_PROVIDER && baseUrl === providerNamed(name, DEFAULT_PURPOSE).baseUrl;

function nextSteps(path: string, format: Format, { purpose, scope, providers }: Starter): string[] {
  const file = FILES[format];
  const [command, rest] = purpose.firstCall;
  const named = path === file.name ? "" : ` ${file.flag} ${path}`;
  const keys = providers.flatMap((provider) => {
    if (provider.keyName === undefined) return [];
    return [format === "yaml" ? provider.keyName : `${scope}__${sourceNameOf(provider).toUpperCase()}__1__API_KEY`];
  });
  const where =
    format === "yaml" ? "in the environment or in .env" : `in ${path}, and keep that file out of version control`;
  const steps = [
    ...providers.filter(isPlaceholder).map(({ name, placeholder }) => `In ${path}, for ${name}, write ${placeholder}.`),
    ...(keys.length === 0 ? [] : [`Set ${keys.join(" and ")} ${where}.`]),
    ...(providers.some(isOurs) ? [START_MOCK] : []),
    `polygateway check${named}          says what is in force and what is wrong`,
    `polygateway check --live${named}   ${purpose.name === "ocr" ? "asks each source how it is, without reading anything" : "asks each source one tiny question"}`,
    `polygateway ${command}${named}${rest}`,
  ];
  const shadow = format === "env" ? DEFAULT_CONFIG_FILES.find((name) => existsSync(name)) : undefined;
  const note = `Note: ${shadow} is the configuration in this folder; ${path} only fills its \${…}.`;
  return [
    `Wrote ${path} for ${providers.map(({ name }) => name).join(", ")}.`,
    ...(shadow === undefined ? [] : [note]),
    "Next:",
    ...steps.map((step, index) => `  ${index + 1}. ${step}`),
  ];
}
