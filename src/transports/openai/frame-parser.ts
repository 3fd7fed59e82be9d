import { type Fields, isFields } from "./message-fields.js";

/** Fields of a delta that a stream of text grows by. */
const GROWING = ["content", "reasoning_content", "reasoning"] as const;
/** V8 copies shorter pieces of a text; a longer one is a view that would keep the whole read alive. */
const LONGEST_COPIED = 12;
/** A pattern is kept as long as its stream runs; frames of text are far smaller. */
const LONGEST_PATTERN = 4_096;
/** A pattern that serves fewer frames than this was not worth its making… */
const WORTHWHILE = 4;
/** …and after so many of them no more are made: the server writes something new into every frame. */
const MAX_FUTILE = 3;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const FIRST_PRINTABLE = 0x20;

/** A frame, and its text before and behind the one piece that differs from frame to frame. */
interface Pattern {
  readonly before: string;
  readonly behind: string;
  readonly frame: unknown;
  readonly delta: Fields;
  readonly field: (typeof GROWING)[number];
  served: number;
}

/**
 * `JSON.parse` for the frames of one stream. Nearly all of them differ in a few letters of text alone: such a frame is
 * the one before it with another text, which takes a tenth of the time. So the same object is returned again and again;
 * it is good until the next call.
 */
export class FrameParser {
  #pattern: Pattern | undefined;
  #futile = 0;

  /** Throws what `JSON.parse` throws. */
  parse(data: string): unknown {
    const pattern = this.#pattern;
    if (pattern !== undefined) {
      const text = pieceIn(data, pattern);
      if (text !== undefined) {
        pattern.served += 1;
        pattern.delta[pattern.field] = text;
        return pattern.frame;
      }
    }
    const frame: unknown = JSON.parse(data);
    if (this.#futile < MAX_FUTILE && data.length <= LONGEST_PATTERN) this.#learn(data, frame);
    return frame;
  }

  #learn(data: string, frame: unknown): void {
    const learnt = patternOf(data, frame);
    if (learnt === undefined) return;
    if (this.#pattern !== undefined && this.#pattern.served < WORTHWHILE) this.#futile += 1;
    this.#pattern = this.#futile < MAX_FUTILE ? learnt : undefined;
  }
}

/** What stands in the place of the piece; undefined when the frame is another one, or its piece is no plain text. */
function pieceIn(data: string, { before, behind }: Pattern): string | undefined {
  const end = data.length - behind.length;
  const length = end - before.length;
  if (length < 0 || length > LONGEST_COPIED) return undefined;
  // Comparing two texts is faster than asking whether one begins with the other.
  if (data.slice(end) !== behind || data.slice(0, before.length) !== before) return undefined;
  for (let at = before.length; at < end; at += 1) {
    const unit = data.charCodeAt(at);
    if (unit === QUOTE || unit === BACKSLASH || unit < FIRST_PRINTABLE) return undefined;
  }
  return data.slice(before.length, end);
}

function patternOf(data: string, frame: unknown): Pattern | undefined {
  const delta = onlyDelta(frame);
  const field = delta === undefined ? undefined : GROWING.find((name) => isText(delta[name]));
  if (delta === undefined || field === undefined) return undefined;
  const piece = delta[field] as string;
  const at = startOf(data, field, piece);
  if (at === -1) return undefined;
  // Whether the piece stands there is seen by writing another one: the rest of the frame can't depend on it.
  const other = piece === "a" ? "b" : "a";
  const proof = `${data.slice(0, at)}${other}${data.slice(at + piece.length)}`;
  let proven: unknown;
  try {
    proven = onlyDelta(JSON.parse(proof))?.[field];
  } catch {
    return undefined;
  }
  if (proven !== other) return undefined;
  // Of the proof, not of the frame: that one is a part of its whole read.
  return { before: proof.slice(0, at), behind: proof.slice(at + 1), frame, delta, field, served: 0 };
}

/** Where the piece begins in the frame; -1 when it isn't written there letter by letter. */
function startOf(data: string, field: string, piece: string): number {
  for (const key of [`"${field}":"`, `"${field}": "`]) {
    const found = data.indexOf(key);
    if (found === -1) continue;
    const at = found + key.length;
    return data.startsWith(`${piece}"`, at) ? at : -1;
  }
  return -1;
}

/** The delta of a frame whose one choice brings nothing that is kept as an object. */
function onlyDelta(frame: unknown): Fields | undefined {
  if (!isFields(frame) || !Array.isArray(frame.choices) || frame.choices.length !== 1) return undefined;
  const [choice] = frame.choices as unknown[];
  if (!isFields(choice) || isFields(choice.logprobs) || !isFields(choice.delta)) return undefined;
  const { delta } = choice;
  return isFields(delta.tool_calls) || isFields(delta.function_call) ? undefined : delta;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
