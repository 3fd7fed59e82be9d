import type { ClientKind } from "../config/client-kind.js";
import type { Configuration } from "./configuration.js";
import { CliError } from "./failure.js";

export const DEFAULT_SCOPE = "LLM";

/** `--scope`, else the only one that fits, else LLM (spec 08). `kinds` = what the command can use. */
export function chooseScope(
  flag: string | undefined,
  configuration: Configuration,
  kinds: readonly ClientKind[] = ["chat"],
): string {
  const [only] = kinds;
  if (flag !== undefined) return flag;
  return kinds.length === 1 && (only === "embedding" || only === "ocr")
    ? theOneFor(only, configuration)
    : theUsual(configuration);
}

function theUsual({ scopes, dotenvPath, file }: Configuration): string {
  const [only] = scopes;
  if (scopes.length === 1 && only !== undefined) return only;
  // What is wrong with a file without scopes is told when one is asked for.
  if (scopes.includes(DEFAULT_SCOPE) || (file !== undefined && scopes.length === 0)) return DEFAULT_SCOPE;
  if (scopes.length > 0) {
    throw new CliError(`Several scopes are configured (${scopes.join(", ")}). Choose one with --scope.`);
  }
  throw new CliError(
    `No source is configured in the environment${dotenvPath === undefined ? "" : ` or in ${dotenvPath}`}. A source needs three keys, for example:
  LLM__OPENAI__1__BASE_URL=https://api.openai.com/v1
  LLM__OPENAI__1__API_KEY=sk-…
  LLM__OPENAI__1__MODEL=gpt-4.1-mini
\`polygateway init\` writes them into .env in this folder; then run \`polygateway check\`. \`polygateway demo\` works without any of them.`,
  );
}

const EXAMPLES: Readonly<Record<Exclude<ClientKind, "chat">, { readonly what: string; readonly keys: string }>> = {
  embedding: {
    what: "for embeddings",
    keys: `One has a BATCH_SIZE, for example:
  EMBED__OPENAI__1__BASE_URL=https://api.openai.com/v1
  EMBED__OPENAI__1__API_KEY=sk-…
  EMBED__OPENAI__1__MODEL=text-embedding-3-small
  EMBED__BATCH_SIZE=100`,
  },
  ocr: {
    what: "for OCR",
    keys: `The sources of one name their TRANSPORT, for example:
  OCR__MONKEY__1__BASE_URL=http://127.0.0.1:7861
  OCR__MONKEY__1__API_KEY=none
  OCR__MONKEY__1__MODEL=MonkeyOCR
  OCR__MONKEY__1__TRANSPORT=monkey-ocr`,
  },
};

function theOneFor(kind: Exclude<ClientKind, "chat">, { scopes, inspect }: Configuration): string {
  const { what, keys } = EXAMPLES[kind];
  const able = scopes.filter((scope) => inspect(scope, "any").client === kind);
  const [only] = able;
  if (only !== undefined && able.length === 1) return only;
  if (able.length > 1) throw new CliError(`Several scopes are ${what} (${able.join(", ")}). Choose one with --scope.`);
  const others = scopes.length === 0 ? "" : ` (configured: ${scopes.join(", ")})`;
  throw new CliError(`No scope ${what} is configured${others}. ${keys}`);
}
