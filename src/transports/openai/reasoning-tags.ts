import { TextPile } from "../text-pile.js";

/** Reasoning that a model writes into its answer, between tags at the very start of the message (spec 03 "Content"). */

export type TagPairs = readonly (readonly [open: string, close: string])[];

export interface SplitText {
  readonly thinking: string;
  readonly content: string;
}

/** A quoted closing tag is part of the text that talks about it. */
const QUOTES = new Set(["`", '"', "'", "«", "“"]);

const signs = new WeakMap<TagPairs, string>();

/** A character that every closing tag has: a text without it has none of them, and one search for one character says so. */
function signOf(tags: TagPairs): string {
  let sign = signs.get(tags);
  if (sign === undefined) {
    const [, first = ""] = tags[0] ?? [];
    const common = [...first].filter((character) => tags.every(([, close]) => close.includes(character)));
    // Letters are in every text.
    sign = common.find((character) => !/\p{L}/u.test(character)) ?? "";
    signs.set(tags, sign);
  }
  return sign;
}

/** Where the first tag of all pairs stands; undefined when there is none. */
function orphanClose(text: string, tags: TagPairs): { at: number; close: string } | undefined {
  const sign = signOf(tags);
  if (sign !== "" && text.indexOf(sign) === -1) return undefined;
  for (const [open, close] of tags) {
    const at = text.indexOf(close);
    if (at === -1 || QUOTES.has(text[at - 1] ?? "")) continue;
    const opened = text.indexOf(open);
    if (opened === -1 || opened > at) return { at, close };
  }
  return undefined;
}

function isVisibleAscii(unit: number): boolean {
  return unit > 0x20 && unit < 0x7f;
}

/**
 * The whole message, split. A block only counts at the very start; an unclosed one is all reasoning;
 * a closing tag that nothing opened ends reasoning whose opening tag stood in the prompt template.
 * `orphans: false` when reasoning came in a field of its own.
 */
export function splitReasoning(text: string, tags: TagPairs, orphans = true): SplitText {
  const start = isVisibleAscii(text.charCodeAt(0)) ? 0 : text.length - text.trimStart().length;
  for (const [open, close] of tags) {
    if (!text.startsWith(open, start)) continue;
    const from = start + open.length;
    const end = text.indexOf(close, from);
    if (end === -1) return { thinking: text.slice(from).trim(), content: "" };
    return { thinking: text.slice(from, end).trim(), content: text.slice(end + close.length).trimStart() };
  }
  const orphan = orphans ? orphanClose(text, tags) : undefined;
  if (orphan === undefined) return { thinking: "", content: text };
  return {
    thinking: text.slice(0, orphan.at).trim(),
    content: text.slice(orphan.at + orphan.close.length).trimStart(),
  };
}

/** Could more text still turn this beginning into an opening tag? */
function mayOpen(text: string, tags: TagPairs): boolean {
  return tags.some(([open]) => open.startsWith(text) && text.length < open.length);
}

/** Length of the longest end of `text` that is a beginning of `tag`. */
function heldBack(text: string, tag: string): number {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length -= 1) {
    if (tag.startsWith(text.slice(text.length - length))) return length;
  }
  return 0;
}

export type TagSink = (kind: "thinking" | "text", text: string) => void;

/**
 * The same split for a consumer that reads along. Text that may still become a tag is held back until it is decided,
 * and `end()` hands over what is left.
 */
export class TagScanner {
  readonly #tags: TagPairs;
  readonly #sink: TagSink;
  #state: "start" | "thinking" | "after" | "text" = "start";
  /** White space at the very start: kept apart, so that it isn't looked through again with each piece. */
  readonly #blanks = new TextPile();
  #held = "";
  #close = "";

  constructor(tags: TagPairs, sink: TagSink) {
    this.#tags = tags;
    this.#sink = sink;
  }

  /** `orphans: false` as for `splitReasoning`. */
  push(text: string, orphans = true): void {
    if (this.#state === "text") {
      this.#sink("text", text);
      return;
    }
    this.#held += text;
    if (this.#state === "start") this.#decide(orphans);
    if (this.#state === "thinking") this.#readThinking();
    if (this.#state === "after") this.#skipBlank();
  }

  end(): void {
    const rest = this.#blanks.take() + this.#held;
    if (rest !== "") this.#sink(this.#state === "thinking" ? "thinking" : "text", rest);
    this.#held = "";
    this.#state = "text";
  }

  #decide(orphans: boolean): void {
    const text = this.#held.trimStart();
    if (text.length < this.#held.length) {
      this.#blanks.add(this.#held.slice(0, this.#held.length - text.length));
      this.#held = text;
    }
    for (const [open, close] of this.#tags) {
      if (!text.startsWith(open)) continue;
      this.#state = "thinking";
      this.#blanks.take();
      this.#close = close;
      this.#held = text.slice(open.length);
      return;
    }
    if (text === "" || mayOpen(text, this.#tags)) return;
    const orphan = orphans ? orphanClose(text, this.#tags) : undefined;
    if (orphan === undefined) {
      this.end();
      return;
    }
    // Only what comes in one piece can be told in time: a text that was handed out can't be taken back.
    const thinking = text.slice(0, orphan.at).trim();
    if (thinking !== "") this.#sink("thinking", thinking);
    this.#state = "after";
    this.#blanks.take();
    this.#held = text.slice(orphan.at + orphan.close.length);
  }

  #readThinking(): void {
    const end = this.#held.indexOf(this.#close);
    const upTo = end === -1 ? this.#held.length - heldBack(this.#held, this.#close) : end;
    if (upTo > 0) this.#sink("thinking", this.#held.slice(0, upTo));
    this.#held = end === -1 ? this.#held.slice(upTo) : this.#held.slice(end + this.#close.length);
    if (end !== -1) this.#state = "after";
  }

  /** Blank lines between the reasoning and the answer belong to neither. */
  #skipBlank(): void {
    this.#held = this.#held.trimStart();
    if (this.#held !== "") this.end();
  }
}
