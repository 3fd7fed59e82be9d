import { seededStream } from "../seeded-random.js";

/** Pages as MonkeyOCR and MinerU write them, with what goes wrong on them. */

/** Faults of the layout itself. */
export interface LayoutFaults {
  /** A score is NaN, as Python writes it. */
  readonly nan?: boolean;
  /** Each page has further blocks: one inverted, one out of the page, one no number, one that is a line. */
  readonly brokenBoxes?: boolean;
  /** The second paragraph of a page is merged into the one before it. */
  readonly merged?: boolean;
  /** The picture is a group without a body, so that its box is empty. */
  readonly emptyGroup?: boolean;
  /** The second page tells no size; the only one, where there is but one. */
  readonly noPageSize?: boolean;
  /** Stands as the text of one block, and instead of what `/ocr/text` reads: `Error: Request timeout` and the like. */
  readonly errorText?: string;
}

type Box = readonly [number, number, number, number];

const [WIDTH, HEIGHT] = [612, 792];

function textBlock(type: string, bbox: unknown, index: number, content: string, score: number | null = null) {
  const span = { bbox, ...(score === null ? {} : { score }), type: "text", content };
  return { type, bbox, index, lines: [{ bbox, index, spans: [span] }] };
}

function group(kind: string, body: Box | null, caption: Box, index: number, span: Readonly<Record<string, unknown>>) {
  const part = (type: string, bbox: Box, content: Readonly<Record<string, unknown>>) => ({
    type,
    bbox,
    group_id: 0,
    lines: [{ bbox, spans: [{ bbox, ...content }] }],
  });
  const captionPart = part(`${kind}_caption`, caption, { type: "text", content: `The ${kind}.` });
  const parts = body === null ? [captionPart] : [part(`${kind}_body`, body, span), captionPart];
  return { type: kind, bbox: body ?? [], index, blocks: parts };
}

/** What is on a page: the same seed, file and page number give the same words. */
export function pageTexts(
  seed: number,
  digest: string,
  page: number,
): readonly [title: string, first: string, second: string] {
  const draw = seededStream(seed, page);
  const word = () => `word${draw() % 1_000}`;
  return [`Scan ${digest.slice(0, 8)} page ${page}`, `${word()} ${word()} ${word()}.`, `${word()} ${word()}.`];
}

/** The marks that `JSON.stringify` can't write. */
const NAN_MARK = "__NaN__";

/** `middle.json` of a whole document, as text. */
export function middleJson(seed: number, digest: string, pages: number, faults: LayoutFaults): string {
  const info = Array.from({ length: pages }, (_, index) => {
    const noSize = faults.noPageSize === true && index === Math.min(1, pages - 1);
    return pageOf(pageTexts(seed, digest, index + 1), index, faults, noSize);
  });
  const json = JSON.stringify({ pdf_info: info, _parse_type: "ocr", _version_name: "1.1.0" });
  return json.replaceAll(`"${NAN_MARK}"`, "NaN");
}

function pageOf(texts: readonly string[], index: number, faults: LayoutFaults, noSize: boolean) {
  const [title = "", first = "", second = ""] = texts;
  const blocks: Record<string, unknown>[] = [
    textBlock("title", [72, 60, 540, 84], 0, title, 1),
    textBlock("text", [72, 100, 540, 160], 1, faults.errorText ?? first),
    textBlock("text", [72, 170, 540, 230], 2, second),
    group("image", faults.emptyGroup === true ? null : [72, 300, 300, 500], [72, 505, 300, 520], 3, {
      type: "image",
      score: faults.nan === true ? NAN_MARK : 0.97,
      image_path: "ab.jpg",
    }),
    group("table", [72, 530, 540, 640], [72, 641, 540, 648], 4, {
      type: "table",
      html: `<table><tr><td>${second}</td></tr></table>`,
      image_path: "ef.jpg",
    }),
    {
      type: "interline_equation",
      bbox: [100, 650, 400, 680],
      index: 5,
      lines: [{ spans: [{ type: "interline_equation", content: "E=mc^2" }] }],
    },
  ];
  if (faults.brokenBoxes === true) {
    blocks.push(
      textBlock("text", [540, 720, 72, 690], 6, "inverted"),
      textBlock("text", [-40, 725, 900, 740], 7, "out of the page"),
      textBlock("text", [72, NAN_MARK, 540, 745], 8, "no number"),
      textBlock("text", [72, 746, 540, 746], 9, "a line"),
    );
  }
  return {
    page_idx: index,
    ...(noSize ? {} : { page_size: [WIDTH, HEIGHT] }),
    preproc_blocks: blocks,
    para_blocks:
      faults.merged === true ? merged(blocks) : blocks.map((block) => ({ ...block, page_num: `page_${index}` })),
    discarded_blocks: [textBlock("discarded", [280, 770, 330, 782], 0, "")],
    layout_bboxes: [],
    need_drop: false,
    drop_reason: [],
  };
}

/** As the paragraph pass leaves it: the lines of the second text belong to the first. */
function merged(blocks: readonly Readonly<Record<string, unknown>>[]) {
  return blocks.map((block, index) => {
    if (index === 1) return { ...block, lines: [block.lines, blocks[2]?.lines].flat() };
    return index === 2 ? { ...block, lines: [], lines_deleted: true } : block;
  });
}
