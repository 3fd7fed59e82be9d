import type { VlmReader } from "./vlm-reader.js";

const PROMPT =
  "Attached is one page of a document. Return its plain text in natural reading order, as Markdown: equations as LaTeX, " +
  "tables as HTML, figures and charts as ![alt text](page_startx_starty_width_height.png).\n" +
  "Begin with a YAML front matter section that gives values for primary_language, is_rotation_valid, " +
  "rotation_correction, is_table and is_diagram.";

/** olmOCR 1 and 2 (spec reference-providers §1.2). */
export const olmocrReader: VlmReader = {
  name: "olmocr",
  text: { prompt: PROMPT, promptFirst: true, sampling: { temperature: 0.1, maxTokens: 8_000 } },
  layout: "olmOCR tells no boxes. Read its text instead, or take a source of another kind for layouts",
  retriesCutAnswers: true,
  readText: (answer) => withoutFrontMatter(answer),
};

const MARK = "---";

/** What stands between the two lines of `---` at the beginning says how the page lies, not what is on it. */
function withoutFrontMatter(answer: string): string {
  const text = answer.trimStart();
  if (!/^---[^\S\n]{0,20}\n/.test(text)) return text.trim();
  const lines = text.split("\n");
  const end = lines.findIndex((line, at) => at > 0 && line.trim() === MARK);
  // A rule across the page, and no front matter.
  const isFrontMatter =
    end > 0 && lines.slice(1, end).every((line) => line.trim() === "" || /^[a-z_]{1,40}:/.test(line));
  return (isFrontMatter ? lines.slice(end + 1).join("\n") : text).trim();
}
