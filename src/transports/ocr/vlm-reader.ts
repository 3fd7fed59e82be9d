import type { Sampling } from "../../domain/chat.js";
import type { OcrImage, OcrLayout, OcrReaderName } from "../../domain/ocr.js";

/** What a chat model is asked for one operation. */
export interface VlmQuestion {
  /** Its words, without the marks. */
  readonly prompt: string;
  /** What this family needs before any words: a prompt of the user's own that names the first of them is sent as it is. */
  readonly marks?: readonly string[];
  /** The text stands before the picture. Default: behind it. */
  readonly promptFirst?: boolean;
  /** What the model's makers ask it with; EXTRA_BODY of the source wins. */
  readonly sampling?: Sampling;
  /** Further wire fields, as for `sampling`. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** How one family of models is asked, and how its answers are read. */
export interface VlmReader {
  readonly name: Exclude<OcrReaderName, "auto">;
  readonly text: VlmQuestion;
  /** A string says why there is none, and what to do. */
  readonly layout: VlmQuestion | string;
  /** A general model may think first, which reading doesn't need: it is asked not to, where its profile knows how. */
  readonly mayThink?: boolean;
  /** An answer that didn't end by itself is worth another try: at a temperature above 0 the next one may. */
  readonly retriesCutAnswers?: boolean;
  /** Why this picture can't be asked for its layout; undefined = it can. */
  layoutTrouble?(image: OcrImage): string | undefined;
  /** The text of an answer; "" = there is none. */
  readText(answer: string): string;
  /** The blocks of an answer, for readers that ask for a layout. A string says why they can't be read. */
  readLayout?(answer: string, image: OcrImage): OcrLayout | string;
}
