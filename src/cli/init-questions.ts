import { createInterface } from "node:readline";
import { showWord } from "../domain/secret.js";
import { CliError, EXIT } from "./failure.js";
import { CUSTOM_PROVIDER } from "./init-providers.js";
import type { Terminal } from "./terminal.js";

export interface Conversation {
  /** The answer, or `fallback` for an empty line; asks again until `fault` finds nothing wrong. Throws CliError when the input ends. */
  ask(question: string, fallback: string, fault?: (answer: string) => string | undefined): Promise<string>;
  close(): void;
}

/** Questions on stderr, answers line by line from stdin. */
export function startConversation({ stdin, stderr }: Terminal): Conversation {
  // Without an output readline leaves the terminal as it is: it echoes by itself and Ctrl-C ends the process.
  const reader = createInterface({ input: stdin });
  const lines = reader[Symbol.asyncIterator]();
  return {
    async ask(question, fallback, fault = () => undefined) {
      for (;;) {
        stderr.write(`${question}${fallback === "" ? "" : ` [${fallback}]`}: `);
        const { value, done } = await lines.next();
        if (done) throw new CliError("\nThe questions were left: nothing was written.", EXIT.interrupted);
        const answer = String(value).trim() || fallback;
        const wrong = fault(answer);
        if (wrong === undefined) return answer;
        stderr.write(`${wrong}\n`);
      }
    },
    close: () => reader.close(),
  };
}

export function splitNames(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter((name) => name !== ""))];
}

/** What is wrong with a list of providers, of which `known` are possible. */
export function namesFault(text: string, known: readonly string[]): string | undefined {
  const names = splitNames(text);
  if (names.length === 0) return "Name at least one.";
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length === 0) return undefined;
  return `${unknown.map(showWord).join(", ")}: not known here. Known are ${known.join(", ")}; \`${CUSTOM_PROVIDER}\` is any other server.`;
}
