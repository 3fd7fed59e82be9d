import type { VlmReader } from "./vlm-reader.js";

const PROMPT =
  "Transcribe all text of this image exactly as it is written, in reading order. " +
  "Write headings, lists and tables as Markdown and formulas as LaTeX. " +
  "Don't translate, correct, explain or leave out anything. Answer with the text alone.";

const FENCED = /^```(?:markdown|md|text|txt)?[^\S\n]{0,20}\n([\s\S]*)\n```$/;

/** Any model that takes pictures. Boxes of such models follow no common rule, so only text is read. */
export const plainReader: VlmReader = {
  name: "plain",
  text: { prompt: PROMPT },
  layout:
    'a general chat model tells no dependable boxes (ocrReader "plain"). Read its text instead, or take a source for ' +
    "layouts: dots.ocr, DeepSeek-OCR, MonkeyOCR, MinerU, PaddleX or Mistral OCR",
  mayThink: true,
  readText: (answer) => withoutFence(answer.trim()),
};

/** Some models put the whole answer into one block of code. One that ends and begins again inside is the page's own. */
function withoutFence(answer: string): string {
  const inner = FENCED.exec(answer)?.[1];
  return inner === undefined || inner.includes("\n```") ? answer : inner.trim();
}
