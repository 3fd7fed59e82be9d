import type { OcrImage, OcrLayout } from "../../domain/ocr.js";
import { parseJson } from "../json-weight.js";
import { layoutBuilder, type PageBuilder } from "./boxes.js";
import { addContent } from "./element-content.js";
import { deepseekType } from "./element-types.js";
import type { VlmReader } from "./vlm-reader.js";

/** Boxes are given in thousandths of the picture, 0 to 999. */
const FRAME = { width: 999, height: 999 };

/** The model repeats itself without end unless the server's logits processor keeps it from it; `<td>` and `</td>` may repeat. */
const NO_REPEATS = { ngram_size: 30, window_size: 90, whitelist_token_ids: [128_821, 128_822] };

/** Where the picture stands; a line of its own. */
const PICTURE = "<image>\n";

const SAMPLING = { temperature: 0 };
const FIELDS = { skip_special_tokens: false, vllm_xargs: NO_REPEATS };

/** DeepSeek-OCR 1 and 2 (spec reference-providers §1.2). */
export const deepseekReader: VlmReader = {
  name: "deepseek-ocr",
  text: { prompt: "Free OCR.", marks: [PICTURE], sampling: SAMPLING, fields: FIELDS },
  layout: {
    prompt: "Convert the document to markdown.",
    marks: [PICTURE, "<|grounding|>"],
    sampling: SAMPLING,
    fields: FIELDS,
  },
  readText: (answer) => withoutMarks(answer),
  readLayout,
};

/** Marks of the model's own: `<｜end▁of▁sentence｜>`, `<|grounding|>`. */
function withoutMarks(text: string): string {
  return text.replaceAll(/<[|｜][^|｜<>]{1,40}[|｜]>/g, "").trim();
}

interface Grounding {
  readonly label: string;
  readonly boxes: string;
  readonly content: string;
}

const REF = "<|ref|>";
const REF_END = "<|/ref|>";
const BOXES = "<|det|>";
const BOXES_END = "<|/det|>";

/** `<|ref|>label<|/ref|><|det|>[[…]]<|/det|>` and the text up to the next; undefined = a part that is none. */
function groundingOf(part: string): Grounding | undefined {
  const labelEnd = part.indexOf(REF_END);
  const boxes = labelEnd + REF_END.length;
  const end = part.indexOf(BOXES_END, boxes);
  if (labelEnd === -1 || end === -1 || !part.startsWith(BOXES, boxes)) return undefined;
  return {
    label: part.slice(0, labelEnd).trim(),
    boxes: part.slice(boxes + BOXES.length, end),
    content: withoutMarks(part.slice(end + BOXES_END.length)),
  };
}

function readLayout(answer: string, { size }: OcrImage): OcrLayout | string {
  // What stands before the first mark belongs to no block.
  const parts = answer.split(REF).slice(1);
  if (parts.length === 0) {
    return "the answer holds no <|ref|> marks: the server must leave special tokens in (skip_special_tokens: false)";
  }
  const layout = layoutBuilder();
  const page = layout.page(
    size === null ? { page: 1, width: 1, height: 1, unit: "normalised" } : { page: 1, ...size, unit: "pixel" },
    FRAME,
  );
  if (page === null) return "the size of the picture isn't known";
  for (const part of parts) {
    const grounding = groundingOf(part);
    if (grounding === undefined) layout.drop();
    else addTo(page, grounding);
  }
  return layout.finish();
}

/** One mark may hold several boxes, as of pictures side by side: the text goes with the first. */
function addTo(page: PageBuilder, { label, boxes, content }: Grounding): void {
  const kind = deepseekType(label);
  const parsed = parseJson(boxes.trim());
  const list: readonly unknown[] = Array.isArray(parsed) && Array.isArray(parsed[0]) ? parsed : [parsed];
  let hasText = false;
  for (const box of list) {
    const added = addContent(page, kind, box, hasText ? undefined : content);
    hasText ||= added;
  }
}
