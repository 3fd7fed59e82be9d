/** Reads text, reasoning and log probabilities from a message or delta, in all the shapes that servers use. */

export type Fields = Record<string, unknown>;

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null;
}

function partText(part: unknown): string {
  if (typeof part === "string") return part;
  return isFields(part) && typeof part.text === "string" ? part.text : "";
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  return Array.isArray(value) ? value.map(partText).join("") : "";
}

/** Content may be a string, null, or parts; parts of an unknown kind are no text. */
export function readContent(
  content: unknown,
  onText: (text: string) => void,
  onThinking: (text: string) => void,
): void {
  if (typeof content === "string") {
    if (content !== "") onText(content);
    return;
  }
  if (!Array.isArray(content)) return;
  for (const part of content) {
    if (typeof part === "string") onText(part);
    if (!isFields(part)) continue;
    if (part.type === "thinking" || part.type === "reasoning") {
      onThinking(textOf(part.thinking) || textOf(part.reasoning) || textOf(part.text));
    } else if (part.type === "text" || part.type === "output_text" || part.type === undefined) {
      onText(partText(part));
    }
  }
}

const NO_FIELDS: readonly string[] = [];

/** Reasoning fields in order of trust, the profile's own first; only one of them is taken, since some servers send the same text twice. */
export function readReasoning(message: Fields, ownFields: readonly string[] = NO_FIELDS): string {
  for (const field of ownFields) {
    const text = textOf(message[field]);
    if (text !== "") return text;
  }
  if (typeof message.reasoning_content === "string" && message.reasoning_content !== "")
    return message.reasoning_content;
  const { reasoning } = message;
  if (typeof reasoning === "string" && reasoning !== "") return reasoning;
  const named = isFields(reasoning) ? textOf(reasoning.content) || textOf(reasoning.text) : "";
  if (named !== "" || !Array.isArray(message.reasoning_details)) return named;
  return message.reasoning_details
    .map((detail) => partText(detail) || (isFields(detail) && typeof detail.summary === "string" ? detail.summary : ""))
    .join("");
}

/**
 * Streamed log probabilities come in pieces: their lists are joined, everything else is replaced. `before` is what this
 * function returned last; its lists grow in place, since copying them with every piece would be quadratic.
 */
export function joinLogprobs(before: unknown, piece: unknown): unknown {
  if (!isFields(piece)) return before;
  if (!isFields(before)) return piece;
  for (const key of Object.keys(piece)) {
    if (key === "__proto__") continue;
    const old = before[key];
    const added = piece[key];
    if (Array.isArray(old) && Array.isArray(added)) for (const entry of added) old.push(entry);
    else before[key] = added ?? old;
  }
  return before;
}
