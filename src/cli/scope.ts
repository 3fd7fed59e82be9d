import { existsSync } from "node:fs";
import { type Env, environment, scopesIn } from "../config/env.js";
import { CliError } from "./failure.js";

const DEFAULT_SCOPE = "LLM";
const DEFAULT_ENV_FILE = ".env";

/** The dotenv file to read: the one that was named, else `.env` in the current folder if there is one. */
export function dotenvPathOf(flag: string | undefined): string | undefined {
  return flag ?? (existsSync(DEFAULT_ENV_FILE) ? DEFAULT_ENV_FILE : undefined);
}

/** `--scope`, else the only one configured, else LLM (spec 08). */
export function chooseScope(flag: string | undefined, env: Env, dotenvPath: string | undefined): string {
  if (flag !== undefined) return flag;
  const scopes = scopesIn(environment(env, dotenvPath === undefined ? {} : { dotenvPath }));
  const [only] = scopes;
  if (scopes.length === 1 && only !== undefined) return only;
  if (scopes.length === 0) {
    throw new CliError(
      `No source is configured in the environment${dotenvPath === undefined ? "" : ` or in ${dotenvPath}`}. A source needs three keys, for example:
  LLM__OPENAI__1__BASE_URL=https://api.openai.com/v1
  LLM__OPENAI__1__API_KEY=sk-…
  LLM__OPENAI__1__MODEL=gpt-4.1-mini
Put them into .env in this folder, then run \`polygateway check\`. \`polygateway demo\` works without any of them.`,
    );
  }
  if (scopes.includes(DEFAULT_SCOPE)) return DEFAULT_SCOPE;
  throw new CliError(`Several scopes are configured (${scopes.join(", ")}). Choose one with --scope.`);
}
