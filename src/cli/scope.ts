import type { Configuration } from "./configuration.js";
import { CliError } from "./failure.js";

export const DEFAULT_SCOPE = "LLM";

/** `--scope`, else the only one configured, else LLM (spec 08). */
export function chooseScope(flag: string | undefined, { scopes, dotenvPath, file }: Configuration): string {
  if (flag !== undefined) return flag;
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

/** `--scope`, else the only one for embeddings. */
export function chooseEmbeddingScope(flag: string | undefined, configuration: Configuration): string {
  if (flag !== undefined) return flag;
  const { scopes, inspect } = configuration;
  const able = scopes.filter((scope) => inspect(scope, "any").client === "embedding");
  const [only] = able;
  if (only !== undefined && able.length === 1) return only;
  if (able.length > 1) {
    throw new CliError(`Several scopes are for embeddings (${able.join(", ")}). Choose one with --scope.`);
  }
  const others = scopes.length === 0 ? "" : ` (configured: ${scopes.join(", ")})`;
  throw new CliError(`No scope for embeddings is configured${others}. One has a BATCH_SIZE, for example:
  EMBED__OPENAI__1__BASE_URL=https://api.openai.com/v1
  EMBED__OPENAI__1__API_KEY=sk-…
  EMBED__OPENAI__1__MODEL=text-embedding-3-small
  EMBED__BATCH_SIZE=100`);
}

export function notForEmbeddings(scope: string): string {
  return `Scope ${scope} is not for embeddings: it has no BATCH_SIZE. Set ${scope}__BATCH_SIZE to the texts that its provider takes in one request, or choose another scope with --scope.`;
}
