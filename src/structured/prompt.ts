import type { ChatMessage } from "../domain/chat.js";
import { type AnswerIssue, issueLines } from "./issues.js";
import type { WireSchema } from "./wire-schema.js";

/** What a model is told in words, where its provider can't be told by a parameter. */

const NOTHING_ELSE = "and write nothing else: no explanation, no code fence.";

export const JSON_OBJECT_PROMPT = `Answer with one JSON object ${NOTHING_ELSE}`;

function rulesText(rules: readonly string[], lead: string): string {
  return rules.length === 0 ? "" : `${lead}\n${rules.map((rule) => `- ${rule}`).join("\n")}`;
}

/** Asks for JSON of this schema. Holds the word "JSON", without which some providers refuse their JSON mode. */
export function schemaPrompt({ schema, rules }: WireSchema): string {
  const lead = `Answer with one JSON object that fits this JSON Schema, ${NOTHING_ELSE}\n\n${JSON.stringify(schema)}`;
  return `${lead}${rulesText(rules, "\n\nThese rules of JSON Schema hold too, each for the place named before it:")}`;
}

/** What the provider doesn't enforce although it is given the schema; "" when there is nothing. */
export function rulesPrompt({ rules }: WireSchema): string {
  return rulesText(
    rules,
    "Besides its schema, the JSON answer must keep these rules, each for the place named before it:",
  );
}

/** The messages with an instruction in the first system message, or in one of its own before all others. */
export function withInstruction(messages: readonly ChatMessage[], text: string): readonly ChatMessage[] {
  const [first, ...rest] = messages;
  if (first === undefined || (first.role !== "system" && first.role !== "developer")) {
    return [{ role: "system", content: text }, ...messages];
  }
  const { content } = first;
  const joined = Array.isArray(content)
    ? [...content, { type: "text", text }]
    : typeof content === "string" && content !== ""
      ? `${content}\n\n${text}`
      : text;
  return [{ ...first, content: joined }, ...rest];
}

/** A reply that is sent back in full; of a longer one the two ends say enough. */
const MAX_REPLY_UNITS = 32_768;

function shortened(text: string): string {
  if (text.length <= MAX_REPLY_UNITS) return text;
  const half = MAX_REPLY_UNITS / 2;
  return `${text.slice(0, half)}\n…\n${text.slice(-half)}`.replace(/[\ud800-\udbff](?=\n)|(?<=\n)[\udc00-\udfff]/g, "");
}

/** The conversation goes on: the reply, and what is wrong with it. */
export function reaskMessages(
  messages: readonly ChatMessage[],
  reply: string,
  issues: readonly AnswerIssue[],
  wrapped: boolean,
): readonly ChatMessage[] {
  const place = wrapped ? ' (places are told from inside "value")' : "";
  const text =
    `This answer can't be used${place}:\n${issueLines(issues)}\n` +
    "Answer again with the whole corrected JSON, and nothing else.";
  return [...messages, { role: "assistant", content: shortened(reply) }, { role: "user", content: text }];
}
