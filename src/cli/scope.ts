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
