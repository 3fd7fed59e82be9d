import { typeReader } from "./boxes.js";

/** What servers call the blocks of a page → what they are. Words in lower case with `_` (boxes.ts, `typeReader`). */

/** PP-DocLayout's classes: PaddleOCR-VL and PP-StructureV3. */
export const paddleType = typeReader({
  doc_title: "title",
  paragraph_title: "heading",
  abstract_title: "heading",
  content_title: "heading",
  reference_title: "heading",
  text: "text",
  abstract: "text",
  content: "text",
  reference: "text",
  reference_content: "text",
  aside_text: "text",
  vertical_text: "text",
  list: "list",
  table: "table",
  formula: "formula",
  display_formula: "formula",
  inline_formula: "formula",
  image: "image",
  figure: "image",
  seal: "image",
  header_image: "image",
  footer_image: "image",
  chart: "chart",
  algorithm: "code",
  figure_title: "caption",
  table_title: "caption",
  chart_title: "caption",
  figure_table_chart_title: "caption",
  footnote: "footnote",
  vision_footnote: "footnote",
  header: "header",
  footer: "footer",
  number: "page_number",
});

/** Blocks of Mistral OCR. */
export const mistralType = typeReader({
  title: "title",
  text: "text",
  aside_text: "text",
  references: "text",
  list: "list",
  table: "table",
  equation: "formula",
  image: "image",
  signature: "image",
  caption: "caption",
  code: "code",
  header: "header",
  footer: "footer",
});

/** Categories of dots.ocr. */
export const dotsType = typeReader({
  title: "title",
  section_header: "heading",
  text: "text",
  list_item: "list",
  table: "table",
  formula: "formula",
  picture: "image",
  caption: "caption",
  footnote: "footnote",
  page_header: "header",
  page_footer: "footer",
});

/** Labels between DeepSeek-OCR's `<|ref|>` marks. */
export const deepseekType = typeReader({
  title: "title",
  sub_title: "heading",
  text: "text",
  list: "list",
  table: "table",
  equation: "formula",
  formula: "formula",
  image: "image",
  figure: "image",
  chart: "chart",
  code: "code",
  image_caption: "caption",
  figure_caption: "caption",
  table_caption: "caption",
  footnote: "footnote",
  image_footnote: "footnote",
  table_footnote: "footnote",
  page_footnote: "footnote",
  header: "header",
  footer: "footer",
  page_number: "page_number",
});
