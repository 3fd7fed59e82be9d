/** Reasons as people read them: why a source is passed over, and what a call waits for (spec 02 `perSourceReasons`). */
const WORDS: Readonly<Record<string, string>> = {
  breaker_open: "its breaker is open",
  breaker: "an open breaker",
  half_open: "one probe at a time",
  dead: "dead",
  cooling: "cools down after a 429",
  cooldown: "the end of a cooldown",
  concurrency: "no free place",
  rpm: "requests per minute",
  tpm: "tokens per minute",
  global_concurrency: "no free place in the scope",
  global_rpm: "requests per minute of the scope",
  global_tpm: "tokens per minute of the scope",
  fairness: "its turn, or the scope's retries",
  backend: "the store of the limits (Redis) to answer",
  queue: "a first answer",
};

export function reasonWords(reason: string): string {
  return Object.hasOwn(WORDS, reason) ? (WORDS[reason] as string) : reason.replaceAll("_", " ");
}
