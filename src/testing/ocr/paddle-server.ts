import { whole } from "../provider/option-numbers.js";
import { BROKEN_BOXES } from "./broken-boxes.js";
import { type OcrReply, type OcrServer, type OcrServerFaults, type OcrServerOptions, startOcrServer } from "./http.js";
import {
  assertServerOptions,
  JSON_EXCLUSIVE_FAULTS,
  JSON_FAULT_NAMES,
  JSON_RANGES,
  type ServerOptionRules,
} from "./server-options.js";

export interface PaddleBlock {
  readonly label: string;
  readonly content: string;
  /** Four pixels; anything else is sent as it is. */
  readonly bbox: unknown;
}

export interface PaddlePage {
  /** In pixels. */
  readonly width: number;
  readonly height: number;
  readonly blocks: readonly PaddleBlock[];
  /** Default: the contents of the blocks. */
  readonly markdown?: string;
}

export interface PaddleFaults extends OcrServerFaults {
  /** 200 whose `errorCode` is this. */
  readonly errorCode?: number;
  /** Each page has further blocks whose boxes are inverted, out of the page, no numbers, … : see `BROKEN_BOXES`. */
  readonly brokenBoxes?: boolean;
  /** Pages tell no size. */
  readonly noSize?: boolean;
}

export interface PaddleServerOptions extends OcrServerOptions {
  /** What a PDF holds; of a picture, the first. Default: one page with a title and a text. */
  readonly pages?: readonly PaddlePage[];
  /** `GET /health` is answered; hosted services have none. Default true. */
  readonly hasHealth?: boolean;
  readonly faults?: PaddleFaults;
}

export type PaddleChanges = Pick<PaddleServerOptions, "pages" | "faults">;

export const PADDLE_OPTION_NAMES = {
  host: true,
  port: true,
  apiKeys: true,
  latencyMs: true,
  clock: true,
  pages: true,
  hasHealth: true,
  faults: { ...JSON_FAULT_NAMES, errorCode: true, brokenBoxes: true, noSize: true } satisfies Record<
    keyof PaddleFaults,
    true
  >,
} satisfies Record<keyof PaddleServerOptions, true | Readonly<Record<string, true>>>;

const RULES: ServerOptionRules = {
  names: PADDLE_OPTION_NAMES,
  owner: "the simulated PaddleX server",
  exclusive: JSON_EXCLUSIVE_FAULTS,
  ranges: [...JSON_RANGES, ["faults.errorCode", whole(1)]],
};

const ONE_PAGE: PaddlePage = {
  width: 1_200,
  height: 800,
  blocks: [
    { label: "doc_title", content: "Annual report", bbox: [90, 70, 700, 110] },
    { label: "text", content: "All is well.", bbox: [90, 140, 1_110, 220] },
  ],
};

/**
 * A PaddleX server as PaddleOCR-VL and PP-StructureV3 are served: `POST /layout-parsing`, `GET /health`, keys as
 * `authorization: token …`.
 *
 * @throws ConfigError with every bad option; the system's error when the port can't be had.
 */
export async function startPaddleServer(options: PaddleServerOptions = {}): Promise<OcrServer<PaddleChanges>> {
  let { pages = [ONE_PAGE], faults = {} } = options;
  const { hasHealth = true } = options;
  let logged = 0;

  function told(errorCode: number, errorMsg: string, more: Record<string, unknown> = {}) {
    logged += 1;
    return { logId: `log-${logged}`, errorCode, errorMsg, ...more };
  }
  const error = (status: number, message: string): OcrReply => ({ status, body: told(status, message) });

  function reply(method: string, path: string, body: unknown): OcrReply {
    if (path === "/health" && hasHealth) return { status: 200, body: told(0, "Healthy") };
    if (path !== "/layout-parsing") return error(404, "Not Found");
    if (method !== "POST") return error(405, "Method Not Allowed");
    const asked = (body ?? {}) as Readonly<Record<string, unknown>>;
    const trouble = requestTrouble(asked);
    if (trouble !== undefined) return error(422, trouble);
    if (faults.errorCode !== undefined) return { status: 200, body: told(faults.errorCode, "The pipeline failed.") };
    const isPdf = asked.fileType === 0;
    const read = isPdf ? pages : pages.slice(0, 1);
    const sizes = read.map(({ width, height }) => ({ width, height }));
    const dataInfo = isPdf ? { type: "pdf", numPages: read.length, pages: sizes } : { type: "image", ...sizes[0] };
    const layoutParsingResults = read.map((page) => resultOf(page, faults));
    const result = { layoutParsingResults, ...(faults.noSize === true ? {} : { dataInfo }) };
    return { status: 200, body: told(0, "Success", { result }) };
  }

  return startOcrServer(options, {
    scheme: "token",
    basePath: "",
    check: (given) => assertServerOptions(given, RULES),
    faults: () => faults,
    change(changes: PaddleChanges) {
      ({ pages = pages, faults = faults } = changes);
    },
    reply,
    error,
  });
}

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

function requestTrouble({ file, fileType }: Readonly<Record<string, unknown>>): string | undefined {
  if (typeof file !== "string" || !BASE64.test(file)) return '[{"loc": ["body", "file"], "msg": "Field required"}]';
  if (fileType !== 0 && fileType !== 1) return '[{"loc": ["body", "fileType"], "msg": "Input should be 0 or 1"}]';
  return undefined;
}

function resultOf({ width, height, blocks, markdown }: PaddlePage, faults: PaddleFaults) {
  const broken = BROKEN_BOXES.map((bbox, at): PaddleBlock => ({ label: "text", content: `broken ${at}`, bbox }));
  const all = faults.brokenBoxes === true ? [...blocks, ...broken] : blocks;
  const list = all.map(({ label, content, bbox }, at) => ({
    block_label: label,
    block_content: content,
    block_bbox: bbox,
    block_id: at,
    block_order: at + 1,
    group_id: at,
  }));
  const size = faults.noSize === true ? {} : { width, height };
  return {
    prunedResult: { ...size, parsing_res_list: list, layout_det_res: { boxes: [] } },
    markdown: { text: markdown ?? blocks.map(({ content }) => content).join("\n\n"), images: {} },
    outputImages: null,
    inputImage: null,
  };
}
