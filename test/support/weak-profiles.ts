import type { ProfileOptions } from "../../src/index.js";

/** Providers that enforce less than OpenAI. */
export const OBJECT_ONLY: ProfileOptions = {
  extends: "openai",
  name: "object-only",
  structuredOutput: ["json_object"],
};
export const PROMPT_ONLY: ProfileOptions = { extends: "openai", name: "prompt-only", structuredOutput: [] };
