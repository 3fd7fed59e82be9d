import { BROKEN_BOXES } from "./broken-boxes.js";
import { type OcrReply, type OcrServer, type OcrServerFaults, type OcrServerOptions, startOcrServer } from "./http.js";
import {
  assertServerOptions,
  JSON_EXCLUSIVE_FAULTS,
  JSON_FAULT_NAMES,
  JSON_RANGES,
  type ServerOptionRules,
} from "./server-options.js";

export interface MistralBlock {
  readonly type: string;
  readonly content: string;
  /** Four pixels; anything else is sent as it is. */
  readonly box: unknown;
  readonly tableId?: string;
}

export interface MistralPage {
  /** In pixels. */
  readonly width: number;
  readonly height: number;
  /** Default: the contents of the blocks. */
  readonly markdown?: string;
  readonly blocks: readonly MistralBlock[];
  /** Tables by id; a request with `table_format` gets them apart. */
  readonly tables?: Readonly<Record<string, string>>;
}

export interface MistralOcrFaults extends OcrServerFaults {
  /** Each page has further blocks and pictures with broken boxes, as of `startPaddleServer`. */
  readonly brokenBoxes?: boolean;
  /** Pages tell no dimensions. */
  readonly noSize?: boolean;
}

export interface MistralOcrServerOptions extends OcrServerOptions {
  /** Default `mistral-ocr-latest`. */
  readonly models?: readonly string[];
  /** What a PDF holds; of a picture, the first. Default: one page with a title, a text and a picture. */
  readonly pages?: readonly MistralPage[];
  /** The models know blocks; others answer pictures alone. Default true. */
  readonly supportsBlocks?: boolean;
  /** Fields that are refused with 422, as older versions of the API do. */
  readonly refusedFields?: readonly string[];
  readonly faults?: MistralOcrFaults;
}

export type MistralOcrChanges = Pick<MistralOcrServerOptions, "pages" | "faults">;

export const MISTRAL_OCR_OPTION_NAMES = {
  host: true,
  port: true,
  apiKeys: true,
  latencyMs: true,
  clock: true,
  models: true,
  pages: true,
  supportsBlocks: true,
  refusedFields: true,
  faults: { ...JSON_FAULT_NAMES, brokenBoxes: true, noSize: true } satisfies Record<keyof MistralOcrFaults, true>,
} satisfies Record<keyof MistralOcrServerOptions, true | Readonly<Record<string, true>>>;

const RULES: ServerOptionRules = {
  names: MISTRAL_OCR_OPTION_NAMES,
  owner: "the simulated Mistral OCR server",
  exclusive: JSON_EXCLUSIVE_FAULTS,
  ranges: JSON_RANGES,
};

const ONE_PAGE: MistralPage = {
  width: 1_700,
  height: 2_200,
  blocks: [
    { type: "title", content: "# Annual report", box: [170, 220, 850, 330] },
    { type: "text", content: "All is well.", box: [170, 440, 1_530, 660] },
    { type: "image", content: "![img-0.jpeg](img-0.jpeg)", box: [170, 880, 850, 1_320] },
  ],
};

type Fields = Readonly<Record<string, unknown>>;

/** An error as Mistral tells it: flat. */
function error(status: number, message: string): OcrReply {
  return {
    status,
    body: {
      object: "error",
      message,
      type: status === 401 ? "unauthorized" : "invalid_request_error",
      param: null,
      code: String(status),
    },
  };
}

/**
 * Mistral's OCR API: `POST /v1/ocr` and `GET /v1/models`, keys as `authorization: Bearer …`.
 *
 * @throws ConfigError with every bad option; the system's error when the port can't be had.
 */
export async function startMistralOcrServer(
  options: MistralOcrServerOptions = {},
): Promise<OcrServer<MistralOcrChanges>> {
  let { pages = [ONE_PAGE], faults = {} } = options;
  const { models = ["mistral-ocr-latest"], supportsBlocks = true, refusedFields = [] } = options;

  function reply(method: string, path: string, body: unknown): OcrReply {
    if (method === "GET" && path === "/v1/models") {
      return { status: 200, body: { object: "list", data: models.map((id) => ({ id, object: "model" })) } };
    }
    if (path !== "/v1/ocr") return error(404, "no Route matched with those values");
    if (method !== "POST") return error(405, "Method Not Allowed");
    const asked = (body ?? {}) as Fields;
    const extra = refusedFields.filter((name) => name in asked);
    if (extra.length > 0) {
      const detail = extra.map((name) => ({
        type: "extra_forbidden",
        loc: ["body", name],
        msg: "Extra inputs are not permitted",
      }));
      return { status: 422, body: { detail } };
    }
    if (!models.includes(String(asked.model))) return error(400, `Invalid model: ${String(asked.model)}`);
    const count = pagesOf(asked.document, pages.length);
    if (count === undefined) return error(422, "document: Input should be a data URL");
    const read = pages.slice(0, count).map((page, index) => pageOf(page, index, asked, supportsBlocks, faults));
    const used = { pages_processed: read.length, doc_size_bytes: JSON.stringify(asked.document).length };
    return { status: 200, body: { pages: read, model: asked.model, document_annotation: null, usage_info: used } };
  }

  return startOcrServer(options, {
    scheme: "Bearer",
    basePath: "/v1",
    check: (given) => assertServerOptions(given, RULES),
    faults: () => faults,
    change(changes: MistralOcrChanges) {
      ({ pages = pages, faults = faults } = changes);
    },
    reply,
    error,
  });
}

/** A picture is one page; undefined = this is no document. */
function pagesOf(document: unknown, all: number): number | undefined {
  const { type, image_url: image, document_url: file } = (document ?? {}) as Fields;
  if (type === "image_url" && typeof image === "string" && /^data:image\/[a-z]+;base64,./.test(image)) return 1;
  return type === "document_url" && typeof file === "string" && file.startsWith("data:application/pdf;base64,")
    ? all
    : undefined;
}

function corners(box: unknown) {
  const [left, top, right, bottom] = Array.isArray(box) ? (box as unknown[]) : [];
  return { top_left_x: left, top_left_y: top, bottom_right_x: right, bottom_right_y: bottom };
}

function pageOf(page: MistralPage, index: number, asked: Fields, supportsBlocks: boolean, faults: MistralOcrFaults) {
  const { width, height, blocks, markdown, tables = {} } = page;
  const broken = faults.brokenBoxes === true ? BROKEN_BOXES : [];
  const isApart = asked.table_format === "html";
  const contentOf = ({ content, tableId }: MistralBlock): string => {
    if (tableId === undefined) return content;
    return isApart ? `[${tableId}](${tableId})` : (tables[tableId] ?? content);
  };
  const listed = blocks.map((block) => ({
    type: block.type,
    content: contentOf(block),
    ...corners(block.box),
    ...(block.tableId === undefined ? {} : { table_id: block.tableId }),
  }));
  const more = broken.map((box, at) => ({ type: "text", content: `broken ${at}`, ...corners(box) }));
  const pictures = [...blocks.filter(({ type }) => type === "image").map(({ box }) => box), ...broken];
  return {
    index,
    markdown: markdown ?? blocks.map(contentOf).join("\n\n"),
    images: pictures.map((box, at) => ({ id: `img-${at}.jpeg`, ...corners(box), image_base64: null })),
    tables: isApart ? Object.entries(tables).map(([id, content]) => ({ id, content, format: "html" })) : [],
    dimensions: faults.noSize === true ? null : { dpi: 200, width, height },
    ...(asked.include_blocks === true && supportsBlocks ? { blocks: [...listed, ...more] } : {}),
  };
}
