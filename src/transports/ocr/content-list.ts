import { type BlockType, type LayoutBuilder, typeReader } from "./boxes.js";
import { pageNumber } from "./middle-json.js";
import { type Fields, fieldsOf } from "./middle-spans.js";

/**
 * `content_list` of MinerU (reference-providers §1.2): one flat list of blocks with boxes from 0 to 1000. Captions have no
 * box of their own there, so they are the text of what they stand at. MonkeyOCR's has no boxes at all.
 */

const typeOf = typeReader({
  text: "text",
  ref_text: "text",
  phonetic: "text",
  list: "list",
  index: "list",
  equation: "formula",
  interline_equation: "formula",
  image: "image",
  table: "table",
  chart: "chart",
  code: "code",
  algorithm: "code",
  header: "header",
  footer: "footer",
  page_number: "page_number",
  page_footnote: "footnote",
});

const SCALE = { width: 1_000, height: 1_000 } as const;

/** Adds every page that it names. A text is the reason why nothing of it can be used; null = all is well. */
export function readContentList(
  value: unknown,
  layout: LayoutBuilder,
  onText: (text: string) => void = () => {},
): string | null {
  if (!Array.isArray(value)) return "the content_list is no list";
  let pages = 0;
  for (const raw of value) {
    const block = fieldsOf(raw);
    const number = block === undefined ? null : pageNumber(block, 0);
    const size = { page: number ?? 0, width: 1, height: 1, unit: "normalised" } as const;
    const page = number === null ? null : layout.page(size, SCALE);
    if (block === undefined || page === null) {
      layout.drop();
      continue;
    }
    pages += 1;
    const texts = textsOf(block);
    for (const text of texts) onText(text);
    const { rawType, type } = blockType(block);
    const { text, html, latex } = contentOf(block, type, texts);
    page.add({ type, rawType, box: block.bbox, text, html, latex });
  }
  return pages === 0 ? "the content_list names no page" : null;
}

/** `text_level` makes a text a title: 1 is the highest. */
function blockType({ type, text_level: level }: Fields): BlockType {
  const read = typeOf(type);
  if (read.type !== "text" || typeof level !== "number" || level < 1) return read;
  return { ...read, type: level === 1 ? "title" : "heading" };
}

interface BlockContent {
  readonly text?: unknown;
  readonly html?: unknown;
  readonly latex?: unknown;
}

function contentOf(block: Fields, type: BlockType["type"], texts: readonly string[]): BlockContent {
  if (type === "formula") return { latex: block.text };
  const text = texts.join("\n");
  return type === "table" ? { text, html: block.table_body } : { text };
}

const TEXT_FIELDS = ["text", "list_items", "code_body"] as const;
const CAPTION_FIELD = /_(?:caption|footnote)$/;

function textsOf(block: Fields): string[] {
  const texts: string[] = [];
  const take = (value: unknown) => {
    for (const text of Array.isArray(value) ? (value as unknown[]) : [value]) {
      if (typeof text === "string" && text.trim() !== "") texts.push(text);
    }
  };
  for (const name of TEXT_FIELDS) take(block[name]);
  for (const name of Object.keys(block)) if (CAPTION_FIELD.test(name)) take(block[name]);
  return texts;
}
