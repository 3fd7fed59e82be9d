import type { OcrImage, OcrLayout } from "../../domain/ocr.js";
import { layoutBuilder } from "./boxes.js";
import { addContent } from "./element-content.js";
import { dotsType } from "./element-types.js";
import { objectsIn } from "./json-objects.js";
import { smartResize } from "./smart-resize.js";
import type { VlmReader } from "./vlm-reader.js";

/** The marks of a picture: without them in the text, vLLM puts a line break behind the picture. */
const MARKS = ["<|img|>", "<|imgpad|>", "<|endofimg|>"];

const CATEGORIES =
  "'Caption', 'Footnote', 'Formula', 'List-item', 'Page-footer', 'Page-header', 'Picture', 'Section-header', 'Table', 'Text', 'Title'";

const LAYOUT_PROMPT = `Please output the layout of this PDF image: every layout element with its bbox, its category and the text content within the bbox.

1. Bbox format: [x1, y1, x2, y2]

2. Categories: one of [${CATEGORIES}].

3. Text format:
    - Picture: omit the text field.
    - Formula: LaTeX.
    - Table: HTML.
    - All others: Markdown.

4. Keep the original text without translation, and sort the elements by human reading order.

5. The whole output must be a single JSON object.
`;

const SAMPLING = { temperature: 0.1, topP: 0.9, maxTokens: 32_768 };

/** dots.ocr and dots.mocr (spec reference-providers §1.2). */
export const dotsReader: VlmReader = {
  name: "dots-ocr",
  text: { prompt: "Extract the text content from this image.", marks: MARKS, sampling: SAMPLING },
  layout: { prompt: LAYOUT_PROMPT, marks: MARKS, sampling: SAMPLING },
  layoutTrouble({ size }) {
    if (size === null) return "its boxes count in pixels of the picture, whose size can't be told from its header";
    return smartResize(size) === null ? "one side is more than 200 times as long as the other" : undefined;
  },
  readText: (answer) => answer.trim(),
  readLayout,
};

function readLayout(answer: string, { size }: OcrImage): OcrLayout | string {
  const seen = size === null ? null : smartResize(size);
  const found = objectsIn(answer);
  if (found === null) return "the answer is no JSON list of elements";
  const layout = layoutBuilder();
  const page = size === null || seen === null ? null : layout.page({ page: 1, ...size, unit: "pixel" }, seen);
  if (page === null) return "the size of the picture isn't known";
  layout.drop(found.broken);
  for (const { bbox, category, text } of found.objects) {
    addContent(page, dotsType(category), bbox, text);
  }
  return layout.finish();
}
