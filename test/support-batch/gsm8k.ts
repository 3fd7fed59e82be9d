import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** 1,319 questions of the GSM8K test set as OpenAI Batch lines: third-party data beside the repository, never copied. */
export const GSM8K_PATH = fileURLToPath(new URL("../../../shared/data/gsm8k-test.jsonl", import.meta.url));

/** In CI the data must be there; elsewhere the test says that it skips and why. */
export function gsm8kIsHere(): boolean {
  if (existsSync(GSM8K_PATH)) return true;
  if (process.env.CI) throw new Error("../shared/data/gsm8k-test.jsonl is missing in CI");
  console.log("skipped: ../shared/data/gsm8k-test.jsonl is not here (third-party data, not part of the repository)");
  return false;
}

/** Question by line id. */
export function gsm8kQuestions(): Map<string, string> {
  const lines = readFileSync(GSM8K_PATH, "utf8").trimEnd().split("\n");
  return new Map(
    lines.map((line) => {
      const { custom_id: id, body } = JSON.parse(line);
      return [id, body.messages[0].content];
    }),
  );
}
